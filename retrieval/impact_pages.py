"""What is quoted of a source, as staff see it.

Figures count everything. Places, words and what quotes them are shown as far as the
person may read them in the portal; the rest is only counted (D27).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.core.paginator import Page, Paginator
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy

from knowledge.admin.parts import is_key
from knowledge.language import language_of
from knowledge.models import KnowledgeBase, Source
from knowledge.models.knowledge_base import Language
from knowledge.permissions import Reader
from knowledge.scoping import actor_of
from retrieval.citations import resolve_ref
from retrieval.differences import Piece, word_changes
from retrieval.fates import Outcome
from retrieval.impact import Figures, Impact, impact_of
from retrieval.models import ImpactReport
from retrieval.quoting import QUOTERS, Shown

MOST_PLACES: Final = 20
MOST_THINGS: Final = 12
MOST_KEYS: Final = 5_000
MOST_CHARACTERS: Final = 1_200

# Outcome -> (how it is drawn, head of its column before, and after it went live).
COLUMNS: Final = (
    (Outcome.VANISHES, gettext_lazy("Vanishes"), gettext_lazy("Vanished")),
    (Outcome.CHANGES, gettext_lazy("Changes"), gettext_lazy("Changed")),
    (Outcome.STANDS, gettext_lazy("Still stands"), gettext_lazy("Still stands")),
    (
        Outcome.BEFORE,
        gettext_lazy("Was out of date before"),
        gettext_lazy("Was out of date before"),
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A quoted span that changes or vanishes, whether kept in a report or not."""

    kind: str
    key: str
    outcome: Outcome
    revision: int
    start: int
    end: int
    now: str

    @property
    def place(self) -> tuple[int, int, int]:
        """Where it is."""
        return self.revision, self.start, self.end


@dataclass(slots=True)
class Place:
    """Words of a source, what becomes of them, and what quotes them.

    `was` and `now` are pieces, those that the other lacks marked; `hides_now` where the
    person may not read what is there now. `things` are what the person may open; `more`
    counts the rest of it, `hidden` what they may not see.
    """

    outcome: Outcome
    ref: str
    now_words: str
    words: str = ""
    url: str = ""
    was: Sequence[Piece] = ()
    now: Sequence[Piece] = ()
    hides_now: bool = False
    language: str = ""
    things: list[Shown] = field(default_factory=list)
    more: int = 0
    hidden: int = 0


def rows_of_report(report: ImpactReport) -> list[Row]:
    """Return the spans of a report."""
    fields = ("kind", "key", "outcome", "revision", "start", "end", "now")
    return [
        Row(kind, key, Outcome(outcome), revision, start, end, now)
        for kind, key, outcome, revision, start, end, now in report.spans.values_list(
            *fields
        )
    ]


def rows_of_impact(impact: Impact) -> list[Row]:
    """Return the spans of what is not kept as a report."""
    return [
        Row(
            each.span.kind,
            each.span.key,
            each.outcome,
            each.span.revision,
            each.span.start,
            each.span.end,
            each.now,
        )
        for each in impact.affected
    ]


def places_of(reader: Reader, rows: Sequence[Row]) -> tuple[list[Place], int]:
    """Return the places that a reader may see, and how many things they may not."""
    shown = shown_things(reader, rows)
    places: dict[tuple[int, int, int], Place] = {}
    hidden: dict[tuple[int, int, int], int] = {}
    unseen = {(row.kind, row.key) for row in rows} - shown.keys()
    for row in rows:
        thing = shown.get((row.kind, row.key))
        if thing is None:
            hidden[row.place] = hidden.get(row.place, 0) + 1
            continue
        place = places.setdefault(
            row.place,
            Place(row.outcome, f"d{row.revision}:{row.start}-{row.end}", row.now),
        )
        place.words = place.words or thing.words
        if len(place.things) < MOST_THINGS:
            place.things.append(thing)
        else:
            place.more += 1
    for at, place in places.items():
        place.hidden = hidden.get(at, 0)
    ordered = sorted(
        places.values(),
        key=lambda place: (place.outcome is not Outcome.VANISHES, -len(place.things)),
    )
    return ordered, len(unseen)


def shown_things(
    reader: Reader, rows: Sequence[Row]
) -> Mapping[tuple[str, str], Shown]:
    """Return, by kind and key, what quotes something and is open to a reader."""
    keys: dict[str, dict[str, None]] = {}
    for row in rows:
        keys.setdefault(row.kind, {})[row.key] = None
    return {
        (kind, key): thing
        for kind, known in keys.items()
        if kind in QUOTERS
        for key, thing in QUOTERS[kind].shown(reader, list(known)[:MOST_KEYS]).items()
    }


def with_words(reader: Reader, places: Sequence[Place], *, reads_now: bool) -> None:
    """Add to places what they said and say, as far as the reader may read it.

    What quotes a place may be shown to who may not read the source itself: `reads_now`
    tells whether they may read its new text.
    """
    for place in places:
        if not reads_now:
            place.hides_now, place.now_words = place.now_words != "", ""
        found = resolve_ref(reader, place.ref)
        if found is not None:
            document, start, end = found
            place.url = reverse("portal:read", args=[place.ref]) + "#cited"
            place.words = place.words or document.text[start:end]
        words = Truncator(place.words).chars(MOST_CHARACTERS)
        now = Truncator(place.now_words).chars(MOST_CHARACTERS)
        place.was, place.now = word_changes(words, now)
        if place.hides_now:
            place.was = tuple(replace(piece, changed=False) for piece in place.was)
        place.language = language_of(place.words or place.now_words, Language.values)


def figure_table(figures: Figures, *, is_live: bool) -> dict[str, Any]:
    """Return the figures as a table: heads of the columns, and a row for each kind."""
    return {
        "heads": [after if is_live else before for _each, before, after in COLUMNS],
        "rows": [
            {
                "name": quoter.name,
                "figures": [
                    figures.get(kind, {}).get(str(outcome), 0)
                    for outcome, _before, _after in COLUMNS
                ],
            }
            for kind, quoter in QUOTERS.items()
        ],
        "total": affected_by(figures),
    }


def affected_by(figures: Figures) -> int:
    """Return how many things quote words that change or vanish."""
    return sum(
        count
        for row in figures.values()
        for outcome, count in row.items()
        if outcome in {Outcome.CHANGES, Outcome.VANISHES}
    )


def page_context(
    request: HttpRequest,
    figures: Figures,
    rows: Sequence[Row],
    *,
    knowledge_base_id: int,
    is_live: bool,
) -> dict[str, Any]:
    """Return what the list of an impact's places is drawn from.

    `knowledge_base_id` is the knowledge base that the source's text is in, now or as it
    is looked at.
    """
    reader = Reader.for_user(actor_of(request))
    reads = KnowledgeBase.objects.visible_to(reader).filter(pk=knowledge_base_id)
    places, hidden = places_of(reader, rows)
    pages = Paginator(places, MOST_PLACES)
    number = request.GET.get("page", "")
    page: Page[Place] = pages.get_page(int(number) if is_key(number) else 1)
    with_words(reader, list(page.object_list), reads_now=reads.exists())
    return {
        "table": figure_table(figures, is_live=is_live),
        "is_live": is_live,
        "pages": page,
        "numbers": list(pages.get_elided_page_range(page.number)),
        "places": page.object_list,
        "hidden": hidden,
    }


def removal_warning(request: HttpRequest, source: Source) -> str:
    """Return what the page says that asks whether a source is to be deleted."""
    impact = impact_of(source, None)
    return render_to_string(
        "admin/retrieval/impactreport/warning.html",
        {
            "source": source,
            "table": figure_table(impact.figures, is_live=False),
            "url": reverse("admin:retrieval_impactreport_removal", args=[source.pk]),
        },
        request,
    )
