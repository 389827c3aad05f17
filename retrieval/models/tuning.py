"""The settings of the search as they were saved, and changes that are being tried."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class TuningRecordQuerySet(models.QuerySet["TuningRecord"]):
    """Records, the newest first."""

    def newest(self) -> "TuningRecord | None":
        """Return the record that holds; None: the environment alone does."""
        return self.order_by("-version").first()

    def at(self, version: int) -> Self:
        """The record of one version."""
        return self.filter(version=version)


class TuningRecord(models.Model):
    """The deployment's settings after one save (R3); the newest holds.

    `values` has, by name, only what differs from the environment. `changes` has
    {name: [before, after]} of what was in force. Rows are only ever added, so that
    they are the history too; `restored` is the version whose values came back, 0 those
    of the environment.
    """

    version = models.PositiveIntegerField(_("version"), unique=True)
    values = models.JSONField(_("values"), default=dict)
    changes = models.JSONField(_("changes"), default=dict)
    note = models.CharField(_("reason"), max_length=300, blank=True)
    restored = models.PositiveIntegerField(_("restored version"), null=True)
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("saved by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    saved_at = models.DateTimeField(_("saved"), auto_now_add=True)

    objects = TuningRecordQuerySet.as_manager()

    class Meta:
        """Newest first."""

        verbose_name = _("search settings")
        verbose_name_plural = _("search settings")
        ordering = ["-version"]

    def __str__(self) -> str:
        """Return which settings."""
        return _("search settings, version %(version)s") % {"version": self.version}


class SearchLab(TuningRecord):
    """The page where settings are tried, as the admin knows pages: by a model."""

    class Meta:
        """A permission of its own, and no rows but those of the settings."""

        proxy = True
        verbose_name = _("search lab")
        verbose_name_plural = _("search lab")
        default_permissions = ("view",)


class TuningProposal(models.Model):
    """A change of the settings on its way: entered, tried, not saved yet.

    `values` has all settings by name, `based_on` the version that they were entered
    over; `saved_version` is set once they were saved. It belongs to whoever made it.
    """

    values = models.JSONField(default=dict)
    based_on = models.PositiveIntegerField()
    restored = models.PositiveIntegerField(null=True)
    note = models.CharField(_("reason"), max_length=300, blank=True)
    saved_version = models.PositiveIntegerField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Newest first."""

        verbose_name = _("proposed settings")
        verbose_name_plural = _("proposed settings")
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        """Return over what it was made."""
        return _("proposed settings over version %(version)s") % {
            "version": self.based_on
        }
