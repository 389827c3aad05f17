"""From pieces of text with places to lines in reading order.

Pure geometry, in three steps: rows, table rows, columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from knowledge.extraction.columns import in_reading_order
from knowledge.extraction.fragments import Fragment
from knowledge.extraction.lines import Line
from knowledge.extraction.rows import read_rows
from knowledge.extraction.tables import with_table_rows


def read_lines(fragments: Sequence[Fragment]) -> list[Line]:
    """Return the lines of a page in reading order."""
    turns = Counter[int]()
    for fragment in fragments:
        turns[fragment.turn] += len(fragment.text)
    lines: list[Line] = []
    for turn, _ in turns.most_common():
        rows = with_table_rows(
            read_rows([one for one in fragments if one.turn == turn])
        )
        lines.extend(in_reading_order(rows, 0, len(lines) + 1))
    return lines
