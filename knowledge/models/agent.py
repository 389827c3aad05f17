"""Agent clients: programs that a language model drives, acting for a person."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from knowledge.models.person import User

# What an agent may ask for in one search, whatever the deployment gives (R4).
MOST_RESULTS = 20


class AgentSearchType(models.TextChoices):
    """Which ways of finding an agent's searches use; never more than all searches."""

    SEMANTIC = "semantic", _("meaning alone")
    LEXICAL = "lexical", _("words and codes alone")
    HYBRID = "hybrid", _("meaning, words and codes")


class AgentClientQuerySet(models.QuerySet["AgentClient"]):
    """Agent clients by who looks after them."""

    def administered_by(self, user: "User") -> Self:
        """All for a superuser, else those that act for the person."""
        return self if user.is_superuser else self.filter(owner=user)


class AgentClient(models.Model):
    """A program that a model drives: what it is bound to, and how little it may ask.

    What it searches are its bindings, as far as its owner may search them at that
    moment. The settings only narrow the deployment's, for all knowledge bases alike
    (R3): empty means as everywhere.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("acts for"),
        on_delete=models.CASCADE,
        related_name="agent_clients",
        help_text=_("It never finds what this person may not search."),
    )
    name = models.CharField(_("name"), max_length=120)
    knowledge_bases = models.ManyToManyField(
        KnowledgeBase,
        verbose_name=_("bound to"),
        blank=True,
        related_name="agent_clients",
        help_text=_("The knowledge bases that its turns search. It can name none."),
    )
    search_enabled = models.BooleanField(
        _("may search"), default=True, help_text=_("Off: it finds nothing, at once.")
    )
    most_results = models.PositiveSmallIntegerField(
        _("most results"),
        default=MOST_RESULTS,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_RESULTS)],
        help_text=_(
            "How many passages a search may ask for in each knowledge base: 1 to 20."
        ),
    )
    recalls_memory = models.BooleanField(
        _("recalls memory"),
        default=False,
        help_text=_("Its turns also find what is remembered about that person."),
    )
    search_type = models.CharField(
        _("searches by"), max_length=8, choices=AgentSearchType, blank=True
    )
    count = models.PositiveSmallIntegerField(
        _("results if none are asked for"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_RESULTS)],
        help_text=_("Only a lower count than the deployment's has an effect."),
    )
    similarity_floor = models.FloatField(
        _("least similarity"),
        null=True,
        blank=True,
        validators=[MinValueValidator(-1), MaxValueValidator(1)],
        help_text=_(
            "Cosine below which meaning alone finds nothing. Only a higher one than "
            "the deployment's has an effect."
        ),
    )
    keyword_weight = models.FloatField(
        _("weight of words"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(10)],
        help_text=_("Only a lower weight than the deployment's has an effect."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AgentClientQuerySet.as_manager()

    class Meta:
        """An owner has one client of a name."""

        verbose_name = _("agent client")
        verbose_name_plural = _("agent clients")
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"],
                name="agent_client_name_once",
                violation_error_message=_(
                    "This person already has an agent client of that name."
                ),
            ),
            models.CheckConstraint(
                condition=models.Q(most_results__range=(1, MOST_RESULTS)),
                name="agent_client_most_results_1_to_20",
            ),
            models.CheckConstraint(
                condition=models.Q(count__isnull=True)
                | models.Q(count__range=(1, MOST_RESULTS)),
                name="agent_client_count_1_to_20",
            ),
            models.CheckConstraint(
                condition=models.Q(search_type__in=["", *AgentSearchType.values]),
                name="agent_client_search_type_known",
            ),
        ]

    def __str__(self) -> str:
        """Return the name."""
        return self.name
