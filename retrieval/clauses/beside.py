"""The words beside a reference, which may name its document."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.clauses.vocabulary import AND, BESIDE

_BOUNDARY = re.compile(r"[?!;:()\"“”„«»\n]|[.](?=\s|\Z)|\s[–—-]\s")
_CONJUNCTION = re.compile(rf"\s(?:{AND}|but|says?)(?!\w)|,")
_CONNECTOR = re.compile(
    r"\s*,?\s*(?:of|in|from|under|din|al|ale|a|z|ze|w|we|из|в|cua|trong|thuoc|tai|to)\s+"
    r"(?:the\s+|this\s+)?"
)
_LEAD = re.compile(
    r"\s*(?:in|under|according to|per|by|within|w|we|wedlug|zgodnie z|na mocy|conform"
    r"|potrivit|din|в|во|по|согласно|trong|theo|tai)\s+(?P<name>[^,:;?!]{2,120}),"
)


def lead_of(query: str, folded: str) -> str:
    """Return the name that opens a question ("In the Statute, …"), or ""."""
    match = _LEAD.match(folded)
    return query[match.start("name") : match.end("name")] if match else ""


def words_beside(
    query: str, folded: str, spans: Sequence[Sequence[int]], start: int, end: int
) -> tuple[str, str, bool]:
    """Return the words before and after a reference, and whether the latter is linked.

    References that only a comma or a conjunction parts have the same words beside them.
    """
    left_end, right_start = start, end
    left_start, right_end = 0, len(query)
    for before in reversed([span for span in spans if span[1] <= start]):
        if not BESIDE.fullmatch(folded, before[1], left_end):
            left_start = before[1]
            break
        left_end = before[0]
    for after in (span for span in spans if span[0] >= end):
        if not BESIDE.fullmatch(folded, right_start, after[0]):
            right_end = after[0]
            break
        right_start = after[1]
    left = query[left_start:left_end].rstrip().removesuffix(",")
    bounds = [match.end() for match in _BOUNDARY.finditer(left)]
    left = left[bounds[-1] if bounds else 0 :].strip()
    connector = _CONNECTOR.match(folded, right_start, right_end)
    at = connector.end() if connector else right_start
    stops = [
        stop.start()
        for pattern in (_BOUNDARY, _CONJUNCTION)
        if (stop := pattern.search(folded, at, right_end))
    ]
    return left, query[at : min([*stops, right_end])].strip(), connector is not None
