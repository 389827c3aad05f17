"""Where the parts of the charts stand."""

from itertools import pairwise

from retrieval.bumps import HEAD, ROW, bump_chart
from retrieval.curves import (
    BOTTOM,
    HEIGHT,
    LEAST_GAP,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    line_chart,
)


def test_lines_run_from_the_first_to_the_last_place_between_0_and_1() -> None:
    chart = line_chart({"a": [0.0, 1.0, 0.5]}, ["1 May", "2 May", "3 May"])
    (line,) = chart.lines
    first, second, third = line.points
    assert (first.x, first.y) == (LEFT, HEIGHT - BOTTOM)
    assert (third.x, second.y) == (WIDTH - RIGHT, TOP)
    assert line.path.startswith("M40 224")
    assert [tick.label for tick in chart.across] == ["3 May", "2 May", "1 May"]


def test_a_gap_is_no_point_and_names_never_lie_on_each_other() -> None:
    chart = line_chart(
        {"a": [None, 0.9], "b": [0.9, 0.9], "c": [0.0, 0.0], "d": [None, None]},
        ["1", "2"],
    )
    assert [line.name for line in chart.lines] == ["a", "b", "c"]
    heights = sorted(line.name_y for line in chart.lines)
    assert all(other - one >= LEAST_GAP for one, other in pairwise(heights))
    assert heights[-1] <= HEIGHT - BOTTOM


def test_one_place_stands_in_the_middle_and_many_are_not_all_named() -> None:
    (line,) = line_chart({"a": [0.5]}, ["today"]).lines
    assert line.points[0].x == LEFT + (WIDTH - LEFT - RIGHT) / 2
    chart = line_chart({"a": [0.5] * 40}, [str(day) for day in range(40)])
    assert len(chart.across) <= 6
    assert chart.across[0].label == "39"


def test_a_passage_moves_through_the_lists_that_rank_it() -> None:
    lists = {"meaning": [7, 8, 9], "words": [9], "fused": [9, 7, 8]}
    chart = bump_chart(lists, [9, 7, 8], {9: "Rent"}, depth=2)
    best, second, third = chart.bumps
    assert (best.mark, best.name, second.name) == ("1", "Rent", "")
    assert [node.rank for node in best.nodes] == [3, 1, 1]
    assert [node.is_beyond for node in best.nodes] == [True, False, False]
    assert best.nodes[0].y == chart.beyond_y > HEAD + 2 * ROW
    assert [node.rank for node in second.nodes] == [1, 2]
    assert third.nodes[-1].is_beyond
    assert best.path.count("C") == 2
    assert bump_chart({"meaning": []}, [1], {}, depth=2).bumps == ()
