"""How many rows visibility took out of a logged search: a number for auditors."""

from knowledge.models import KnowledgeBase, Passage
from retrieval.embedding import embed_now
from retrieval.engine import find
from retrieval.journal import Journal
from retrieval.models import SearchLog
from retrieval.reach import Reach, reader_of
from retrieval.tuning import current


def count_hidden(row: SearchLog) -> int:
    """Count the candidates over all knowledge bases that the reader may not search.

    A number for auditors: how many rows visibility took out of the branches' best. It
    is counted beside the search and never in it, whose time would tell of them, and on
    the corpus of now. What is remembered about people is not looked at.
    """
    everything = frozenset(KnowledgeBase.objects.shared().values_list("pk", flat=True))
    journal = Journal()
    found = find(
        Reach.of(reader_of(everything, None)),
        row.query,
        tuning=current(),
        count=1,
        journal=journal,
        vector=lambda: embed_now(row.query, journal),
    )
    ids = {each.passage_id for each in found.fused}
    beyond = everything.difference(row.knowledge_bases)
    return Passage.objects.filter(pk__in=ids, knowledge_base_id__in=beyond).count()
