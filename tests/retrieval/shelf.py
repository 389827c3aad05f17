"""Passages for tests of the search, with vectors that the test chooses."""

import re
from collections.abc import Sequence

from knowledge.models import (
    EmbeddingSpace,
    KnowledgeBase,
    Layer,
    Passage,
    PassageVector,
    User,
)
from knowledge.models.vectors import SpaceState
from knowledge.permissions import Access, Reader, grant
from tests.factories import (
    KnowledgeBaseFactory,
    LayerFactory,
    UserFactory,
    ready_source,
)

MODEL = "model of four dimensions"
# Passages, their vectors and tokens; the catalogue's word of how many there are is none.
READS_PASSAGES = re.compile(r"\b(?:FROM|JOIN) \"?knowledge_passage")


def reads_passages(sql: str) -> bool:
    """Tell whether a statement reads passages or what hangs on them."""
    return READS_PASSAGES.search(sql) is not None


def open_space() -> EmbeddingSpace:
    """Return the active space, of four dimensions."""
    return EmbeddingSpace.objects.create(
        fingerprint="4" * 64,
        model_id=MODEL,
        dimension=4,
        chunker_version="1",
        context_version="1",
        state=SpaceState.ACTIVE,
    )


def layer_of(slug: str, name: str = "main") -> Layer:
    """Return a layer of a knowledge base, both made if need be."""
    base = KnowledgeBase.objects.filter(slug=slug).first()
    base = base or KnowledgeBaseFactory(slug=slug, name=slug)
    found = Layer.objects.filter(knowledge_base=base, name=name).first()
    return found or LayerFactory(knowledge_base=base, name=name)


def put(
    layer: Layer,
    text: str,
    vector: Sequence[float] | None = None,
    **fields: object,
) -> Passage:
    """Return the one passage of a new source in a layer, with its vector if given."""
    passage = ready_source(text, layer=layer, **fields).passages.get()
    if vector is not None:
        space = EmbeddingSpace.objects.get()
        PassageVector.objects.create(
            space=space,
            passage=passage,
            knowledge_base_id=passage.knowledge_base_id,
            dimension=space.dimension,
            embedded_sha256=passage.embedded_sha256,
            embedding=list(vector),
        )
    return passage


def reader_of(*slugs: str) -> Reader:
    """Return a new person who may search the knowledge bases of these short names."""
    person: User = UserFactory()
    for base in KnowledgeBase.objects.filter(slug__in=slugs):
        grant(base, [Access.SEARCH], to=person, actor=None)
    return Reader(user_id=person.pk)
