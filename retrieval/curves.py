"""Where the points and labels of a line chart stand. Pure; templates draw them.

Lengths are pixels of the drawing. Lines are told apart by their dashes and by the name
at their end, so that a chart is read in grey too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 40, 150, 16, 36
# Names at the ends of two lines stand at least so far apart.
LEAST_GAP = 18
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_LABELS = 6


@dataclass(frozen=True, slots=True)
class Point:
    """One value: where it stands, and what it is."""

    x: float
    y: float
    value: float


@dataclass(frozen=True, slots=True)
class Line:
    """One series: its points, the path through them, and where its name stands."""

    name: str
    points: tuple[Point, ...]
    path: str
    name_y: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of values from 0 to 1."""

    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM
    name_x: int = WIDTH - RIGHT + 14
    label_x: int = LEFT - 8
    label_y: int = HEIGHT - BOTTOM + 20


def line_chart(
    series: Mapping[str, Sequence[float | None]], labels: Sequence[str]
) -> Chart:
    """Return the chart of series of values from 0 to 1; None is a gap.

    `labels` name the places along the axis; all series are as long.
    """
    places = [across(index, len(labels)) for index in range(len(labels))]
    drawn = {
        name: points
        for name, values in series.items()
        if (points := points_of(values, places))
    }
    ends = spread({name: points[-1].y for name, points in drawn.items()})
    step = max(1, -(-len(labels) // MOST_LABELS))
    return Chart(
        lines=tuple(
            Line(name, points, path_of(points), ends[name])
            for name, points in drawn.items()
        ),
        across=tuple(
            Tick(places[index], labels[index])
            for index in range(len(labels) - 1, -1, -step)
        ),
        up=tuple(Tick(height(value), f"{value:g}") for value in GRID),
    )


def across(index: int, count: int) -> float:
    """Return how far right the value of an index stands."""
    room = WIDTH - LEFT - RIGHT
    return LEFT + room / 2 if count == 1 else LEFT + room * index / (count - 1)


def height(value: float) -> float:
    """Return how far down a value stands."""
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(value, 0.0), 1.0))


def points_of(
    values: Sequence[float | None], places: Sequence[float]
) -> tuple[Point, ...]:
    """Return the points of a series."""
    return tuple(
        Point(round(x, 1), round(height(value), 1), value)
        for value, x in zip(values, places, strict=True)
        if value is not None
    )


def path_of(points: Sequence[Point]) -> str:
    """Return the path through points, as SVG writes it."""
    return "M" + " L".join(f"{point.x:g} {point.y:g}" for point in points)


def spread(heights: Mapping[str, float]) -> dict[str, float]:
    """Return heights of names, moved apart until none lies on another."""
    placed: dict[str, float] = {}
    lowest = TOP - LEAST_GAP + 4.0
    for name in sorted(heights, key=heights.__getitem__):
        lowest = max(heights[name], lowest + LEAST_GAP)
        placed[name] = lowest
    # The whole column moves up where it would leave the drawing.
    beyond = max(lowest - (HEIGHT - BOTTOM), 0.0)
    return {name: round(value - beyond, 1) for name, value in placed.items()}
