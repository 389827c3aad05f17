"""The log of searches, and what is left of it in the end: counts."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models import ApiToken, Layer
from retrieval.results import Basis, Level

# What a confidence is told of.
BASES = [(str(basis), str(basis)) for basis in (Basis.SIMILARITY, Basis.RERANK)]
LEVELS = [(str(level), str(level)) for level in Level]


class Status(models.TextChoices):
    """What a search came to (R18)."""

    FOUND = "found", _("found")
    PARTLY_FOUND = "partly_found", _("partly found")
    NOT_FOUND = "not_found", _("not found")


class Door(models.TextChoices):
    """Where a search came in."""

    PORTAL = "portal", _("portal")
    API = "api", _("API")
    TURN = "turn", _("turn of an agent")
    MCP = "mcp", _("MCP")


class SearchLog(models.Model):
    """One search, as it was (S2-LOG-01).

    Written by one statement and never changed, but for the count of hidden rows. What
    people typed is scrubbed (R16). No text of a passage is in it: passages are named by
    their ids, and read through the visibility of whoever reads the log.

    `acting` is the member of staff who saw the portal as the person did, if any.

    `knowledge_bases` is the resolved list, `layers` the layers it was routed or
    narrowed to (null: all of the list). `rankings` holds, by branch, rows of
    (passage id, raw score, relaxed 0 or 1) in the branch's order; `fused` the ids of
    all candidates in the fused order; `reranked` the reranker's probability by passage
    id. `hits` are what was returned: passage id (null for an exact section), ref,
    match, score, similarity, rerank_score. Rankings are empty for a search that was
    answered from the cache. `withheld` are the passages that a turn's budget left out
    (S3-LOG-01). `layer` is the best hit's. `hidden_rows` is counted on demand, for
    auditors alone.

    `interaction_id` is the id that the answer was given with, an ask's own too; null
    where learning was off, and then nothing is learned of it. `conversation_id` is the
    agent's conversation, or the turn where there is none. `chose_layers` tells that the
    sender named the layers.
    """

    at = models.DateTimeField(_("at"), auto_now_add=True)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    acting = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("really asked by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
    )
    token = models.ForeignKey(
        ApiToken,
        verbose_name=_("token"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
    )
    by_agent = models.BooleanField(_("by an agent"), default=False)
    door = models.CharField(_("door"), max_length=10, choices=Door)
    interaction_id = models.UUIDField(_("answer"), null=True, unique=True)
    conversation_id = models.UUIDField(_("conversation"), null=True)
    query = models.TextField(_("question"))
    metadata_filter = models.JSONField(_("filter"), default=dict)
    count = models.PositiveSmallIntegerField(_("asked for"))
    knowledge_bases = ArrayField(
        models.BigIntegerField(), verbose_name=_("knowledge bases"), default=list
    )
    layers = ArrayField(
        models.BigIntegerField(), verbose_name=_("layers"), null=True, default=None
    )
    chose_layers = models.BooleanField(_("layers were named"), default=False)
    layers_ignored = models.PositiveIntegerField(_("ignored names"), default=0)
    fallback_reason = models.CharField(
        _("why it fell back"), max_length=200, blank=True
    )
    tuning_version = models.PositiveIntegerField(_("settings"), default=0)
    model = models.CharField(_("model"), max_length=200, blank=True)
    rankings = models.JSONField(default=dict)
    fused = ArrayField(models.BigIntegerField(), default=list)
    reranked = models.JSONField(default=dict)
    hits = models.JSONField(default=list)
    returned = models.PositiveSmallIntegerField(_("passages"), default=0)
    withheld = ArrayField(models.BigIntegerField(), default=list)
    status = models.CharField(_("outcome"), max_length=12, choices=Status)
    level = models.CharField(
        _("confidence"),
        max_length=6,
        blank=True,
        choices=LEVELS,
    )
    basis = models.CharField(
        _("judged by"),
        max_length=10,
        blank=True,
        choices=BASES,
    )
    confidence = models.FloatField(null=True)
    labels = ArrayField(models.CharField(max_length=40), default=list)
    stage_ms = models.JSONField(default=dict)
    total_ms = models.FloatField(_("time (ms)"), default=0.0)
    layer = models.ForeignKey(
        Layer,
        verbose_name=_("layer"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    hidden_rows = models.PositiveIntegerField(null=True)

    class Meta:
        """Read newest first; a right of its own, which no role but the auditor has."""

        verbose_name = _("search")
        verbose_name_plural = _("searches")
        ordering = ["-at", "-pk"]
        default_permissions = ("view",)
        permissions = [("export_searchlog", "Can export the search log")]
        indexes = [models.Index(fields=["-at", "-id"], name="search_log_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=Status.values),
                name="search_log_status_known",
            ),
        ]

    def __str__(self) -> str:
        """Return its number: whatever keeps this must not keep the question."""
        return f"search {self.pk}"


class SearchDay(models.Model):
    """How many searches of one day went how; what the log becomes after its time.

    `layer` is the best hit's, null without hits and for a layer that is gone.
    """

    day = models.DateField(_("day"))
    layer = models.ForeignKey(
        Layer,
        verbose_name=_("layer"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    door = models.CharField(_("door"), max_length=10, choices=Door)
    status = models.CharField(_("outcome"), max_length=12, choices=Status)
    searches = models.PositiveIntegerField(_("searches"))

    class Meta:
        """Read by day; nobody edits a count."""

        ordering = ["day"]
        default_permissions = ()
        indexes = [models.Index(fields=["day"], name="search_day_by_day")]

    def __str__(self) -> str:
        """Return the day and the count."""
        return f"{self.day}: {self.searches}"
