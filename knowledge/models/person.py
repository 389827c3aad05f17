"""The people."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models.department import Department


class User(AbstractUser):
    """A person who signs in: a reader, a member of staff, or both."""

    department = models.ForeignKey(
        Department,
        verbose_name=_("department"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="people",
        help_text=_("Pays for this person's searches."),
    )

    class Meta(AbstractUser.Meta):
        """Plain words for the admin."""

        # The types of the class that is extended know no lazy texts.
        verbose_name = _("person")  # type: ignore[assignment]
        verbose_name_plural = _("people")  # type: ignore[assignment]
        permissions = [("view_as", "Can see the portal as another person sees it")]

    def __str__(self) -> str:
        """Return the full name where one is known, else the user name."""
        return self.get_full_name() or self.get_username()

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Return whether a permission stands, for an object or in general.

        Django lets a superuser do anything unasked; to list and search a knowledge
        base they need a grant like anyone (D27).
        """
        from knowledge.permissions import READING, KnowledgeBaseBackend

        if self.is_superuser and obj is not None and perm in READING:
            return KnowledgeBaseBackend().has_perm(self, perm, obj)
        return super().has_perm(perm, obj)
