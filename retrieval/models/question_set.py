"""Questions that staff keep, with what should be found, and the runs that measure it."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from knowledge.models import KnowledgeBase
from retrieval.models.tuning import TuningProposal

if TYPE_CHECKING:
    from knowledge.models import User


def administered_ids(user: "User") -> list[int]:
    """Return the knowledge bases that a member of staff works on."""
    return list(
        KnowledgeBase.objects.administered_by(user).values_list("pk", flat=True)
    )


class QuestionSetQuerySet(models.QuerySet["QuestionSet"]):
    """Sets by who may work on them."""

    def administered_by(self, user: "User") -> Self:
        """Those whose knowledge bases the person works on, every one of them.

        A set that has lost all its knowledge bases is a superuser's.
        """
        if user.is_active and user.is_superuser:
            return self
        ids = administered_ids(user)
        return self.filter(
            models.Exists(self.covered().filter(knowledgebase__in=ids)),
            ~models.Exists(self.covered().exclude(knowledgebase__in=ids)),
        )

    def covered(self) -> models.QuerySet[models.Model]:
        """Return the rows that say which knowledge bases a set of the outer query has."""
        through = QuestionSet.knowledge_bases.through
        return through._default_manager.filter(questionset=models.OuterRef("pk"))


class QuestionSet(models.Model):
    """Real questions with the places that answer them (S2-LOG-03).

    It is asked as `asked_as`, who sees no more of the set's knowledge bases than ever;
    None is whoever starts the run. `checks_settings` lets a change of the settings be
    measured with it before it is saved.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    description = models.TextField(_("description"), blank=True)
    knowledge_bases = models.ManyToManyField(
        KnowledgeBase,
        verbose_name=_("knowledge bases"),
        related_name="question_sets",
        help_text=_("The questions are asked of these alone."),
    )
    asked_as = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("asked as"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Whose view of them is searched. Empty: that of whoever runs it."),
    )
    checks_settings = models.BooleanField(
        _("checks settings"),
        default=True,
        help_text=_("New search settings are tried against it before they are saved."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    # Rises with every change of a question, so that runs are compared on like terms.
    version = models.PositiveIntegerField(default=1, editable=False)

    objects = QuestionSetQuerySet.as_manager()

    class Meta:
        """In alphabetical order."""

        verbose_name = _("question set")
        verbose_name_plural = _("question sets")
        ordering = ["name"]
        permissions = [("run_questionset", "Can run question sets")]

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    @property
    def knowledge_base_id(self) -> int | None:
        """The knowledge base whose administrators read of it in the audit."""
        first = self.knowledge_bases.order_by("pk").first()
        return first.pk if first is not None else None


class QuestionLanguage(models.TextChoices):
    """What a question is written in."""

    ENGLISH = "en", _("English")
    VIETNAMESE = "vi", _("Vietnamese")
    POLISH = "pl", _("Polish")
    ROMANIAN = "ro", _("Romanian")
    RUSSIAN = "ru", _("Russian")
    MIXED = "mixed", _("mixed")


class QuestionQuerySet(models.QuerySet["Question"]):
    """Questions by who may work on them."""

    def administered_by(self, user: "User") -> Self:
        """Those of sets that the person works on."""
        return self.filter(question_set__in=QuestionSet.objects.administered_by(user))


class Question(models.Model):
    """One question, and what should be found for it.

    `places` are `{"file", "section", "quote"}` objects, each an acceptable answer;
    `is_answerable` False says that the documents do not answer it. `extra` keeps what
    an imported line held besides, so that it is exported as it came.
    """

    question_set = models.ForeignKey(
        QuestionSet,
        verbose_name=_("question set"),
        on_delete=models.CASCADE,
        related_name="questions",
    )
    key = models.CharField(_("id"), max_length=80, blank=True)
    text = models.CharField(_("question"), max_length=1000)
    language = models.CharField(
        _("language"), max_length=5, choices=QuestionLanguage, blank=True
    )
    is_answerable = models.BooleanField(_("in the documents"), default=True)
    places = models.JSONField(_("expected places"), default=list, blank=True)
    notes = models.TextField(_("notes"), blank=True)
    extra = models.JSONField(default=dict, editable=False)
    position = models.PositiveIntegerField(default=0, editable=False)

    objects = QuestionQuerySet.as_manager()

    class Meta:
        """In the order in which they came. A key names one question and language."""

        verbose_name = _("question")
        verbose_name_plural = _("questions")
        ordering = ["question_set", "position", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["question_set", "key", "language"],
                condition=~models.Q(key=""),
                name="question_key_once",
            ),
        ]

    def __str__(self) -> str:
        """Return the question."""
        return self.text


class SetRunState(models.TextChoices):
    """How a run stands."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class SetRunQuerySet(models.QuerySet["SetRun"]):
    """Runs by who may read them."""

    def administered_by(self, user: "User") -> Self:
        """Those that asked only knowledge bases which the person works on now."""
        if user.is_active and user.is_superuser:
            return self
        return self.filter(
            question_set__in=QuestionSet.objects.administered_by(user),
            knowledge_base_ids__contained_by=administered_ids(user),
        )

    def done(self) -> Self:
        """Those that came to their end."""
        return self.filter(state=SetRunState.DONE)


class SetRun(models.Model):
    """One run of a set under one configuration.

    `values` has all settings by name, `tuning_version` the version that was in force;
    `is_trial` tells that other values than those of the version were tried.
    `fingerprint` is the same for runs that must give the same figures. A worker holds a run until `lease_until`; who finds it later
    goes on where its outcomes end. The figures are 0 to 1, None where nothing could be
    judged.
    """

    question_set = models.ForeignKey(
        QuestionSet,
        verbose_name=_("question set"),
        on_delete=models.CASCADE,
        related_name="runs",
    )
    set_version = models.PositiveIntegerField()
    values = models.JSONField(_("settings"), default=dict)
    tuning_version = models.PositiveIntegerField(_("settings version"))
    is_trial = models.BooleanField(_("trial"), default=False)
    label = models.CharField(_("name"), max_length=120, blank=True)
    knowledge_base_ids = ArrayField(models.BigIntegerField(), default=list)
    fingerprint = models.CharField(max_length=64)
    asked_as = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("asked as"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    asked_as_label = models.CharField(_("asked as"), max_length=200)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("requested by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    state = models.CharField(
        _("state"), max_length=8, choices=SetRunState, default=SetRunState.QUEUED
    )
    reason = models.TextField(_("reason"), blank=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    total = models.PositiveIntegerField(_("questions"), default=0)
    done = models.PositiveIntegerField(_("asked"), default=0)
    ndcg = models.FloatField(_("nDCG@10"), null=True)
    recall = models.FloatField(_("recall@5"), null=True)
    refusal_accuracy = models.FloatField(_("refusal accuracy"), null=True)
    refusal_recall = models.FloatField(_("refusal recall"), null=True)
    false_refusal_rate = models.FloatField(_("false refusals"), null=True)
    ranked_questions = models.PositiveIntegerField(default=0)
    judged_questions = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(_("requested"), auto_now_add=True)
    queued_at = models.DateTimeField(_("queued"), default=timezone.now)
    finished_at = models.DateTimeField(_("finished"), null=True)

    objects = SetRunQuerySet.as_manager()

    class Meta:
        """Newest first."""

        verbose_name = _("question set run")
        verbose_name_plural = _("question set runs")
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(
                fields=["question_set", "-created_at"], name="set_run_by_time"
            ),
            models.Index(fields=["fingerprint"], name="set_run_fingerprint"),
        ]

    def __str__(self) -> str:
        """Return which run."""
        return f"{self.question_set_id} #{self.pk}: {self.state}"

    @property
    def percent(self) -> int:
        """How far it is."""
        return 100 * self.done // self.total if self.total else 0


class QuestionOutcome(models.Model):
    """What one run found for one question.

    `hits` are the first ten, as `{"ref", "file", "lines", "branches": {branch: rank},
    "score", "rerank_score", "is_expected"}`. `rank` is that of the first expected one.
    `refused` None: confidence was not judged.
    """

    run = models.ForeignKey(SetRun, on_delete=models.CASCADE, related_name="outcomes")
    question = models.ForeignKey(
        Question, on_delete=models.CASCADE, related_name="outcomes"
    )
    hits = models.JSONField(default=list)
    rank = models.PositiveSmallIntegerField(null=True)
    ndcg = models.FloatField(null=True)
    recall = models.FloatField(null=True)
    refused = models.BooleanField(null=True)
    confidence = models.FloatField(null=True)
    milliseconds = models.FloatField(default=0)

    class Meta:
        """One for each question of a run."""

        verbose_name = _("outcome of a question")
        verbose_name_plural = _("outcomes of questions")
        constraints = [
            models.UniqueConstraint(
                fields=["run", "question"], name="outcome_of_run_and_question_once"
            ),
        ]

    def __str__(self) -> str:
        """Return of what."""
        return f"{self.run_id}/{self.question_id}"


class TuningCheck(models.Model):
    """One set, asked under the settings that hold and under those of a proposal.

    Either run may be an earlier one that must have given the same figures.
    """

    proposal = models.ForeignKey(
        TuningProposal, on_delete=models.CASCADE, related_name="checks"
    )
    before = models.ForeignKey(SetRun, on_delete=models.CASCADE, related_name="+")
    after = models.ForeignKey(SetRun, on_delete=models.CASCADE, related_name="+")

    class Meta:
        """In the order of the sets."""

        verbose_name = _("check of proposed settings")
        verbose_name_plural = _("checks of proposed settings")
        ordering = ["after__question_set__name", "pk"]

    def __str__(self) -> str:
        """Return of what."""
        return f"{self.proposal_id}: {self.before_id} → {self.after_id}"
