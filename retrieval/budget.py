"""What fits into a context: passages cut at a word, and a budget in tokens. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval.results import Citation, Hit

# As requirement S1-VER-03 counts them.
CHARACTERS_A_TOKEN = 4
LAST_WORD = re.compile(r"\s+\S*\Z")


@dataclass(frozen=True, slots=True)
class Packed:
    """What is given, best first, and what the budget kept back."""

    kept: tuple[Hit, ...]
    withheld: tuple[Hit, ...]


def tokens_of(text: str) -> int:
    """Return about how many tokens a text takes."""
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)


def cost_of(hit: Hit) -> int:
    """Return how many tokens a hit takes with what is said of it."""
    return tokens_of(f"{hit.text}\n{said_of(hit.citation)}")


def said_of(citation: Citation) -> str:
    """Return what stands beside a passage's text: its mark, ref, citation, labels."""
    parts = (
        "S1",
        citation.ref,
        citation.title,
        citation.clause_path,
        citation.file,
        citation.layer,
        citation.lines,
        citation.page and str(citation.page),
        citation.date and citation.date.isoformat(),
        citation.date_source,
        citation.replaced_by,
        citation.archived and "archived",
    )
    return "\n".join(part for part in parts if part)


def room_beside(citation: Citation) -> int:
    """Return the characters that a text's citation takes, at most, beside the text."""
    return (tokens_of(said_of(citation)) + 1) * CHARACTERS_A_TOKEN


def cut_at_word(text: str, most: int) -> str:
    """Return a text's beginning of at most `most` characters, ending with a word.

    A word that is longer than all that is left is cut inside.
    """
    if len(text) <= most:
        return text
    head = text[:most]
    if text[most].isspace():
        return head.rstrip()
    return LAST_WORD.sub("", head).rstrip() or head


def pack(
    hits: Sequence[Hit],
    *,
    budget: int,
    passage: int | None = None,
    most: int | None = None,
) -> Packed:
    """Return the hits that fit into `budget` tokens, `most` of them if that is given.

    The order is kept, and from the first that does not fit on nothing is given, so that
    what is withheld is never better than what is given. The best hit is always given:
    where each is cut to `passage` characters it is cut to the budget too, if need be;
    without, it comes whole.
    """
    kept: list[Hit] = []
    left = budget
    for index, hit in enumerate(hits):
        shown = hit if passage is None else shortened(hit, passage)
        if not kept:
            over = max(0, cost_of(shown) - budget) * CHARACTERS_A_TOKEN
            if over and passage is not None:
                shown = shortened(shown, max(1, len(shown.text) - over))
        elif cost_of(shown) > left or index == most:
            return Packed(tuple(kept), tuple(hits[index:]))
        left -= cost_of(shown)
        kept.append(shown)
    return Packed(tuple(kept), ())


def shortened(hit: Hit, most: int) -> Hit:
    """Return a hit with at most so many characters of text, marked where it was cut."""
    text = cut_at_word(hit.text, most)
    return hit if text == hit.text else replace(hit, text=text, cut=True)
