"""Searches over time as figures, and as drawings of them that read in grey.

A drawing is numbers only: its shapes in a box of its own units, written with a point,
whatever the page's language. Each figure stands in a table behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from django.db.models import Aggregate, Count, FloatField, QuerySet, Sum
from django.db.models.functions import TruncDate, TruncWeek
from django.utils import timezone
from django.utils.translation import gettext as _

from knowledge.models import Layer, User
from retrieval.models import SearchDay, SearchLog
from retrieval.models.log import Status

# The box of a drawing, and the room for words above and below its shapes.
WIDTH: Final = 360
HEIGHT: Final = 96
ABOVE: Final = 18
BELOW: Final = 18
# Room at the end of a line for its name.
BESIDE: Final = 78
GAP: Final = 0.25
LEAST_APART: Final = 14
MOST_LAYERS: Final = 12


class Percentile(Aggregate):
    """The value that a share of the rows do not exceed."""

    function = "PERCENTILE_CONT"
    output_field = FloatField()

    def __init__(self, expression: str, share: float) -> None:
        """Take the share from 0 to 1."""
        super().__init__(expression, share=f"{share:g}")
        self.template = (
            "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """A rectangle, in the drawing's units; `note` says what it stands for."""

    x: str
    y: str
    width: str
    height: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """A value for each week as bars: what it is, its sum, and its largest one."""

    key: str
    title: str
    total: int
    share: int
    most: int
    shapes: Sequence[Shape]


@dataclass(frozen=True, slots=True)
class Line:
    """A line over the weeks, with its name and last value at its end."""

    key: str
    name: str
    points: str
    x: str
    y: str
    label_y: str
    last: float


@dataclass(frozen=True, slots=True)
class Row:
    """One layer's searches by outcome, as a bar of parts."""

    name: str
    counts: Mapping[str, int]
    total: int
    words: str
    parts: Sequence[tuple[str, Shape]]


@dataclass(frozen=True, slots=True)
class Week:
    """The figures of one week; latencies (ms) are None without a logged search."""

    monday: date
    counts: Mapping[str, int]
    median: float | None
    slow: float | None

    @property
    def total(self) -> int:
        """All of its searches."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Charts:
    """All figures of a page, and their drawings."""

    weeks: Sequence[Week]
    outcomes: Sequence[Bars]
    lines: Sequence[Line]
    slowest: float
    layers: Sequence[Row]

    @property
    def total(self) -> int:
        """All searches."""
        return sum(week.total for week in self.weeks)


def charts(weeks: int, viewer: User) -> Charts:
    """Return the figures of the last weeks; layers out of scope stand together."""
    monday = this_monday()
    mondays = [monday - timedelta(weeks=back) for back in range(weeks - 1, -1, -1)]
    figures = figures_of(mondays)
    slowest = max((week.slow or 0.0 for week in figures), default=0.0)
    return Charts(
        weeks=figures,
        outcomes=[outcome_bars(status, figures) for status in Status],
        lines=lines_of(figures, slowest),
        slowest=slowest,
        layers=layer_rows(mondays[0], viewer),
    )


def this_monday() -> date:
    """Return the first day of the current week."""
    today = timezone.localdate()
    return today - timedelta(days=today.weekday())


# --- Figures ---------------------------------------------------------------------


def figures_of(mondays: Sequence[date]) -> list[Week]:
    """Return each week's counts and latencies, from the log and what is left of it."""
    log = SearchLog.objects.annotate(day=TruncDate("at")).filter(day__gte=mondays[0])
    counts: dict[tuple[date, str], int] = {}
    by_week = (
        log.order_by()
        .values("status", week=TruncWeek("day"))
        .annotate(number=Count("pk"))
    )
    older = (
        SearchDay.objects.filter(day__gte=mondays[0])
        .order_by()
        .values("status", week=TruncWeek("day"))
        .annotate(number=Sum("searches"))
    )
    for row in (*by_week, *older):
        key = (row["week"], row["status"])
        counts[key] = counts.get(key, 0) + row["number"]
    latency = {
        row["week"]: (row["median"], row["slow"])
        for row in log.order_by()
        .values(week=TruncWeek("day"))
        .annotate(median=Percentile("total_ms", 0.5), slow=Percentile("total_ms", 0.95))
    }
    return [
        Week(
            monday=monday,
            counts={str(status): counts.get((monday, status), 0) for status in Status},
            median=latency.get(monday, (None, None))[0],
            slow=latency.get(monday, (None, None))[1],
        )
        for monday in mondays
    ]


def layer_rows(since: date, viewer: User) -> list[Row]:
    """Return the searches by the layer of their best hit, the busiest first."""
    log = SearchLog.objects.annotate(day=TruncDate("at")).filter(day__gte=since)
    counts: dict[str, dict[str, int]] = {}
    names = {
        layer.pk: str(layer)
        for layer in Layer.objects.administered_by(viewer).select_related(
            "knowledge_base"
        )
    }
    for row in (
        *counted(log, Count("pk")),
        *counted(SearchDay.objects.filter(day__gte=since), Sum("searches")),
    ):
        name = (
            _("nothing came back")
            if row["layer"] is None
            else names.get(row["layer"], _("other knowledge bases"))
        )
        of_layer = counts.setdefault(name, {str(status): 0 for status in Status})
        of_layer[row["status"]] += row["number"]
    most = max((sum(each.values()) for each in counts.values()), default=0)
    busiest = sorted(counts.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return [layer_row(name, each, most) for name, each in busiest[:MOST_LAYERS]]


def counted(rows: QuerySet[Any], number: Aggregate) -> QuerySet[Any, dict[str, Any]]:
    """Return the rows' numbers by layer and outcome."""
    found: QuerySet[Any, dict[str, Any]] = (
        rows.order_by().values("layer", "status").annotate(number=number)
    )
    return found


# --- Drawings --------------------------------------------------------------------


def at(number: float) -> str:
    """Return a number as a drawing takes it."""
    return f"{number:.1f}"


def outcome_bars(status: Status, weeks: Sequence[Week]) -> Bars:
    """Return one outcome's bars; each outcome has its own, with the scale of all."""
    values = [week.counts[status] for week in weeks]
    return week_bars(
        str(status),
        str(status.label),
        values,
        [week.monday for week in weeks],
        everything=sum(week.total for week in weeks),
        # One scale for all three, so that their heights can be compared.
        most=max((max(week.counts.values()) for week in weeks), default=0),
    )


def week_bars(
    key: str,
    title: str,
    values: Sequence[int],
    mondays: Sequence[date],
    *,
    everything: int,
    most: int,
) -> Bars:
    """Return a bar for each week; `most` is the value that fills the height."""
    step = WIDTH / max(len(values), 1)
    room = HEIGHT - ABOVE - BELOW
    shapes = [
        Shape(
            x=at(place * step + step * GAP / 2),
            y=at(HEIGHT - BELOW - height),
            width=at(step * (1 - GAP)),
            height=at(height),
            note=_("Week of %(monday)s: %(count)s")
            % {"monday": monday.isoformat(), "count": value},
        )
        for place, (monday, value) in enumerate(zip(mondays, values, strict=True))
        for height in [room * value / most if most else 0.0]
    ]
    total = sum(values)
    return Bars(
        key=key,
        title=title,
        total=total,
        share=round(100 * total / everything) if everything else 0,
        most=max(values, default=0),
        shapes=shapes,
    )


def lines_of(weeks: Sequence[Week], slowest: float) -> list[Line]:
    """Return the lines of the median and of the 95th percentile."""
    drawn = [
        line("slow", _("95 of 100"), [week.slow for week in weeks], slowest),
        line("median", _("half"), [week.median for week in weeks], slowest),
    ]
    lines = [each for each in drawn if each is not None]
    if len(lines) == 2:
        upper, lower = (float(each.label_y) for each in lines)
        if lower - upper < LEAST_APART:
            middle = (upper + lower) / 2
            lines = [
                moved(lines[0], middle - LEAST_APART / 2),
                moved(lines[1], middle + LEAST_APART / 2),
            ]
    return lines


def line(
    key: str, name: str, values: Sequence[float | None], most: float
) -> Line | None:
    """Return a line over the weeks that have a value; None where none has."""
    step = (WIDTH - BESIDE) / max(len(values) - 1, 1)
    room = HEIGHT - ABOVE - BELOW
    points = [
        (place * step, HEIGHT - BELOW - (room * value / most if most else 0.0))
        for place, value in enumerate(values)
        if value is not None
    ]
    if not points:
        return None
    last = next(value for value in reversed(values) if value is not None)
    x, y = points[-1]
    return Line(
        key=key,
        name=name,
        points=" ".join(f"{at(left)},{at(top)}" for left, top in points),
        x=at(x),
        y=at(y),
        label_y=at(y),
        last=last,
    )


def moved(each: Line, y: float) -> Line:
    """Return a line whose name stands at another height."""
    return Line(
        key=each.key,
        name=each.name,
        points=each.points,
        x=each.x,
        y=each.y,
        label_y=at(y),
        last=each.last,
    )


def layer_row(name: str, counts: Mapping[str, int], most: int) -> Row:
    """Return one layer's bar, its parts beside each other."""
    labels = {str(status): str(status.label) for status in Status}
    return parted_row(name, counts, labels, most)


def parted_row(
    name: str, counts: Mapping[str, int], labels: Mapping[str, str], most: int
) -> Row:
    """Return a bar of parts, one for each label; `most` is what fills the width."""
    parts = []
    left = 0.0
    for key in labels:
        width = WIDTH * counts[key] / most if most else 0.0
        if width:
            shape = Shape(x=at(left), y="0", width=at(width), height="10")
            parts.append((key, shape))
        left += width
    words = ", ".join(f"{counts[key]} {label}" for key, label in labels.items())
    return Row(name, counts, sum(counts.values()), words, parts)
