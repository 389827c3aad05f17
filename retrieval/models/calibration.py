"""The scales on which a model's scores are judged, as they were fitted."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class CalibrationBasis(models.TextChoices):
    """What is judged (S1-CNF-02)."""

    SIMILARITY = "similarity", _("similarity")
    RERANK = "rerank", _("reranker")
    SENTENCES = "sentences", _("reranker, sentence by sentence")


class CalibrationQuerySet(models.QuerySet["Calibration"]):
    """Calibrations, the newest first."""

    def of(self, scorer: str, basis: str) -> Self:
        """Those of one scorer, newest first."""
        return self.filter(scorer=scorer, basis=basis).order_by("-fitted_at", "-pk")


class Calibration(models.Model):
    """One fit of one scorer's scale (D12); the newest holds.

    `scorer` is the fingerprint of an embedding space or the name of a CrossEncoder,
    `model_id` what people know it as. `scale` has the numbers of
    `retrieval.scales.Scale`, `measured` what the questions gave: how many there were,
    and on each half the shares that the marks of the other half refuse. Rows are only
    ever added, so that they are the history too.
    """

    scorer = models.CharField(max_length=200)
    model_id = models.CharField(_("model"), max_length=200)
    basis = models.CharField(_("basis"), max_length=10, choices=CalibrationBasis)
    scale = models.JSONField(_("scale"), default=dict)
    measured = models.JSONField(_("measured"), default=dict)
    answerable = models.PositiveIntegerField(_("answerable questions"))
    unanswerable = models.PositiveIntegerField(_("unanswerable questions"))
    sources = models.CharField(_("question sets"), max_length=1000, blank=True)
    fitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("fitted by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    fitted_at = models.DateTimeField(_("fitted"), auto_now_add=True)

    objects = CalibrationQuerySet.as_manager()

    class Meta:
        """Newest first."""

        verbose_name = _("calibration")
        verbose_name_plural = _("calibrations")
        ordering = ["-fitted_at", "-pk"]
        indexes = [
            models.Index(
                fields=["scorer", "basis", "-fitted_at"], name="calibration_by_scorer"
            ),
        ]

    def __str__(self) -> str:
        """Return of what."""
        return f"{self.model_id}, {self.get_basis_display()}"
