"""The people."""

from django.contrib.auth.models import AbstractUser
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A person who signs in: a reader, a member of staff, or both."""

    class Meta(AbstractUser.Meta):
        """Plain words for the admin."""

        verbose_name = _("person")
        verbose_name_plural = _("people")

    def __str__(self) -> str:
        """Return the full name where one is known, else the user name."""
        return self.get_full_name() or self.get_username()
