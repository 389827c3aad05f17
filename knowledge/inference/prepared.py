"""Values between tokenizing and computing, without torch."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Tokens that are computed together at most. On two cores passes of 1,300 tokens were
# half as fast again as those of 5,000: a layer's activations stay in the cache.
TOKENS_PER_PASS = 1_400


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tokenized input.

    ``length`` counts the tokens that the model will see, ``token_count`` those of the
    whole text. ``skipped`` tokens precede the text's own, which are as many as
    ``ends``: the character offset in the text at which each ends.
    """

    text: str
    length: int
    token_count: int
    skipped: int
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A computed input: unit vector and packed token vectors (b"" if none)."""

    vector: npt.NDArray[np.float32]
    tokens: bytes
