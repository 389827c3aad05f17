"""Delimited tables: one block a row, the cells as written between " | "."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from knowledge.extraction.blocks import BlockKind, Extracted
from knowledge.extraction.building import TextBuilder, removed_sentences, require_text
from knowledge.extraction.decoding import Decoded
from knowledge.extraction.limits import Limits

CELL_GAP = " | "

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50
_LONGEST_CELL = 1_000_000
# A quoted cell with more lines than this is a quotation mark that nobody closed.
_MOST_LINES_IN_CELL = 200
_QUOTED = re.compile(r'"[^"]*"')


class _UnclosedQuoteError(Exception):
    """A quoted cell that does not end."""


def extract_csv(decoded: Decoded, name: str, limits: Limits) -> Extracted:
    """Return the rows of a delimited table."""
    builder = TextBuilder(limits)
    source = builder.clean(decoded.text)
    delimiter = _delimiter(source)
    report: list[str] = []
    try:
        rows = list(_rows(source, delimiter, csv.QUOTE_MINIMAL))
    except (csv.Error, _UnclosedQuoteError) as error:
        report.append(
            f"A quotation mark is not closed ({error}), so quotation marks were read "
            "as ordinary characters and cells with line breaks fall apart."
        )
        rows = list(_rows(source, delimiter, csv.QUOTE_NONE))
    width = 0
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        width = max(width, len(cells))
        builder.add(BlockKind.TABLE_ROW, CELL_GAP.join(cells))
    if decoded.broken:
        report.append(f"{decoded.broken:,} bytes were not readable as text.")
    return require_text(
        Extracted(
            text=builder.text(),
            kind="csv",
            title=Path(name).stem,
            blocks=tuple(builder.blocks),
            properties={"rows": str(len(builder.blocks)), "columns": str(width)},
            report=(*report, *removed_sentences(builder.removed)),
        )
    )


def _rows(source: str, delimiter: str, quoting: int) -> Iterator[list[str]]:
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(
        io.StringIO(source, newline=""),
        delimiter=delimiter,
        quoting=quoting,  # type: ignore[arg-type]
        skipinitialspace=True,
    )
    before = 0
    for row in reader:
        if reader.line_num - before > _MOST_LINES_IN_CELL:
            message = f"in the row that starts at line {before + 1}"
            raise _UnclosedQuoteError(message)
        before = reader.line_num
        yield row


def _delimiter(source: str) -> str:
    """Return the delimiter that divides the first lines most evenly."""
    lines = _QUOTED.sub("", source[:200_000]).split("\n")[:_SAMPLE_LINES]
    lines = [line for line in lines if line.strip()]
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        counts = Counter(line.count(delimiter) for line in lines)
        counts.pop(0, None)
        if counts:
            count, times = counts.most_common(1)[0]
            score = times / len(lines) + min(count, 20) / 100
            if score > best_score:
                best, best_score = delimiter, score
    return best
