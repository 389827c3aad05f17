"""Knowledge bases, the unit of visibility, and their layers."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from knowledge.chunking.chunks import PRESETS, Preset
from knowledge.models.department import Department

if TYPE_CHECKING:
    from knowledge.models.person import User
    from knowledge.permissions import Reader


class KnowledgeBaseQuerySet(models.QuerySet["KnowledgeBase"]):
    """Knowledge bases by what a reader may do with them."""

    def listed_to(self, reader: "Reader") -> Self:
        """Those whose existence the reader may know of."""
        return self.filter(pk__in=reader.listed) if reader.listed else self.none()

    def visible_to(self, reader: "Reader") -> Self:
        """Those whose passages the reader may search and read."""
        if not reader.searchable:
            return self.none()
        return self.filter(pk__in=reader.searchable)

    def shared(self) -> Self:
        """Those that are not one person's memory."""
        return self.filter(owner__isnull=True)

    def administered_by(self, user: "User") -> Self:
        """Those a member of staff works on: all for a superuser, else the readable.

        What is remembered about a person is in none of them: that is between the
        person and the portal, whoever administers it.
        """
        from knowledge.permissions import Reader

        if user.is_active and user.is_superuser:
            return self.shared()
        return self.shared().visible_to(Reader.for_user(user))


class KnowledgeBase(models.Model):
    """The unit of visibility, of binding and of ownership (D1).

    One with an `owner` holds what is remembered about that person: no grant opens it to
    anybody, and no list of knowledge bases has it (S3-VIS-07).
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    slug = models.SlugField(
        _("short name"),
        max_length=60,
        unique=True,
        help_text=_("Names it in the API, as in knowledge-base/layer."),
    )
    description = models.TextField(_("description"), blank=True)
    department = models.ForeignKey(
        Department,
        verbose_name=_("department"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="knowledge_bases",
        help_text=_("Pays for indexing its documents."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="memory",
        null=True,
        editable=False,
    )
    # Rises with every change that a search could see, so that whatever is cached by
    # it ends at once.
    version = models.PositiveBigIntegerField(default=1, editable=False)

    objects = KnowledgeBaseQuerySet.as_manager()

    class Meta:
        """The object permissions; as model-level permissions they open nothing."""

        verbose_name = _("knowledge base")
        verbose_name_plural = _("knowledge bases")
        ordering = ["name"]
        permissions = [
            ("list_knowledgebase", "Can see that a knowledge base exists"),
            ("search_knowledgebase", "Can search a knowledge base"),
            ("deny_knowledgebase", "Sees nothing of a knowledge base"),
            ("grant_knowledgebase", "Can grant and deny knowledge bases"),
        ]

    def __str__(self) -> str:
        """Return the name."""
        return self.name


class KnowledgeBaseUserAccess(UserObjectPermissionBase):
    """A grant or deny for one person; dies with the knowledge base."""

    content_object = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="user_access"
    )

    class Meta(UserObjectPermissionBase.Meta):
        """Plain words for the admin."""

        verbose_name = _("access of a person")
        verbose_name_plural = _("access of people")


class KnowledgeBaseGroupAccess(GroupObjectPermissionBase):
    """A grant or deny for one group; dies with the knowledge base."""

    content_object = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="group_access"
    )

    class Meta(GroupObjectPermissionBase.Meta):
        """Plain words for the admin."""

        verbose_name = _("access of a group")
        verbose_name_plural = _("access of groups")


class AnswerMode(models.TextChoices):
    """Who words an answer from this layer."""

    GROUNDED = "grounded", _("grounded: the client writes from the passages")
    EXTRACTIVE = "extractive", _("extractive: only the documents' own sentences")


class ChunkPreset(models.TextChoices):
    """How a layer's documents are cut into passages (R9)."""

    TEXT = "text", _("text: 1,200 characters, 150 overlapping")
    VOICE = "voice", _("voice: 500 tokens, 50 overlapping")
    VOICE_WIDE = "voice-wide", _("voice, wide: 500 tokens, 100 overlapping")


class Language(models.TextChoices):
    """The languages with their own reading rules."""

    ENGLISH = "en", _("English")
    VIETNAMESE = "vi", _("Vietnamese")
    POLISH = "pl", _("Polish")
    ROMANIAN = "ro", _("Romanian")
    RUSSIAN = "ru", _("Russian")


def all_languages() -> list[str]:
    """Return every language: the default of a layer."""
    return list(Language.values)


class LayerQuerySet(models.QuerySet["Layer"]):
    """Layers by reader, and by who works on them."""

    def administered_by(self, user: "User") -> Self:
        """Those of the knowledge bases that a member of staff works on."""
        return self.filter(
            knowledge_base__in=KnowledgeBase.objects.administered_by(user)
        )

    def visible_to(self, reader: "Reader") -> Self:
        """Those of the knowledge bases that the reader may search."""
        if not reader.searchable:
            return self.none()
        return self.filter(knowledge_base_id__in=reader.searchable)


class Layer(models.Model):
    """A part of one knowledge base that is read and answered in one way (D1)."""

    knowledge_base = models.ForeignKey(
        KnowledgeBase,
        verbose_name=_("knowledge base"),
        on_delete=models.CASCADE,
        related_name="layers",
    )
    name = models.SlugField(_("name"), max_length=60)
    description = models.TextField(_("description"), blank=True)
    answer_mode = models.CharField(
        _("answer mode"),
        max_length=10,
        choices=AnswerMode,
        default=AnswerMode.GROUNDED,
    )
    chunk_preset = models.CharField(
        _("passage size"), max_length=10, choices=ChunkPreset, default=ChunkPreset.TEXT
    )
    languages = ArrayField(
        models.CharField(max_length=2, choices=Language),
        verbose_name=_("languages"),
        default=all_languages,
    )
    matches_without_accents = models.BooleanField(
        _("matches without accents"),
        default=False,
        help_text=_(
            "A search for regulamin pozyczek then finds regulamin pożyczek here, and "
            "says so. Not for Vietnamese, where other marks make another word."
        ),
    )
    archived_patterns = ArrayField(
        models.CharField(max_length=200),
        verbose_name=_("archived patterns"),
        default=list,
        blank=True,
        help_text=_("Paths that match, such as archive/*, are labelled as archived."),
    )
    routing_patterns = ArrayField(
        models.CharField(max_length=200),
        verbose_name=_("routing patterns"),
        default=list,
        blank=True,
        help_text=_("Searches that hold one of these words go to this layer first."),
    )

    objects = LayerQuerySet.as_manager()

    class Meta:
        """A layer's name says nothing outside its knowledge base."""

        verbose_name = _("layer")
        verbose_name_plural = _("layers")
        ordering = ["knowledge_base", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "name"],
                name="layer_name_once",
                violation_error_message=_(
                    "This knowledge base already has a layer of that name."
                ),
            ),
            models.UniqueConstraint(
                fields=["id", "knowledge_base"], name="layer_in_knowledge_base"
            ),
            models.CheckConstraint(
                condition=models.Q(answer_mode__in=AnswerMode.values),
                name="layer_answer_mode_known",
            ),
            models.CheckConstraint(
                condition=models.Q(chunk_preset__in=ChunkPreset.values),
                name="layer_chunk_preset_known",
            ),
            models.CheckConstraint(
                condition=models.Q(matches_without_accents=False)
                | ~models.Q(languages__contains=[Language.VIETNAMESE]),
                name="layer_keeps_vietnamese_marks",
                violation_error_message=_(
                    "A layer with Vietnamese among its languages cannot match without "
                    "accents: other marks make another word. Take Vietnamese out of "
                    "its languages, or leave the option off."
                ),
            ),
        ]

    def __str__(self) -> str:
        """Return `knowledge-base/layer`, the form the API takes."""
        return f"{self.knowledge_base.slug}/{self.name}"

    @property
    def preset(self) -> Preset:
        """The sizes that documents of this layer are cut by."""
        return PRESETS[self.chunk_preset]
