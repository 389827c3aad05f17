"""Which layers a search goes to when its sender names none (S1-RTE)."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache

from knowledge.models import Layer
from knowledge.permissions import Reader

# From a reader and a cleaned query to the affinity (0 to 1) of layers, by id.
Affinity = Callable[[Reader, str], Mapping[int, float]]
# What else than patterns may speak for a layer: what was learned from earlier searches
# registers itself here. Only layers of the reader's own list ever count.
affinities: list[Affinity] = []
LEAST_AFFINITY = 0.5


def route(reader: Reader, text: str) -> frozenset[int] | None:
    """Return the layers that a query is for, or None where nothing tells.

    A layer is for a query that one of its routing patterns matches, or to which earlier
    searches lead. Layers that the reader may not search are never asked.
    """
    layers = dict(
        Layer.objects.visible_to(reader).values_list("pk", "routing_patterns")
    )
    plain = normalised(text)
    chosen = {
        pk
        for pk, patterns in layers.items()
        if any(compiled(pattern).search(plain) for pattern in patterns)
    }
    for affinity in affinities:
        chosen |= {
            pk
            for pk, strength in affinity(reader, text).items()
            if strength >= LEAST_AFFINITY and pk in layers
        }
    return frozenset(chosen) or None


def normalised(text: str) -> str:
    """Return a text as patterns are compared with it."""
    return unicodedata.normalize("NFC", text).casefold()


@lru_cache(maxsize=2048)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return what matches a pattern: whole words, in which `*` is any letters."""
    parts = [
        r"\w*".join(re.escape(piece) for piece in word.split("*"))
        for word in normalised(pattern).split()
    ]
    return re.compile(r"(?<!\w)" + r"\s+".join(parts) + r"(?!\w)")
