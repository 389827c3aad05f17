"""True drafts and mutants of them from a folder of documents, to measure by.

Sentences are copied as they stand, so that only what changes is ours. What a mutant
changes is found by plain search for digits and words, without verification's code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.mutants import Draft, other_digit

SUFFIXES = (".md", ".txt", ".rst")
WINDOW = 1200
LONGEST_SENTENCE = 400
SWAPPED_UNITS = (
    ("days", "months", "years", "hours", "minutes", "weeks"),
    ("dni", "miesięcy", "lat", "godzin"),
    ("zile", "luni", "ani", "ore"),
    ("дней", "месяцев", "лет", "часов"),
    ("ngày", "tháng", "năm", "giờ"),
)
NEGATIONS = ("not", "nie", "nu", "не", "không")
DIGITS = re.compile(r"\d+")
ALONE = re.compile(r"(?<![\w.,-])\d+(?![\w.,-])")
SENTENCE = re.compile(r"(?:^|(?<=[.!?] ))[^\n.!?]{20,}[.!?]?(?=\s|\Z)", re.MULTILINE)
# Marks that would be quotes or citations of the draft, and numbers that count lines.
UNUSABLE = re.compile('["“”„«»‘’\\[\\]<>|`]|^\\W*[\\dA-Za-z]{1,4}[.)]')


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a document, with the sentences that can be copied from it."""

    text: str
    sentences: tuple[str, ...]


def windows_of(folder: Path) -> list[Window]:
    """Return parts of all documents, from one line's beginning to another's end."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        lines, size = [], 0
        for line in text.splitlines():
            lines.append(line)
            size += len(line) + 1
            if size >= WINDOW:
                found.append(a_window("\n".join(lines)))
                lines, size = [], 0
    return [window for window in found if window.sentences]


def a_window(text: str) -> Window:
    """Return a part with its sentences."""
    sentences = (match[0].strip() for match in SENTENCE.finditer(text))
    kept = [
        each
        for each in sentences
        if len(each) <= LONGEST_SENTENCE and not UNUSABLE.search(each)
    ]
    return Window(text, tuple(kept))


def true_copies(
    random: Random, windows: Sequence[Window], count: int
) -> Iterator[Draft]:
    """Yield drafts that copy a sentence and quote another."""
    made = 0
    while made < count:
        window = random.choice(windows)
        copied, quoted = random.choice(window.sentences), a_quote(random, window)
        if quoted:
            copied = copied.rstrip(".!?")
            text = f'{copied} [S1].\nIt says "{" ".join(quoted)}" [S1].'
            yield Draft("", (window.text,), text)
            made += 1


def a_quote(random: Random, window: Window) -> list[str]:
    """Return some neighbouring words of a sentence, none where it is too short."""
    words = random.choice(window.sentences).rstrip(".!?").split()
    if len(words) < 6:
        return []
    first = random.randint(0, len(words) - 5)
    return words[first : first + random.randint(5, 9)]


def changed_copies(
    random: Random, windows: Sequence[Window], count: int
) -> Iterator[Draft]:
    """Yield copied sentences with one thing changed that the passage lacks."""
    made = 0
    while made < count:
        window, other = random.choice(windows), random.choice(windows)
        change = random.choice(["number", "unit", "quote", "citation"])
        draft = {
            "number": changed_number,
            "unit": changed_unit,
            "quote": changed_quote,
            "citation": changed_citation,
        }[change](random, window, other)
        if draft is not None:
            yield draft
            made += 1


def changed_number(random: Random, window: Window, other: Window) -> Draft | None:
    """Return a sentence with a digit of one number changed."""
    sentence = random.choice(window.sentences).rstrip(".!?")
    numbers = list(DIGITS.finditer(sentence))
    if not numbers:
        return None
    number = random.choice(numbers)
    now = other_digit(random, number[0])
    if now in set(DIGITS.findall(window.text)):
        return None
    text = f"{sentence[: number.start()]}{now}{sentence[number.end() :]} [S1]."
    return Draft("", (window.text,), text, "number", number[0], now)


def changed_unit(random: Random, window: Window, other: Window) -> Draft | None:
    """Return a sentence whose number counts another unit."""
    sentence = random.choice(window.sentences).rstrip(".!?")
    for units in SWAPPED_UNITS:
        match = re.search(rf"(\d+)\s({'|'.join(units)})(?!\w)", sentence)
        if match is None:
            continue
        unit = random.choice([each for each in units if each != match[2]])
        if re.search(rf"{match[1]}\W+{unit}", window.text):
            return None
        now = f"{match[1]} {unit}"
        text = f"{sentence[: match.start()]}{now}{sentence[match.end() :]} [S1]."
        return Draft("", (window.text,), text, "unit", match[0], now)
    return None


def changed_quote(random: Random, window: Window, other: Window) -> Draft | None:
    """Return a quote with a negation among its words."""
    words = a_quote(random, window)
    if not words:
        return None
    place = random.randrange(1, len(words))
    now = " ".join([*words[:place], random.choice(NEGATIONS), *words[place:]])
    if now in " ".join(window.text.split()):
        return None
    return Draft("", (window.text,), f'"{now}" [S1].', "quote", " ".join(words), now)


def changed_citation(random: Random, window: Window, other: Window) -> Draft | None:
    """Return a sentence that cites a passage which lacks one of its numbers."""
    sentence = random.choice(window.sentences).rstrip(".!?")
    lacking = set(ALONE.findall(sentence)) - set(DIGITS.findall(other.text))
    if not lacking:
        return None
    passages = (window.text, other.text)
    return Draft("", passages, f"{sentence} [S2].", "citation", "[S1]", "[S2]")
