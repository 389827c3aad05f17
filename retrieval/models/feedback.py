"""What people said of answers and passages."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from knowledge.models import AgentClient, KnowledgeBase, Layer, Source

if TYPE_CHECKING:
    from knowledge.models import User


class Worth(models.TextChoices):
    """What a passage was for whoever rates it (S1-FBK-03)."""

    USEFUL = "useful", _("useful")
    WRONG = "wrong", _("wrong")
    OUTDATED = "outdated", _("outdated")


class Reason(models.TextChoices):
    """Why an answer did not help."""

    WRONG = "wrong", _("It is wrong")
    OUTDATED = "outdated", _("It is out of date")
    INCOMPLETE = "incomplete", _("Something is left out")
    BESIDE = "beside", _("It answers another question")
    UNCLEAR = "unclear", _("It is hard to understand")


class FeedbackQuerySet(models.QuerySet["Feedback"]):
    """Ratings by who works on what they are about."""

    def administered_by(self, user: "User") -> Self:
        """Those of answers that rest on what the person works on, and nothing else."""
        bases = KnowledgeBase.objects.administered_by(user).values_list("pk", flat=True)
        return self.filter(knowledge_base_ids__contained_by=list(bases)).exclude(
            knowledge_base_ids=[]
        )


class Feedback(models.Model):
    """What one person, or an agent client for them, said of one ask or search.

    `interaction_id` is the id that the answer was given with; rating it again replaces
    what was said. `knowledge_base_ids` are those that the answer's passages come from,
    or that were searched where there are none. `better_query` and `comment` are
    scrubbed (R16) and go with the log of searches; what was rated stays.
    """

    interaction_id = models.UUIDField(_("answer"), unique=True)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    client = models.ForeignKey(
        AgentClient,
        verbose_name=_("agent client"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    is_helpful = models.BooleanField(_("helpful"))
    reasons = ArrayField(
        models.CharField(max_length=10, choices=Reason),
        verbose_name=_("reasons"),
        default=list,
    )
    comment = models.TextField(_("in their words"), blank=True)
    correct_layer = models.ForeignKey(
        Layer,
        verbose_name=_("right layer"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    better_query = models.TextField(_("better question"), blank=True)
    knowledge_base_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("knowledge bases"), default=list
    )
    given_at = models.DateTimeField(_("given"), db_default=Now())
    changed_at = models.DateTimeField(_("last changed"), db_default=Now())

    objects = FeedbackQuerySet.as_manager()

    class Meta:
        """Newest first; nobody edits what others said."""

        verbose_name = _("rating")
        verbose_name_plural = _("ratings")
        ordering = ["-changed_at", "-pk"]
        default_permissions = ("view",)
        indexes = [models.Index(fields=["-changed_at"], name="feedback_by_time")]

    def __str__(self) -> str:
        """Return its number: whatever keeps this must not keep the question."""
        return f"rating {self.pk}"


class PassageFeedbackQuerySet(models.QuerySet["PassageFeedback"]):
    """Ratings of passages by who works on them."""

    def administered_by(self, user: "User") -> Self:
        """Those of passages whose source is in a knowledge base of the person's now."""
        return self.filter(
            source__knowledge_base__in=KnowledgeBase.objects.administered_by(user)
        )


class PassageFeedback(models.Model):
    """What one passage of an answer was worth, a named clause's too (S1-FBK-04).

    The passage is named by its ref, which outlives the stored row: `revision` is the
    ref's document revision, `passage_id` the row that was found, null for a clause that
    the question named. Whose it is tells its source, also after that has moved.
    """

    feedback = models.ForeignKey(
        Feedback, on_delete=models.CASCADE, related_name="passages"
    )
    worth = models.CharField(_("worth"), max_length=8, choices=Worth)
    ref = models.CharField(_("ref"), max_length=60)
    revision = models.BigIntegerField(_("revision"))
    passage_id = models.BigIntegerField(_("passage"), null=True)
    source = models.ForeignKey(
        Source,
        verbose_name=_("source"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    given_at = models.DateTimeField(_("given"), db_default=Now())

    objects = PassageFeedbackQuerySet.as_manager()

    class Meta:
        """Each passage of an answer once."""

        verbose_name = _("rating of a passage")
        verbose_name_plural = _("ratings of passages")
        ordering = ["-given_at", "-pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["feedback", "ref"], name="feedback_once_for_a_passage"
            ),
            models.CheckConstraint(
                condition=models.Q(worth__in=Worth.values),
                name="feedback_worth_known",
            ),
        ]

    def __str__(self) -> str:
        """Return the place and what it was worth."""
        return f"{self.ref}: {self.worth}"
