"""Writing the keyword branch's terms and codes of stored passages anew.

They follow from the text alone, so nothing is read, cut or embedded again, and refs,
vectors and citations stay as they are.
"""

from collections.abc import Callable
from functools import partial

from django.db import transaction

from knowledge.actions import touch
from knowledge.codes import stored_codes
from knowledge.language import language_of
from knowledge.models import Layer, Passage, Source
from knowledge.terms import TERMS_VERSION, index_terms

# Fields of a layer on which its passages' terms depend.
TERMS_DEPEND_ON = frozenset({"languages", "matches_without_accents"})
BATCH = 500


def terms_writer(layer: Layer, document_text: str) -> Callable[[str, str], str]:
    """Return what gives the terms of a passage from its context and text."""
    return partial(
        index_terms,
        languages=layer.languages,
        document_language=language_of(document_text, layer.languages),
        without_accents=layer.matches_without_accents,
    )


def ask_for_terms(layer: Layer) -> None:
    """Have the worker write the terms of a layer's passages anew."""
    Source.objects.filter(layer=layer).update(terms_version=0)
    touch(layer.knowledge_base_id)


def rewrite_terms(*, progress: Callable[[str], object] = str) -> int:
    """Bring the passages of every source to the present version; returns how many.

    Each source is one transaction: a search sees its old terms or its new ones. A
    source that is being published meanwhile is left to its publishing.
    """
    count = 0
    stale = Source.objects.exclude(terms_version=TERMS_VERSION).order_by("pk")
    for pk in list(stale.values_list("pk", flat=True)):
        with transaction.atomic():
            source = (
                Source.objects.select_for_update(skip_locked=True, of=("self",))
                .select_related("layer")
                .exclude(terms_version=TERMS_VERSION)
                .filter(pk=pk)
                .first()
            )
            if source is None:
                continue
            rewritten = rewrite_terms_of(source)
            Source.objects.filter(pk=pk).update(terms_version=TERMS_VERSION)
            if rewritten:
                touch(source.knowledge_base_id)
                progress(f"{source.path}: {rewritten}")
            count += rewritten
    return count


def rewrite_terms_of(source: Source) -> int:
    """Write the terms and codes of one source's passages; returns how many."""
    document = source.documents.filter(is_current=True).only("text").first()
    if document is None:
        return 0
    passages = list(
        Passage.objects.filter(source=source).only("context", "text", "terms", "codes")
    )
    # An older version kept no text but that of the passages.
    text = document.text or "\n\n".join(passage.text for passage in passages)
    terms_of = terms_writer(source.layer, text)
    for passage in passages:
        passage.terms = terms_of(passage.context, passage.text)
        passage.codes = stored_codes(f"{passage.context}\n{passage.text}")
    Passage.objects.bulk_update(passages, ["terms", "codes"], batch_size=BATCH)
    return len(passages)
