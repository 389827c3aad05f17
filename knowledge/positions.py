"""Where a character offset lies for a person: its line and its page."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence


class LineMap:
    """Line numbers of one text, counted from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)

    def line_at(self, offset: int) -> int:
        """Return the number of the line that holds `offset`."""
        return bisect_right(self._starts, offset)

    def lines_of(self, start: int, end: int) -> tuple[int, int]:
        """Return first and last line of a span that is not empty."""
        return self.line_at(start), self.line_at(max(start, end - 1))


def page_at(pages: Sequence[Mapping[str, int]], offset: int) -> int | None:
    """Return the page that holds `offset`: the last that starts at or before it.

    `pages` are in the order of the text; None where there are none.
    """
    index = bisect_right(pages, offset, key=lambda page: page["start"])
    if not pages:
        return None
    return pages[max(index - 1, 0)]["number"]
