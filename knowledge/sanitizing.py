"""The border that every text crosses before it is stored, indexed or searched.

A document keeps its own Unicode form, so that quotes stay exact; it only loses
what no person can read and no database can hold. A query is refused instead of
repaired, since its sender can correct it.
"""

from __future__ import annotations

import re
import unicodedata

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    chr((plane << 16) + last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
_FORBIDDEN = re.compile(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff{_NONCHARACTERS}]"
)
# Soft hyphen, joiners, variation selectors, bidirectional marks, tag characters.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e01ef]"
)
_WHITE_SPACE = re.compile(r"\s+")


class InvalidTextError(ValueError):
    """A text that was sent to us and cannot be used; the message says why."""


def clean_document_text(text: str) -> tuple[str, int]:
    """Return the text with plain line ends and without unreadable code points.

    Removed are NUL, the other control characters but line feed and tab, lone
    surrogates and noncharacters. The second value counts them; line ends that
    were only rewritten and a leading byte order mark do not count.
    """
    text = _LINE_ENDS.sub("\n", text.removeprefix("\ufeff"))
    return _FORBIDDEN.subn("", text)


def strip_invisible(text: str) -> str:
    """Return the text without marks that a reader cannot see inside a word."""
    return _INVISIBLE.sub("", text)


def clean_query(text: str, *, max_length: int) -> str:
    """Return a query in NFC, white space folded, invisible marks dropped.

    Raises InvalidTextError for an empty or too long query and for one that holds
    control characters, lone surrogates or noncharacters. `max_length` is in
    characters.
    """
    if len(text) > max_length:
        message = (
            f"The text has {len(text):,} characters; at most {max_length:,} are "
            "accepted. Please shorten it."
        )
        raise InvalidTextError(message)
    if _FORBIDDEN.search(_LINE_ENDS.sub("\n", text)):
        message = (
            "The text holds control characters or broken Unicode. "
            "Please remove them and try again."
        )
        raise InvalidTextError(message)
    cleaned = _WHITE_SPACE.sub(" ", strip_invisible(text)).strip()
    cleaned = unicodedata.normalize("NFC", cleaned)
    if not cleaned:
        message = "The text is empty. Please write a question or a few words."
        raise InvalidTextError(message)
    return cleaned
