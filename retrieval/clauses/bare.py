"""Bare numbers: `4.3.2`, `7(2)(b)`.

They count where they cannot be a version, an amount or a part of a code.
"""

from __future__ import annotations

import re

from knowledge.structure.numbers import number_key
from retrieval.clauses.references import BARE, Reference

BARE_NUMBER = re.compile(
    r"(?<![\w./:,-])(?P<number>(?:v|[a-z]\.)?\d{1,3}(?:(?:\.\d{1,3}){1,5}(?:\(\w{1,4}\))*"
    r"|(?:\(\w{1,4}\))+))(?![\w/:%-]|[.,]\d|\.\w|\s?[%°€$£₫])"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:\.\d{3})+")
_DATE = re.compile(r"[0-3]?\d\.[01]?\d\.\d\d")
_AMOUNT_AFTER = re.compile(
    r"\s?(?:percent|per cent|million|billion|thousand|times|k|m|mm|cm|km|kg|g|gb|mb|kb|tb"
    r"|ghz|mhz|ms|s|sec\w*|min\w*|hours?|days?|weeks?|months?|years?|eur\w*|usd|dollar\w*"
    r"|zl|zlot\w*|pln|lei|ron|руб\w*|млн|млрд|тыс\w*|mln|mld|mil\w*|tys|trieu|ty|nghin"
    r"|dong|vnd|bits?|bytes?|proc\w*|процент\w*|phan tram|лет|год\w*|lat|ani|nam)(?!\w)"
)
_AMOUNT_BEFORE = re.compile(r"[$€£₫]\s?\Z")
_VERSION_WORD = re.compile(
    r"(?:version|ver|release|wersj\w*|versiun\w*|верси\w*|phien ban|v)\.?\s*\Z"
)
_LAST_WORD = re.compile(r"([^\s,;:()\"“”]+)\s+\Z")


def bare_reference(query: str, folded: str, match: re.Match[str]) -> Reference | None:
    """Return the reference that a bare number may be, or None."""
    number = match["number"]
    before, after = folded[: match.start()], folded[match.end() :]
    is_amount = _AMOUNT_AFTER.match(after) or _AMOUNT_BEFORE.search(before)
    if is_amount or _THOUSANDS.fullmatch(number) or _DATE.fullmatch(number):
        return None
    attached = False
    word = _LAST_WORD.search(query[: match.start()])
    if word is not None:
        begins = not query[: word.start()].strip()
        is_short = number.count(".") < 2
        attached = word[1][0].isupper() and (
            is_short or not begins or (len(word[1]) > 1 and word[1].isupper())
        )
        attached = attached or any(character.isdecimal() for character in word[1])
    if _VERSION_WORD.search(before):
        return None
    return Reference(
        written=query[match.start() : match.end()],
        kind=BARE,
        number=number_key(number),
        labelled=False,
        attached=attached,
    )
