"""What was asked and what came of it, for the gate, for learning and for citations."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from knowledge.models import AgentClient
from knowledge.models.knowledge_base import AnswerMode
from retrieval.models.log import BASES, LEVELS, Door, Status
from retrieval.models.turn import Turn

# The door of what an import brought from an older version: nothing was asked here.
IMPORTED = "import"
# What a level is told of that an older version stored, on a scale of its own (S1-CNF-06).
OLD_SCALE = "v0"
DOORS = [*Door.choices, (IMPORTED, _("import"))]


class Interaction(models.Model):
    """One question to the documents, as it was answered; written once.

    `owner` is whom it was answered for, `acting` the member of staff who saw the portal
    as that person, `client` the agent client that asked on their behalf. `question` is
    scrubbed (R16), and so are the `queries` that were searched, the question as written
    first. `knowledge_base_ids` is the resolved list, `layer_ids` the layers that were
    searched (null: all of the list).

    `hits` are the passages that were handed back, in their order: {"id": "S1", "ref",
    "revision", "passage" (null for a named section), "score", "similarity",
    "rerank_score"}; never their text, which their snapshots hold. `notes` are the codes
    of what was missing. `rewritten_by` tells whose the other queries are, "model" or
    "learned", and `learned_ids` which learned items gave them.

    What an import brings has the door IMPORTED, and its level the basis OLD_SCALE: it
    says nothing beside the levels of this version.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
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
    client = models.ForeignKey(
        AgentClient,
        verbose_name=_("agent client"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    turn = models.ForeignKey(
        Turn,
        verbose_name=_("turn"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="interactions",
    )
    door = models.CharField(_("door"), max_length=10, choices=DOORS)
    conversation_id = models.UUIDField(_("conversation"), null=True)
    question = models.TextField(_("question"), blank=True)
    queries = ArrayField(
        models.TextField(), verbose_name=_("searched for"), default=list
    )
    rewritten_by = models.CharField(_("reworded by"), max_length=10, blank=True)
    learned_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("learned items"), default=list
    )
    knowledge_base_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("knowledge bases"), default=list
    )
    layer_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("layers"), null=True, default=None
    )
    status = models.CharField(_("outcome"), max_length=12, choices=Status)
    mode = models.CharField(_("answer mode"), max_length=10, choices=AnswerMode)
    level = models.CharField(_("confidence"), max_length=6, blank=True, choices=LEVELS)
    basis = models.CharField(
        _("judged by"),
        max_length=10,
        blank=True,
        choices=[*BASES, (OLD_SCALE, _("an older scale"))],
    )
    score = models.FloatField(_("best score"), null=True)
    hits = models.JSONField(_("handed back"), default=list)
    notes = ArrayField(
        models.CharField(max_length=30), verbose_name=_("notes"), default=list
    )
    tuning_version = models.PositiveIntegerField(_("settings"), default=0)
    at = models.DateTimeField(_("at"), db_default=Now())

    class Meta:
        """Newest first."""

        verbose_name = _("interaction")
        verbose_name_plural = _("interactions")
        ordering = ["-at", "-pk"]
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["owner", "-at"], name="interaction_by_owner"),
            models.Index(fields=["at"], name="interaction_by_time"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=Status.values),
                name="interaction_status_known",
            ),
        ]

    def __str__(self) -> str:
        """Return its number: whatever keeps this must not keep the question."""
        return f"interaction {self.pk}"
