"""Pending questions: gaps of the documents that a person settles."""

import uuid
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models import KnowledgeBase, Layer, Source

if TYPE_CHECKING:
    from knowledge.models import User

LONGEST_QUESTION = 1000
# A document's title, which it becomes, is no longer.
LONGEST_PUBLISHED = 300
LONGEST_ANSWER = 8000
LONGEST_REASON = 500
# Further wordings by which an answer is found.
MOST_ALSO_ASKED = 10


class State(models.TextChoices):
    """What became of a question; exactly these four (S2-APR-03)."""

    PENDING = "pending", _("pending")
    APPROVED = "approved", _("approved")
    IGNORED = "ignored", _("ignored")
    DUPLICATE = "duplicate", _("duplicate")


class Channel(models.TextChoices):
    """Where a question was asked."""

    VOICE = "voice", _("voice")
    WIDGET = "widget", _("widget")
    API = "api", _("API")
    PORTAL = "portal", _("portal")


class Gap(models.TextChoices):
    """What the documents say now that an answer is in them; never a state (R17)."""

    UNKNOWN = "", _("not asked again yet")
    CLOSED = "closed", _("closed")
    OPEN = "open", _("still open")


class PendingQuestionQuerySet(models.QuerySet["PendingQuestion"]):
    """Pending questions by who settles them."""

    def administered_by(self, user: "User") -> Self:
        """Those that a member of staff works on, by their knowledge bases now (REL-W8).

        A question is theirs where its resolved list touches a knowledge base of theirs.
        Once an answer is written, it belongs to the knowledge base of that answer
        alone. What the person's role may do with it is asked apart.
        """
        if user.is_active and user.is_superuser:
            return self
        own = list(
            KnowledgeBase.objects.administered_by(user).values_list("pk", flat=True)
        )
        if not own:
            return self.none()
        return self.filter(
            models.Q(source__isnull=True) | models.Q(source__knowledge_base__in=own),
            models.Q(layer__isnull=True) | models.Q(layer__knowledge_base__in=own),
            knowledge_base_ids__overlap=own,
        )

    def open(self) -> Self:
        """Those that wait for a person."""
        return self.filter(state=State.PENDING)


class PendingQuestion(models.Model):
    """A question that the documents did not answer, and what a person made of it.

    `question` is its first wording, scrubbed (R16), "" once that is past its keeping
    time and nobody answered it. `knowledge_base_ids` is the resolved list of whoever
    asked, at that time. `answer`, `question_as_answered`, `also_asked`, `layer`,
    `author` and `answered_at` are what was written last; by `also_asked` the answer is
    found too, such as by the question in other languages. While the state is pending,
    it waits for an approval by another person where `four_eyes` is set; where there is
    a `source` already, the answer that was approved before still serves.
    `first_approved_at` is since when it has had an approved answer, however often that
    was changed; a withdrawal ends it. `revision` counts approvals and withdrawals,
    `announced_revision` is the last of them that agent clients were told of.
    `follow_after` is when what follows from one is tried again, after `follow_attempts`
    that failed in a row. `version` rises with every act, so that a form which shows an
    older one is refused.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    question = models.TextField(_("question"))
    language = models.CharField(_("language"), max_length=2, blank=True)
    channel = models.CharField(_("channel"), max_length=6, choices=Channel)
    knowledge_base_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("asked of"), default=list
    )
    state = models.CharField(
        _("state"), max_length=9, choices=State, default=State.PENDING
    )
    original = models.ForeignKey(
        "self",
        verbose_name=_("same as"),
        on_delete=models.RESTRICT,
        related_name="duplicates",
        null=True,
        blank=True,
    )
    asked_count = models.PositiveIntegerField(_("asked"), default=1)
    asker_count = models.PositiveIntegerField(_("by how many"), default=1)
    first_asked_at = models.DateTimeField(_("first asked"))
    last_asked_at = models.DateTimeField(_("last asked"))
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("assigned to"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    snoozed_until = models.DateTimeField(_("put off until"), null=True, blank=True)
    ignored_because = models.CharField(
        _("why it is ignored"), max_length=LONGEST_REASON, blank=True
    )
    locked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("being edited by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    locked_until = models.DateTimeField(null=True, blank=True)
    answer = models.TextField(_("answer"), blank=True)
    question_as_answered = models.CharField(
        _("question as it is published"), max_length=LONGEST_PUBLISHED, blank=True
    )
    also_asked = ArrayField(
        models.CharField(max_length=LONGEST_PUBLISHED),
        verbose_name=_("other wordings"),
        default=list,
        blank=True,
    )
    layer = models.ForeignKey(
        Layer,
        verbose_name=_("layer"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    source = models.OneToOneField(
        Source,
        verbose_name=_("source"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="pending_question",
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("answered by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    answered_at = models.DateTimeField(_("answered"), null=True, blank=True)
    four_eyes = models.BooleanField(_("needs a second person"), default=False)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("approved by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    approved_at = models.DateTimeField(_("approved"), null=True, blank=True)
    first_approved_at = models.DateTimeField(
        _("first approved"), null=True, editable=False
    )
    gap = models.CharField(
        _("gap"), max_length=6, choices=Gap, default=Gap.UNKNOWN, blank=True
    )
    gap_checked_at = models.DateTimeField(_("asked again"), null=True, blank=True)
    revision = models.PositiveIntegerField(default=0, editable=False)
    announced_revision = models.PositiveIntegerField(default=0, editable=False)
    follow_attempts = models.PositiveIntegerField(default=0, editable=False)
    follow_after = models.DateTimeField(null=True, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)

    objects = PendingQuestionQuerySet.as_manager()

    class Meta:
        """Most wanted first, then the oldest."""

        verbose_name = _("pending question")
        verbose_name_plural = _("pending questions")
        ordering = ["-asker_count", "-asked_count", "first_asked_at", "pk"]
        default_permissions = ("view",)
        permissions = [
            ("answer_pendingquestion", "Can answer and sort pending questions"),
            ("approve_pendingquestion", "Can approve and withdraw answers"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=State.values),
                name="pending_question_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(channel__in=Channel.values),
                name="pending_question_channel_known",
            ),
            models.CheckConstraint(
                condition=models.Q(gap__in=Gap.values),
                name="pending_question_gap_known",
            ),
            models.CheckConstraint(
                condition=(
                    models.Q(state=State.DUPLICATE, original__isnull=False)
                    & ~models.Q(original=models.F("pk"))
                )
                | (~models.Q(state=State.DUPLICATE) & models.Q(original__isnull=True)),
                name="pending_question_duplicate_has_original",
            ),
            models.CheckConstraint(
                condition=~models.Q(state=State.IGNORED, ignored_because=""),
                name="pending_question_ignored_has_reason",
            ),
            models.CheckConstraint(
                condition=models.Q(state=State.APPROVED, approved_at__isnull=False)
                & ~models.Q(answer="")
                | (
                    ~models.Q(state=State.APPROVED) & models.Q(approved_at__isnull=True)
                ),
                name="pending_question_approved_has_answer",
            ),
            models.CheckConstraint(
                condition=~models.Q(four_eyes=True, approved_by=models.F("author")),
                name="pending_question_four_eyes",
                violation_error_message=_(
                    "Whoever wrote an answer cannot approve it here."
                ),
            ),
        ]
        indexes = [
            models.Index(
                fields=["state", "-asker_count", "-asked_count", "first_asked_at"],
                name="pending_question_by_want",
            ),
            GinIndex(fields=["knowledge_base_ids"], name="pending_question_by_base"),
        ]

    def __str__(self) -> str:
        """Return its number: the audit's readers are not all those of the question."""
        return f"question {self.pk}"

    @property
    def knowledge_base_id(self) -> int | None:
        """The knowledge base of its answer, for the audit; None before there is one."""
        if self.source is not None:
            return self.source.knowledge_base_id
        return self.layer.knowledge_base_id if self.layer is not None else None

    @property
    def title(self) -> str:
        """Its words for whoever sees it, or that they are gone."""
        return self.question or str(_("(words past their keeping time)"))

    @property
    def is_awaiting_approval(self) -> bool:
        """Whether an answer is written and waits for another person."""
        return self.state == State.PENDING and self.answer != ""
