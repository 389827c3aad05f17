"""Rows for tests, each valid by itself and unlike every other.

`SourceFactory()` makes the layer and knowledge base it needs; `SourceFactory(layer=…)`
stands in that one. Passages made here have terms and codes, so the keyword and code
branches find them, and no vector: what is to be found by meaning goes through the
product's own ingest (`tests.stored_corpus.bring_in`, or the fixture `corpus`).
"""

import hashlib
from typing import Any

import factory
from django.contrib.auth.models import Group
from django.core.files.base import ContentFile
from django.utils import timezone

from knowledge.codes import stored_codes
from knowledge.models import (
    Document,
    KnowledgeBase,
    Layer,
    Original,
    Passage,
    Source,
    User,
)
from knowledge.models.source import SourceState
from knowledge.reindexing import terms_writer
from knowledge.terms import TERMS_VERSION
from retrieval.models import Calibration

PASSWORD = "a password for tests"


class UserFactory(factory.django.DjangoModelFactory[User]):
    """An active reader whose password is PASSWORD."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda number: f"reader{number}")
    password = factory.django.Password(PASSWORD)
    is_active = True


class StaffFactory(UserFactory):
    """A member of staff; give it a role by `groups=["Editor"]`."""

    is_staff = True

    @factory.post_generation
    def groups(  # factory_boy calls it by position
        self,
        create: bool,  # noqa: FBT001
        names: list[str] | None,
        **_: Any,
    ) -> None:
        """Put the person into the ready roles that are named."""
        if create and names:
            self.groups.set(Group.objects.filter(name__in=names))


class GroupFactory(factory.django.DjangoModelFactory[Group]):
    """A group without members."""

    class Meta:
        model = Group

    name = factory.Sequence(lambda number: f"Group {number}")


class KnowledgeBaseFactory(factory.django.DjangoModelFactory[KnowledgeBase]):
    """A knowledge base that nobody is granted and that has no layer yet."""

    class Meta:
        model = KnowledgeBase

    name = factory.Sequence(lambda number: f"Knowledge base {number}")
    slug = factory.Sequence(lambda number: f"knowledge-base-{number}")


class LayerFactory(factory.django.DjangoModelFactory[Layer]):
    """A layer with the default preset and all languages."""

    class Meta:
        model = Layer

    knowledge_base = factory.SubFactory(KnowledgeBaseFactory)
    name = factory.Sequence(lambda number: f"layer-{number}")


class OriginalFactory(factory.django.DjangoModelFactory[Original]):
    """A stored text file; `content` is its bytes."""

    class Meta:
        model = Original

    class Params:
        content = factory.Sequence(lambda number: f"Original {number}.\n".encode())

    knowledge_base = factory.SubFactory(KnowledgeBaseFactory)
    name = factory.Sequence(lambda number: f"original-{number}.txt")
    kind = "text"
    file = factory.LazyAttribute(lambda row: ContentFile(row.content, name="file"))
    size = factory.LazyAttribute(lambda row: len(row.content))
    sha256 = factory.LazyAttribute(lambda row: hashlib.sha256(row.content).hexdigest())


class SourceFactory(factory.django.DjangoModelFactory[Source]):
    """A source without a file, still pending; see `ready_source` for one with text."""

    class Meta:
        model = Source

    layer = factory.SubFactory(LayerFactory)
    knowledge_base = factory.SelfAttribute("layer.knowledge_base")
    title = factory.Sequence(lambda number: f"Source {number}")
    path = factory.Sequence(lambda number: f"folder/source-{number}.txt")


class DocumentFactory(factory.django.DjangoModelFactory[Document]):
    """The current revision of a source."""

    class Meta:
        model = Document

    source = factory.SubFactory(SourceFactory)
    knowledge_base = factory.SelfAttribute("source.knowledge_base")
    title = factory.SelfAttribute("source.title")
    kind = "text"
    text = factory.Sequence(lambda number: f"Sentence {number}. And another one.\n")
    text_sha256 = factory.LazyAttribute(
        lambda row: hashlib.sha256(row.text.encode()).hexdigest()
    )
    is_current = True


class PassageFactory(factory.django.DjangoModelFactory[Passage]):
    """A passage that holds the whole text of its revision."""

    class Meta:
        model = Passage

    document = factory.SubFactory(DocumentFactory)
    source = factory.SelfAttribute("document.source")
    layer = factory.SelfAttribute("source.layer")
    knowledge_base = factory.SelfAttribute("source.knowledge_base")
    ordinal = 0
    start = 0
    end = factory.LazyAttribute(lambda row: len(row.document.text))
    text = factory.LazyAttribute(lambda row: row.document.text[row.start : row.end])
    context = factory.SelfAttribute("document.title")
    line_start = 1
    line_end = 1
    terms = factory.LazyAttribute(
        lambda row: terms_writer(row.layer, row.text)(row.context, row.text)
    )
    codes = factory.LazyAttribute(
        lambda row: stored_codes(f"{row.context}\n{row.text}")
    )
    embedded_sha256 = factory.LazyAttribute(
        lambda row: hashlib.sha256(f"{row.context}\n{row.text}".encode()).hexdigest()
    )


def ready_source(text: str, *, layer: Layer | None = None, **fields: Any) -> Source:
    """Return a ready source whose text is one passage without a vector."""
    source = SourceFactory(
        layer=layer if layer is not None else LayerFactory(), **fields
    )
    document = DocumentFactory(source=source, text=text)
    PassageFactory(document=document)
    source.passage_count = 1
    source.state = SourceState.READY
    source.terms_version = TERMS_VERSION
    source.indexed_at = source.changed_at = timezone.now()
    source.save()
    return source


class CalibrationFactory(factory.django.DjangoModelFactory[Calibration]):
    """A fit of the reranker's scale in some space."""

    class Meta:
        model = Calibration

    scorer = "4" * 64
    model_id = "model of four dimensions"
    basis = "rerank"
    scale = factory.LazyFunction(
        lambda: {
            "medium": 0.5,
            "high": 0.7,
            "offsets": {"en": 0.01},
            "crossing": 0.1,
        }
    )
    measured = factory.LazyFunction(
        lambda: {"held_out": {"false_refusal_rate": 0.04, "recall": 0.9}}
    )
    answerable = 200
    unanswerable = 100
    sources = "handbook"
