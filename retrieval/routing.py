"""Which layers a search goes to when its sender names none (S1-RTE)."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache

from retrieval.sizes import Size

# From the knowledge bases that a reader may search and a cleaned query to the affinity
# (0 to 1) of layers, by id.
Affinity = Callable[[Mapping[int, Size], str], Mapping[int, float]]
# What else than patterns may speak for a layer: what was learned from earlier searches
# registers itself here. Only layers of the reader's own list ever count.
affinities: list[Affinity] = []
LEAST_AFFINITY = 0.5
# What stands around words, not in them.
PUNCTUATION = ".,;:!?…()\"'„”“‘’«»"


def route(text: str, sizes: Mapping[int, Size]) -> frozenset[int] | None:
    """Return the layers that a query is for, or None where nothing tells.

    A layer is for a query that one of its routing patterns matches, or to which earlier
    searches lead. `sizes` are those of the knowledge bases that the reader may search;
    layers of others are never asked.
    """
    layers = {pk: held for size in sizes.values() for pk, held in size.routing.items()}
    words = words_of(text)
    chosen = {
        pk
        for pk, patterns in layers.items()
        if any(matches(pattern, words) for pattern in patterns)
    }
    for affinity in affinities:
        chosen |= {
            pk
            for pk, strength in affinity(sizes, text).items()
            if strength >= LEAST_AFFINITY and pk in layers
        }
    return frozenset(chosen) or None


def words_of(text: str) -> list[str]:
    """Return a text's words as patterns are compared with them."""
    composed = unicodedata.normalize("NFC", text).casefold()
    return [word for each in composed.split() if (word := each.strip(PUNCTUATION))]


def matches(pattern: str, words: Sequence[str]) -> bool:
    """Tell whether the words hold those of a pattern in a row; `*` is any letters."""
    wanted = [compiled(word) for word in words_of(pattern)]
    places = range(len(words) - len(wanted) + 1) if wanted else ()
    return any(
        all(each.match(word) for each, word in zip(wanted, words[at:], strict=False))
        for at in places
    )


@lru_cache(maxsize=2048)
def compiled(word: str) -> re.Pattern[str]:
    """Return what matches one word of a pattern, in time that its stars do not raise.

    Of the shell's signs only the star has a meaning here.
    """
    plain = word.replace("[", "[[]").replace("?", "[?]")
    return re.compile(translate(plain))
