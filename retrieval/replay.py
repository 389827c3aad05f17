"""A logged search seen again: what a viewer may see of it, and how it would go now.

Whoever reads the log reads no passage by that: texts, titles and refs come through the
viewer's own visibility, and what they may not read is shown as a place without a name,
as is what is gone (D25).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from knowledge.models import KnowledgeBase, Layer
from knowledge.permissions import Reader
from knowledge.tokens import reader_of as token_reader
from retrieval.citations import cite, cited_rows
from retrieval.fusion import Candidate, ranked
from retrieval.models import SearchLog
from retrieval.passages import find_span
from retrieval.reach import Reach
from retrieval.results import Branch, Citation, SearchResult
from retrieval.search import SearchInputError, search
from retrieval.tuning import Tuning

# Candidates shown beyond what was returned.
NEXT = 10


@dataclass(frozen=True, slots=True)
class Place:
    """Where a branch put a passage: its rank from 1 and the branch's raw score."""

    rank: int
    score: float
    relaxed: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """One passage of a search, as far as a viewer may see it.

    `citation` is None and `text` empty for what they may not read and for what is gone.
    `fused_rank` is its place among all candidates, `rank` the one it came back at,
    None where it did not.
    """

    rank: int | None
    ref: str
    citation: Citation | None
    text: str
    passage_id: int | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    fused_rank: int | None = None
    score: float | None = None
    similarity: float | None = None
    rerank_score: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it came since the question names its section."""
        return self.passage_id is None


@dataclass(frozen=True, slots=True)
class Logged:
    """A logged search as a viewer may see it.

    `hits` are what came back, `rest` the candidates that came next, `left` how many of
    those there were in all.
    """

    row: SearchLog
    hits: Sequence[Shown]
    rest: Sequence[Shown]
    left: int

    @property
    def readable(self) -> list[Shown]:
        """What came back and may be read."""
        return [each for each in self.hits if each.citation is not None]


@dataclass(frozen=True, slots=True)
class Texts:
    """What a viewer may read now of some passages, by passage id and by ref."""

    citations: Mapping[int, Citation]
    texts: Mapping[int, str]

    @classmethod
    def of(cls, viewer: Reader, passage_ids: Iterable[int]) -> "Texts":
        """Read them, in two queries."""
        wanted = list(passage_ids)
        reach = Reach.of(viewer)
        if reach.is_empty or not wanted:
            return cls({}, {})
        rows = cited_rows(reach, wanted)
        return cls(cite(reach, rows), {row.passage_id: row.text for row in rows})


def logged(row: SearchLog, viewer: Reader) -> Logged:
    """Return a logged search with what the viewer may read of it now."""
    returned = [hit["passage"] for hit in row.hits if hit["passage"] is not None]
    left = [pk for pk in row.fused if pk not in set(returned)]
    rest = list(dict.fromkeys([*left[:NEXT], *row.withheld]))
    texts = Texts.of(viewer, [*returned, *rest])
    places = places_of(row)
    order = {pk: place for place, pk in enumerate(row.fused, start=1)}
    return Logged(
        row=row,
        hits=[
            logged_hit(hit, rank, texts, places, order, row.reranked, viewer)
            for rank, hit in enumerate(row.hits, start=1)
        ],
        rest=[
            Shown(
                rank=None,
                ref="",
                citation=texts.citations.get(pk),
                text=texts.texts.get(pk, ""),
                passage_id=pk,
                places=places.get(pk, {}),
                fused_rank=order.get(pk),
                rerank_score=row.reranked.get(str(pk)),
            )
            for pk in rest
        ],
        left=len(left),
    )


def logged_hit(
    hit: Mapping[str, object],
    rank: int,
    texts: Texts,
    places: Mapping[int, Mapping[str, Place]],
    order: Mapping[int, int],
    reranked: Mapping[str, float],
    viewer: Reader,
) -> Shown:
    """Return one hit of the log; what is no passage any more is read by its ref."""
    pk, ref = hit["passage"], str(hit["ref"])
    citation: Citation | None = None
    text = ""
    if isinstance(pk, int) and pk in texts.citations:
        citation, text = texts.citations[pk], texts.texts[pk]
    elif (span := find_span(viewer, ref)) is not None:
        citation, text = span.citation, span.text
    key = pk if isinstance(pk, int) else None
    return Shown(
        rank=rank,
        ref=ref,
        citation=citation,
        text=text,
        passage_id=key,
        places=places.get(key, {}) if key is not None else {},
        fused_rank=order.get(key) if key is not None else None,
        score=as_number(hit["score"]),
        similarity=as_number(hit["similarity"]),
        rerank_score=reranked.get(str(key)),
    )


def as_number(value: object) -> float | None:
    """Return a logged number."""
    return float(value) if isinstance(value, int | float) else None


def places_of(row: SearchLog) -> dict[int, dict[str, Place]]:
    """Return the places of each candidate, by branch."""
    found: dict[int, dict[str, Place]] = {}
    for branch, rows in row.rankings.items():
        candidates = [Candidate(pk, score, bool(part)) for pk, score, part in rows]
        for each, rank in ranked(candidates):
            found.setdefault(each.passage_id, {})[branch] = Place(
                rank, each.score, each.relaxed
            )
    return found


# --- Once more -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replay:
    """The same search run now: its hits as a viewer may see them, or why there are none.

    `why` is a sentence where it could not be run.
    """

    hits: Sequence[Shown] = ()
    result: SearchResult | None = None
    why: str = ""


def replay(row: SearchLog, viewer: Reader, tuning: Tuning, *, count: int) -> Replay:
    """Run a logged search again as the same reader; it leaves no trace (R19).

    The reader's grants are those of now. `count` is how many passages are asked for.
    """
    reader = reader_again(row)
    if reader is None:
        return Replay(why=_("Whoever asked is not here any more."))
    names = layers_again(row, reader)
    if names is not None and not names:
        return Replay(
            why=_("The layers it was about are gone, or closed to whoever asked.")
        )
    try:
        result = search(
            reader,
            row.query,
            layers=names,
            top_k=count,
            metadata_filter=row.metadata_filter,
            tuning=tuning,
        )
    except SearchInputError as refused:
        return Replay(why=refused.message)
    return Replay(shown_result(result, viewer), result)


def reader_again(row: SearchLog) -> Reader | None:
    """Return the reader of a logged search, within the scope of their token."""
    if row.token is not None:
        return token_reader(row.token)
    return Reader(user_id=row.person_id) if row.person_id is not None else None


def layers_again(row: SearchLog, reader: Reader) -> list[str] | None:
    """Return the full names of the layers that a logged search was about; None: all."""
    if row.layers is None:
        return None
    layers = Layer.objects.visible_to(reader).filter(pk__in=row.layers)
    return [str(layer) for layer in layers.select_related("knowledge_base")]


def shown_result(result: SearchResult, viewer: Reader) -> list[Shown]:
    """Return the hits of a result as far as the viewer may read them."""
    bases = set(KnowledgeBase.objects.visible_to(viewer).values_list("slug", flat=True))
    texts = Texts.of(
        viewer, [hit.passage_id for hit in result.hits if hit.passage_id is not None]
    )
    shown = []
    for rank, hit in enumerate(result.hits, start=1):
        pk = hit.passage_id
        is_open = (
            pk in texts.citations
            if pk is not None
            else hit.citation.knowledge_base in bases
        )
        shown.append(
            Shown(
                rank=rank,
                ref=hit.ref,
                citation=hit.citation if is_open else None,
                text=hit.text if is_open else "",
                passage_id=pk,
                places={
                    str(branch): Place(each.rank, each.score, each.relaxed)
                    for branch, each in hit.branches.items()
                },
                score=hit.score,
                similarity=hit.similarity,
                rerank_score=hit.rerank_score,
            )
        )
    return shown


def moves(before: Sequence[Shown], after: Sequence[Shown]) -> dict[str, int | None]:
    """Return by ref how many places each hit of `after` rose; None: it is new."""
    ranks = {each.ref: each.rank for each in before}
    return {
        each.ref: None
        if (rank := ranks.get(each.ref)) is None or each.rank is None
        else rank - each.rank
        for each in after
    }


def branch_names() -> dict[str, str]:
    """Return what the pages call each branch."""
    return {
        str(Branch.MEANING): _("meaning"),
        str(Branch.KEYWORDS): _("words"),
        str(Branch.CODES): _("codes"),
    }
