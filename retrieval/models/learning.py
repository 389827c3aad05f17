"""What was learned from how people search, what it rests on, and what they decided."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from knowledge.models import KnowledgeBase, Layer
from retrieval.promoting import Kind, Lesson, Scope, Subject
from retrieval.promoting import Source as Origin

if TYPE_CHECKING:
    from knowledge.models import User

# Raised whenever the promoter learns by other rules; what an older one taught is no
# longer applied, and deleted at its next run (S1-LRN-06).
RULE = 2


# What somebody did, what an item does and how it was learned, as pages say it.
SIGNALS = [
    (str(Kind.REWORDED), _("asked again in other words")),
    (str(Kind.LAYER_SWITCH), _("asked again in another layer")),
    (str(Kind.FOLLOW_UP), _("went on with another question")),
    (str(Kind.FEEDBACK), _("rated")),
    (str(Kind.ANSWERED), _("reworded by a model, and found")),
]
LESSONS = [
    (str(Lesson.SYNONYM), _("synonym")),
    (str(Lesson.REWRITE), _("rewrite")),
    (str(Lesson.AFFINITY), _("layer affinity")),
]
ORIGINS = [
    (str(Origin.REWORDED), _("from questions asked again in other words")),
    (str(Origin.RATED), _("from what people said of answers")),
    (str(Origin.CHOSEN), _("from layers that people chose")),
    (str(Origin.MODEL), _("from searches of a language model that found something")),
    (str(Origin.IMPORTED), _("from an earlier product")),
]


class SignalQuerySet(models.QuerySet["LearningSignal"]):
    """Signals by who works on what they are about."""

    def administered_by(self, user: "User") -> Self:
        """Those of questions asked within what the person works on, and nothing else.

        Words that somebody asked over more than that may come from the rest.
        """
        bases = KnowledgeBase.objects.administered_by(user).values_list("pk", flat=True)
        return self.filter(knowledge_base_ids__contained_by=list(bases))


class LearningSignal(models.Model):
    """One thing that somebody did after a question.

    `first` and `second` are the ids of two asks or searches, the second null where
    there is one alone; their words stand in the log of searches and go with it. `layer`
    is what the signal speaks for: the layer of the second's best passage, or the one
    that a person chose. `knowledge_base_ids` are all that either was asked over.
    """

    kind = models.CharField(_("kind"), max_length=12, choices=SIGNALS)
    first = models.UUIDField(_("question"))
    second = models.UUIDField(_("then"), null=True)
    layer = models.ForeignKey(
        Layer,
        verbose_name=_("layer"),
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
    )
    knowledge_base_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("knowledge bases")
    )
    at = models.DateTimeField(_("at"))

    objects = SignalQuerySet.as_manager()

    class Meta:
        """In the order in which it happened; found once, however often it is read."""

        verbose_name = _("signal")
        verbose_name_plural = _("signals")
        ordering = ["at", "pk"]
        default_permissions = ()
        indexes = [
            models.Index(fields=["at"], name="signal_by_time"),
            models.Index(fields=["first"], name="signal_by_first"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "first", "second"],
                nulls_distinct=False,
                name="signal_once",
            ),
        ]

    def __str__(self) -> str:
        """Return what it is."""
        return str(self.get_kind_display())


class ItemState(models.TextChoices):
    """What becomes of a learned item.

    What is removed stays as a row of this state: it keeps the same from being learned
    again.
    """

    ON = "on", _("in use")
    OFF = "off", _("switched off")
    REMOVED = "removed", _("removed for good")


class LearnedItemQuerySet(models.QuerySet["LearnedItem"]):
    """Learned items by whether they hold, and for whom."""

    def applied(self) -> Self:
        """Those in use, learned by the rules of today or vouched for by a person."""
        return self.filter(
            models.Q(rule=RULE) | models.Q(is_pinned=True), state=ItemState.ON
        )

    def forgettable(self) -> Self:
        """Those that nobody has pinned or removed for good."""
        return self.filter(is_pinned=False).exclude(state=ItemState.REMOVED)

    def within(self, knowledge_base_ids: frozenset[int]) -> Self:
        """Those whose evidence lies within these knowledge bases and no others."""
        return self.filter(knowledge_base_ids__contained_by=list(knowledge_base_ids))

    def told_within(self, knowledge_base_ids: frozenset[int]) -> Self:
        """Those that may be told to whoever may search these knowledge bases.

        An affinity holds for its layer and is no more than a word; the word is told
        where somebody with these knowledge bases, or fewer, has chosen the layer for
        it, or where it has no evidence left.
        """
        about = LearningSignal.objects.filter(items=models.OuterRef("pk"))
        own = about.filter(knowledge_base_ids__contained_by=list(knowledge_base_ids))
        return self.within(knowledge_base_ids).filter(
            ~models.Q(kind=Lesson.AFFINITY) | ~models.Exists(about) | models.Exists(own)
        )

    def administered_by(self, user: "User") -> Self:
        """Those that may be told to whoever works on some knowledge bases."""
        bases = KnowledgeBase.objects.administered_by(user).values_list("pk", flat=True)
        return self.told_within(frozenset(bases))


class LearnedItem(models.Model):
    """One thing that was learned; a person can see why, and undo it.

    A synonym adds `value` to searches that hold the word `term`, in its `layer`; a
    rewrite searches for `value` too when the question is `term`; an affinity leads
    searches that hold `term` to its `layer`. `key` is what it is looked up by: the stem
    of a word, or the SHA-256 of a question's content words.

    `knowledge_base_ids` are all that the questions behind it were asked over, and of an
    affinity the layer's own. It is applied only where all of them are searched, so no
    words of others reach a reader who could not have taught it.

    `seen` counts the signals behind it, `usage_count` the answers that used it,
    `failures` those of the last 30 days that did not help. Bank details are taken out
    of `term` and `value` whatever the log keeps: they are shown to others (R16).
    `digest` is the SHA-256 of what makes it this item and no other
    (`retrieval.promoting.identity`).
    """

    kind = models.CharField(_("kind"), max_length=10, choices=LESSONS)
    key = models.CharField(max_length=100)
    term = models.TextField(_("word or question"))
    value = ArrayField(
        models.TextField(), verbose_name=_("searched for too"), default=list
    )
    layer = models.ForeignKey(
        Layer,
        verbose_name=_("layer"),
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
    )
    knowledge_base_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("knowledge bases")
    )
    origin = models.CharField(_("learned"), max_length=10, choices=ORIGINS)
    rule = models.PositiveSmallIntegerField(_("rule"), default=RULE)
    seen = models.PositiveIntegerField(_("seen"), default=0)
    usage_count = models.PositiveIntegerField(_("used"), default=0)
    failures = models.PositiveIntegerField(_("did not help"), default=0)
    last_seen_at = models.DateTimeField(_("last seen"), null=True)
    last_used_at = models.DateTimeField(_("last used"), null=True)
    learned_at = models.DateTimeField(_("learned"), db_default=Now())
    state = models.CharField(
        _("state"), max_length=8, choices=ItemState, default=ItemState.ON
    )
    is_pinned = models.BooleanField(_("pinned"), default=False)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("decided by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    decided_at = models.DateTimeField(_("decided"), null=True)
    digest = models.CharField(max_length=64, unique=True)
    evidence = models.ManyToManyField(LearningSignal, related_name="items")

    objects = LearnedItemQuerySet.as_manager()

    class Meta:
        """Most used first."""

        verbose_name = _("learned item")
        verbose_name_plural = _("learned items")
        ordering = ["-usage_count", "-seen", "pk"]
        default_permissions = ("view", "change")
        permissions = [("reset_learning", "Can reset what was learned")]
        indexes = [models.Index(fields=["kind", "key"], name="learned_by_key")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=[str(each) for each in Lesson]),
                name="learned_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=ItemState.values),
                name="learned_state_known",
            ),
            models.CheckConstraint(
                # An empty list lies within every reader's.
                condition=models.Q(knowledge_base_ids__len__gt=0),
                name="learned_of_some_knowledge_base",
            ),
            models.CheckConstraint(
                condition=~models.Q(kind=Lesson.AFFINITY)
                | models.Q(layer__isnull=False),
                name="learned_affinity_has_layer",
            ),
        ]

    def __str__(self) -> str:
        """Return its number: whatever keeps this must not keep people's words."""
        return f"learned item {self.pk}"

    @property
    def is_applied(self) -> bool:
        """Whether it is in use; what an older rule taught is not."""
        return self.state == ItemState.ON and (self.is_pinned or self.rule == RULE)

    @property
    def subject(self) -> Subject:
        """What it says, wherever it holds."""
        return Subject(
            self.kind,
            self.key,
            self.term,
            tuple(self.value),
            Scope(self.layer_id, frozenset(self.knowledge_base_ids)),
            is_model=self.origin == Origin.MODEL,
        )

    @property
    def knowledge_base_id(self) -> int | None:
        """The one knowledge base it belongs to, None where it belongs to several."""
        ids = self.knowledge_base_ids
        return ids[0] if len(ids) == 1 else None


class LearningState(models.Model):
    """How far the promoter has read; one row.

    `read_to` is the last row of the log of searches that it read, `since` the moment of
    the last reset of everything: nothing before it teaches any more. `queued_at` tells
    since when a run waits; `outcome` is what the last one did.
    """

    read_to = models.BigIntegerField(default=0)
    since = models.DateTimeField(_("nothing before"), null=True)
    queued_at = models.DateTimeField(null=True)
    run_at = models.DateTimeField(_("last run"), null=True)
    outcome = models.JSONField(_("what it did"), default=dict)

    class Meta:
        """One row, made when it is first asked for."""

        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=models.Q(pk=1), name="learning_state_is_one"
            ),
        ]

    def __str__(self) -> str:
        """Return when it last ran."""
        return f"learning, last run {self.run_at}"
