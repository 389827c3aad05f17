"""The state of ingest work, which is ours and not the queue's (D20)."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models.source import Source


class RunState(models.TextChoices):
    """How a run stands."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    WAITING = "waiting", _("waiting for the model server")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    SUPERSEDED = "superseded", _("superseded by a newer request")


OPEN_STATES = [RunState.QUEUED, RunState.RUNNING, RunState.WAITING]


class Stage(models.TextChoices):
    """What a run is doing."""

    EXTRACT = "extract", _("reading the file")
    STRUCTURE = "structure", _("finding sections")
    CHUNK = "chunk", _("cutting passages")
    EMBED = "embed", _("computing vectors")
    PUBLISH = "publish", _("publishing")
    VERIFY = "verify", _("reading back")


class IngestRun(models.Model):
    """One request to bring a source's content into the corpus.

    `attempts` rises, and is committed, before the work of an attempt begins; whoever
    holds the row does so until `lease_until`, by the database's clock.
    """

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="runs")
    generation = models.PositiveIntegerField()
    state = models.CharField(
        _("state"), max_length=12, choices=RunState, default=RunState.QUEUED
    )
    stage = models.CharField(_("stage"), max_length=10, choices=Stage, blank=True)
    percent = models.PositiveSmallIntegerField(_("percent"), default=0)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    due_at = models.DateTimeField(_("due"))
    lease_until = models.DateTimeField(_("leased until"), null=True)
    worker = models.CharField(_("worker"), max_length=120, blank=True)
    code = models.CharField(_("code"), max_length=40, blank=True)
    reason = models.TextField(_("reason"), blank=True)
    passages = models.PositiveIntegerField(_("passages"), default=0)
    embedded = models.PositiveIntegerField(_("embedded"), default=0)
    reused = models.PositiveIntegerField(_("reused"), default=0)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("requested by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    created_at = models.DateTimeField(_("requested"), auto_now_add=True)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)

    class Meta:
        """One run for each generation of a source."""

        verbose_name = _("ingest run")
        verbose_name_plural = _("ingest runs")
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "generation"], name="run_generation_once"
            ),
            models.CheckConstraint(
                condition=models.Q(percent__lte=100), name="run_percent_at_most_100"
            ),
        ]
        indexes = [models.Index(fields=["state", "due_at"], name="run_by_due")]

    def __str__(self) -> str:
        """Return what is ingested and the state."""
        return f"{self.source_id} #{self.generation}: {self.state}"


class WorkerBeat(models.Model):
    """The last sign of life of the task cluster; one row, by the database's clock."""

    name = models.CharField(max_length=40, unique=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        """Return whose sign it is."""
        return self.name
