"""What a check of a draft finds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MOST_FLAGS = 50
MOST_UNCHECKED = 50
MOST_SENTENCE_CHARACTERS = 200
MOST_TEXT_CHARACTERS = 200


class Outcome(StrEnum):
    """How a check ended."""

    VERIFIED = "verified"
    FLAGGED = "flagged"
    NOTHING_CHECKED = "nothing_checked"


class FlagKind(StrEnum):
    """What a flag is about; a passage flag concerns a ref, and not the draft."""

    QUOTE = "quote"
    FACT = "fact"
    CITATION = "citation"
    NO_CITATION = "no_citation"
    PASSAGE = "passage"


@dataclass(frozen=True, slots=True)
class Read:
    """One passage as the server read it; no text where it could not be read.

    `problem` says what is wrong with the ref; it makes a passage flag (S1-VER-12).
    """

    ref: str
    text: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that is not as the draft says.

    `text` is what the draft says, `sentence` the whole sentence as it stands in the
    draft, empty for what is of no sentence. `searched` are the passages that were searched
    (`S1`, …), `message` tells a person.
    """

    kind: FlagKind
    text: str
    sentence: str
    searched: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """A quote's part or a fact of the draft, and where a passage's text has it."""

    kind: str
    text: str
    passage: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found: at most 50 flags, and 50 sentences without a quote or fact."""

    outcome: Outcome
    flags: tuple[Flag, ...]
    unchecked_sentences: tuple[str, ...]
    found: tuple[Found, ...]
    note: str = ""


def listed(numbers: Sequence[int]) -> str:
    """Return passage numbers as people write them: `S1–S4, S7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(
        f"S{first}" if first == last else f"S{first}–S{last}" for first, last in runs
    )


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters, on one line."""
    one_line = " ".join(text[: 4 * most].split())
    return one_line if len(one_line) <= most else one_line[: most - 1] + "…"
