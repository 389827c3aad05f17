"""What fits into a context: passages cut at a word, and a budget in tokens. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval.results import Hit

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
    citation = hit.citation
    said = (hit.text, citation.title, citation.clause_path, citation.file, hit.ref)
    return tokens_of("\n".join(said))


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


def pack(hits: Sequence[Hit], *, budget: int, passage: int) -> Packed:
    """Return the hits that fit into `budget` tokens, each cut to `passage` characters.

    The order is kept, and from the first that does not fit on nothing is given, so that
    what is withheld is never better than what is given. The best hit is always given,
    cut to the budget if need be.
    """
    kept: list[Hit] = []
    left = budget
    for index, hit in enumerate(hits):
        shown = shortened(hit, passage)
        if not kept and cost_of(shown) > budget:
            over = (cost_of(shown) - budget) * CHARACTERS_A_TOKEN
            shown = shortened(shown, max(1, len(shown.text) - over))
        elif cost_of(shown) > left:
            return Packed(tuple(kept), tuple(hits[index:]))
        left -= cost_of(shown)
        kept.append(shown)
    return Packed(tuple(kept), ())


def shortened(hit: Hit, most: int) -> Hit:
    """Return a hit with at most so many characters of text, marked where it was cut."""
    text = cut_at_word(hit.text, most)
    return hit if text == hit.text else replace(hit, text=text, cut=True)
