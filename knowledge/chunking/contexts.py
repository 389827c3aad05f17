"""What is embedded before a chunk: title, headings above, head of the table.

Of an approved answer also the other wordings of its question, a line for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.chunking.chunks import MAX_CONTEXT_TOKENS
from knowledge.chunking.counting import CachedCounter
from knowledge.chunking.units import Unit
from knowledge.structure.sections import Section


class Contexts:
    """What is embedded before the chunks of one document."""

    def __init__(
        self,
        title: str,
        asked_as: Sequence[str],
        sections: Sequence[Section],
        trail: Sequence[int],
        table_heads: dict[int, str],
        counter: CachedCounter,
        room: int,
    ) -> None:
        self._title = " ".join(title.split())[:200]
        self._asked_as = asked_as
        self._sections = sections
        self._parents = trail
        self._table_heads = table_heads
        self._counter = counter
        self._room = min(MAX_CONTEXT_TOKENS, room // 2)

    def path(self, units: Sequence[Unit], first: int, last: int) -> tuple[str, ...]:
        """Return the path of the deepest section that holds all units of a chunk."""
        section = units[first].section
        final = units[last - 1].section
        while section >= 0 and not self._holds(section, final):
            section = self._parents[section]
        return self._sections[section].path if section >= 0 else ()

    def of(self, units: Sequence[Unit], first: int, last: int) -> str:
        """Return the context of a chunk: a line for its path, one for its table.

        Then come the other wordings of the question, if it has any.
        """
        path = [part for part in self.path(units, first, last) if _has_word(part)]
        if path and path[0].casefold() == self._title.casefold():
            path = path[1:]
        lines = [" > ".join(part for part in (self._title, *path) if part)]
        table = units[first].table
        if table >= 0 and first > 0 and units[first - 1].table == table:
            lines.append(self._table_heads[table])
        lines += self._asked_as
        return "\n".join(line for line in lines if line)

    def shorten(self, contexts: Sequence[str]) -> dict[str, str]:
        """Return each context cut to at most 64 tokens: its start and its last part."""
        shortened: dict[str, str] = {}
        variants = {context: _shorter_variants(context) for context in contexts}
        self._counter.count([one for tries in variants.values() for one in tries])
        for context, tries in variants.items():
            counts = zip(tries, self._counter.count(tries), strict=True)
            fitting = (one for one, count in counts if count <= self._room)
            shortened[context] = next(fitting, "")
        return shortened

    def _holds(self, section: int, other: int) -> bool:
        while other > section:
            other = self._parents[other]
        return other == section


def _shorter_variants(context: str) -> list[str]:
    parts = [part for line in context.split("\n") for part in line.split(" > ")]
    variants = [context]
    if len(parts) > 2:
        variants.append(" > ".join([parts[0], *parts[-2:]]))
    if len(parts) > 1:
        variants.append(" > ".join([parts[0], parts[-1]]))
    words = variants[-1].split()
    shares = (32, 24, 16, 12, 8, 6, 4, 2, 1)
    variants.extend(" ".join(words[:count]) for count in shares if count < len(words))
    return variants


def _has_word(part: str) -> bool:
    letters = sum(1 for character in part if character.isalpha())
    return letters > 2
