"""Counts tokens for the cutting of chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TokenCounter = Callable[[Sequence[str]], Sequence[int]]
_COUNT_BATCH = 1_000


class CachedCounter:
    """Counts tokens in batches, each text once."""

    def __init__(self, count_tokens: TokenCounter) -> None:
        self._count_tokens = count_tokens
        self._known: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        for at in range(0, len(missing), _COUNT_BATCH):
            batch = missing[at : at + _COUNT_BATCH]
            self._known.update(zip(batch, self._count_tokens(batch), strict=True))
        return [self._known[text] for text in texts]
