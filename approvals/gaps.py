"""Gaps over time: what was asked in vain, answered, still open, and not covered at all.

Figures are of the questions that a member of staff works on; questions that were merged
into another one are not counted again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from django.contrib.postgres.search import SearchQuery
from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet
from django.db.models.functions import Extract, TruncDate, TruncWeek
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import PendingQuestion, Wording
from approvals.models.question import Gap, State
from knowledge.codes import find_codes
from knowledge.models import KnowledgeBase, Layer, Passage, User
from knowledge.models.knowledge_base import Language
from knowledge.terms import content_words, stems_of, words
from retrieval.charts import (
    Bars,
    Line,
    Percentile,
    Row,
    line,
    parted_row,
    this_monday,
    week_bars,
)

MOST_ROWS: Final = 12
MOST_TERMS: Final = 15
# How many terms are looked up, the most asked first, and of how many wordings.
MOST_LOOKED_UP: Final = 120
MOST_WORDINGS: Final = 2000
# A word of fewer letters says little by itself; a code may be as short as it likes.
LEAST_LETTERS: Final = 3
MINUTE, HOUR, DAY = 60, 3600, 86400

# What became of the questions of a layer, in the order in which a bar shows it.
FATES: Final = {
    "found": gettext_lazy("closed"),
    "partly_found": gettext_lazy("not asked again yet"),
    "not_found": gettext_lazy("still open"),
    "waiting": gettext_lazy("waiting"),
}


@dataclass(frozen=True, slots=True)
class Week:
    """The figures of one week; `open` is how many waited at its end.

    `median` is how many seconds half of its answers took from the first ask, None
    without an answer.
    """

    monday: date
    asked: int
    answered: int
    open: int
    median: float | None

    @property
    def took(self) -> str:
        """The median in words."""
        return "" if self.median is None else duration_words(self.median)


@dataclass(frozen=True, slots=True)
class Term:
    """A word of open questions that no passage holds: in how many, asked how often."""

    text: str
    questions: int
    asked: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """All that the page draws; each drawing's figures stand in a table behind it."""

    weeks: Sequence[Week]
    bars: Sequence[Bars]
    line: Line | None
    slowest: str
    median: str
    layers: Sequence[Row]
    terms: Sequence[Term]

    @property
    def has_any(self) -> bool:
        """Whether there is anything to draw."""
        return any(week.asked or week.answered or week.open for week in self.weeks)


def gaps(weeks: int, viewer: User) -> Gaps:
    """Return the figures of the last weeks, for the questions of a member of staff."""
    monday = this_monday()
    mondays = [monday - timedelta(weeks=back) for back in range(weeks - 1, -1, -1)]
    asked = PendingQuestion.objects.administered_by(viewer).exclude(
        state=State.DUPLICATE
    )
    figures = weeks_of(asked, mondays)
    slowest = max((week.median or 0.0 for week in figures), default=0.0)
    answered = answered_since(asked, mondays[0])
    overall = answered.aggregate(median=Percentile("took", 0.5))["median"]
    return Gaps(
        weeks=figures,
        bars=bars_of(figures),
        line=median_line(figures, slowest),
        slowest=duration_words(slowest),
        median="" if overall is None else duration_words(overall),
        layers=layer_rows(asked, mondays[0], viewer),
        terms=uncovered_terms(asked, viewer),
    )


def duration_words(seconds: float) -> str:
    """Return a duration as a person would say it."""
    if seconds < 90 * MINUTE:
        return _("%(number)s min") % {"number": max(1, round(seconds / MINUTE))}
    if seconds < 2 * DAY:
        return _("%(number)s h") % {"number": round(seconds / HOUR)}
    return _("%(number)s days") % {"number": round(seconds / DAY)}


# --- Figures ---------------------------------------------------------------------


def answered_since(
    asked: QuerySet[PendingQuestion], since: date
) -> QuerySet[PendingQuestion]:
    """Return what got its answer from a day on, with the seconds that it took.

    An answer that is changed later was there from its first approval on.
    """
    waited = ExpressionWrapper(
        F("first_approved_at") - F("first_asked_at"), output_field=DurationField()
    )
    rows: QuerySet[PendingQuestion] = (
        asked.filter(first_approved_at__isnull=False)
        .annotate(day=TruncDate("first_approved_at"), took=Extract(waited, "epoch"))
        .filter(day__gte=since)
        .order_by()
    )
    return rows


def weeks_of(asked: QuerySet[PendingQuestion], mondays: Sequence[date]) -> list[Week]:
    """Return each week's figures."""
    rows = asked.annotate(day=TruncDate("first_asked_at")).order_by()
    came = by_week(rows.filter(day__gte=mondays[0]))
    kept = by_week(rows.filter(day__gte=mondays[0]).exclude(state=State.IGNORED))
    answers = answered_since(asked, mondays[0])
    left = by_week(answers)
    medians = {
        row["week"]: row["median"]
        for row in answers.values(week=TruncWeek("day")).annotate(
            median=Percentile("took", 0.5)
        )
    }
    # What waited when the first of the weeks began.
    waiting = (
        rows.filter(day__lt=mondays[0])
        .filter(
            Q(state=State.PENDING, first_approved_at=None)
            | Q(pk__in=answers.values("pk"))
        )
        .count()
    )
    weeks = []
    for monday in mondays:
        waiting += kept.get(monday, 0) - left.get(monday, 0)
        weeks.append(
            Week(
                monday=monday,
                asked=came.get(monday, 0),
                answered=left.get(monday, 0),
                open=waiting,
                median=medians.get(monday),
            )
        )
    return weeks


def by_week(rows: QuerySet[Any]) -> dict[date, int]:
    """Return how many rows there are of each week, by their day."""
    return {
        row["week"]: row["number"]
        for row in rows.values(week=TruncWeek("day")).annotate(number=Count("pk"))
    }


def layer_rows(
    asked: QuerySet[PendingQuestion], since: date, viewer: User
) -> list[Row]:
    """Return what became of the questions by the layer of their answer.

    What waits has no layer yet: it stands under each knowledge base that it was asked
    of and that the viewer works on.
    """
    counts: dict[str, Counter[str]] = {}
    rows = asked.exclude(state=State.IGNORED).annotate(day=TruncDate("first_asked_at"))
    rows = rows.filter(Q(day__gte=since) | Q(state=State.PENDING))
    layers = {
        layer.pk: str(layer)
        for layer in Layer.objects.administered_by(viewer).select_related(
            "knowledge_base"
        )
    }
    bases = dict(
        KnowledgeBase.objects.administered_by(viewer).values_list("pk", "name")
    )
    for answered_at, gap, layer, asked_of in rows.order_by().values_list(
        "first_approved_at", "gap", "layer", "knowledge_base_ids"
    ):
        fate = "waiting" if answered_at is None else fate_of(gap)
        if fate != "waiting":
            names = [layers.get(layer, _("other layers"))]
        else:
            names = [
                _("%(name)s, no layer yet") % {"name": bases[each]}
                for each in asked_of
                if each in bases
            ] or [_("no layer yet")]
        for name in names:
            counts.setdefault(name, Counter())[fate] += 1
    labels = {key: str(label) for key, label in FATES.items()}
    most = max((each.total() for each in counts.values()), default=0)
    busiest = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    return [
        replace(
            parted_row(name, {key: each[key] for key in FATES}, labels, most),
            words=", ".join(
                f"{each[key]} {label}" for key, label in labels.items() if each[key]
            ),
        )
        for name, each in busiest[:MOST_ROWS]
    ]


def fate_of(gap: str) -> str:
    """Return which part of a layer's bar an answered question counts for."""
    return {Gap.CLOSED: "found", Gap.OPEN: "not_found"}.get(Gap(gap), "partly_found")


# --- Terms -----------------------------------------------------------------------


def uncovered_terms(asked: QuerySet[PendingQuestion], viewer: User) -> list[Term]:
    """Return the most asked words of open questions that no passage holds.

    The passages are those of the knowledge bases that the viewer works on.
    """
    still_open = asked.filter(
        Q(state=State.PENDING, first_approved_at=None)
        | Q(first_approved_at__isnull=False, gap=Gap.OPEN)
    )
    found_in = terms_of(
        Wording.objects.filter(pending__in=still_open.order_by())
        .exclude(text="")
        .order_by("-at")
        .values_list("pending_id", "text")[:MOST_WORDINGS]
    )
    often = dict(still_open.order_by().values_list("pk", "asked_count"))
    ranked = sorted(
        (
            Term(text, len(entries), sum(often[entry] for entry in entries))
            for text, entries in found_in.items()
        ),
        key=lambda term: (-term.questions, -term.asked, term.text),
    )
    bases = KnowledgeBase.objects.administered_by(viewer).values("pk")
    passages = Passage.objects.filter(knowledge_base__in=bases)
    terms: list[Term] = []
    for term in ranked[:MOST_LOOKED_UP]:
        if len(terms) == MOST_TERMS:
            break
        if not passages.filter(search_vector=query_of(term.text)).exists():
            terms.append(term)
    return terms


def terms_of(wordings: QuerySet[Wording, tuple[int, str]]) -> dict[str, set[int]]:
    """Return each word and code of wordings with the questions that it is in."""
    found: dict[str, set[int]] = {}
    for entry, text in wordings:
        codes = {code.casefold() for code in find_codes(text)}
        parts = {part for code in codes for part in words(code)}
        for word in content_words(text, list(Language.values)):
            if len(word) >= LEAST_LETTERS and word not in parts:
                found.setdefault(word, set()).add(entry)
        for code in find_codes(text):
            found.setdefault(code, set()).add(entry)
    return found


def query_of(term: str) -> SearchQuery:
    """Return what finds the passages that hold a term, or another form of it."""
    # A term of several parts is a code: all of them must be there.
    parts = [
        " | ".join(f"'{lexeme}'" for lexeme in (word, *stems_of(word)))
        for word in words(term)
    ]
    return SearchQuery(
        " & ".join(f"({part})" for part in parts), search_type="raw", config="simple"
    )


# --- Drawings --------------------------------------------------------------------


def bars_of(weeks: Sequence[Week]) -> list[Bars]:
    """Return the bars of what was asked, answered, and open at each week's end."""
    series: Mapping[str, tuple[str, list[int]]] = {
        "not_found": (_("asked in vain"), [week.asked for week in weeks]),
        "found": (_("answered"), [week.answered for week in weeks]),
        "partly_found": (_("open at the week’s end"), [week.open for week in weeks]),
    }
    most = max((max(values) for _title, values in series.values()), default=0)
    mondays = [week.monday for week in weeks]
    return [
        week_bars(key, title, values, mondays, everything=0, most=most)
        for key, (title, values) in series.items()
    ]


def median_line(weeks: Sequence[Week], slowest: float) -> Line | None:
    """Return the line of the medians, which ends in the last one in words."""
    values = [week.median for week in weeks]
    last = next((value for value in reversed(values) if value is not None), None)
    if last is None:
        return None
    return line("median", duration_words(last), values, slowest)
