"""What two revisions of a text say differently, part by part. Pure.

Lines are compared first, then the words of the lines that differ, so that a page can
show old and new beside each other with the changed words marked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

WORDS = re.compile(r"\w+|\s+|[^\w\s]")
SPACE = re.compile(r"\s+")
# A line with the blank ones below it, which say nothing by themselves.
LINES = re.compile(r"[^\n]*\n(?:[^\S\n]*\n)*|[^\n]+")
# Comparing takes time with the square of what repeats; beyond these it is told plainly
# that all of it differs.
MOST_PAIRS = 2_000_000
MOST_WORDS = 3_000
# Two parts with less in common than this are shown as one replaced by the other: single
# words that both happen to hold would be marked as kept.
LEAST_IN_COMMON = 0.3


class Change(StrEnum):
    """What became of a part."""

    SAME = "same"
    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"
    # Lines in between that are the same and not shown.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text, and whether the other side lacks it."""

    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of the old text beside those of the new one.

    `start` and `end` are the part's offsets in the old text. A skipped part holds no
    pieces; `lines` says how many lines it is, blank ones apart.
    """

    change: Change
    old: tuple[Piece, ...]
    new: tuple[Piece, ...]
    start: int
    end: int
    lines: int

    @property
    def is_change(self) -> bool:
        """Whether old and new differ here."""
        return self.change in {Change.CHANGED, Change.REMOVED, Change.ADDED}

    @property
    def was(self) -> list[Piece]:
        """The old pieces without the line breaks at their end."""
        return trimmed(self.old)

    @property
    def now(self) -> list[Piece]:
        """The new pieces without the line breaks at their end."""
        return trimmed(self.new)


def trimmed(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces without the white space at their end."""
    kept = list(pieces)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = Piece(kept[-1].text.rstrip(), kept[-1].changed)
    return kept


def squeeze(text: str) -> str:
    """Return a text with white space as single spaces, for comparing word for word."""
    return SPACE.sub(" ", text).strip()


def find_words(text: str, words: str) -> tuple[int, int] | None:
    """Return where a text holds some words, word for word, or None.

    Line breaks and double spaces do not count, parts of longer words do not match.
    """
    parts = words.split()
    if not parts:
        return None
    before = r"(?<!\w)" if parts[0][0].isalnum() else ""
    after = r"(?!\w)" if parts[-1][-1].isalnum() else ""
    pattern = r"\s+".join(re.escape(part) for part in parts)
    found = re.search(f"{before}{pattern}{after}", text)
    return found.span() if found is not None else None


def compare(old: str, new: str) -> list[Part]:
    """Return the parts of two texts in order; together they hold both texts whole."""
    old_lines, new_lines = LINES.findall(old), LINES.findall(new)
    offsets = [0]
    for line in old_lines:
        offsets.append(offsets[-1] + len(line))
    parts = []
    for change, a1, a2, b1, b2 in line_changes(old_lines, new_lines):
        before, after = "".join(old_lines[a1:a2]), "".join(new_lines[b1:b2])
        if change is Change.CHANGED:
            old_pieces, new_pieces = word_changes(before, after)
        else:
            marked = change is not Change.SAME
            old_pieces, new_pieces = whole(before, marked), whole(after, marked)
        parts.append(
            Part(
                change=change,
                old=old_pieces,
                new=new_pieces,
                start=offsets[a1],
                end=offsets[a2],
                lines=max(a2 - a1, b2 - b1),
            )
        )
    return parts


def whole(text: str, marked: bool) -> tuple[Piece, ...]:  # noqa: FBT001
    """Return a text as one piece, or as none where it is empty."""
    return (Piece(text, marked),) if text else ()


def line_changes(
    old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[Change, int, int, int, int]]:
    """Yield (what, old from, old to, new from, new to) in lines."""
    # Spaces at the ends of lines say nothing.
    left, right = [squeeze(line) for line in old], [squeeze(line) for line in new]
    head = common(left, right)
    tail = common(left[head:][::-1], right[head:][::-1])
    if head:
        yield Change.SAME, 0, head, 0, head
    middle_left = left[head : len(left) - tail]
    middle_right = right[head : len(right) - tail]
    for tag, a1, a2, b1, b2 in opcodes(middle_left, middle_right):
        yield KINDS[tag], head + a1, head + a2, head + b1, head + b2
    if tail:
        yield Change.SAME, len(left) - tail, len(left), len(right) - tail, len(right)


KINDS = {
    "equal": Change.SAME,
    "replace": Change.CHANGED,
    "delete": Change.REMOVED,
    "insert": Change.ADDED,
}


def common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many leading items are the same."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def opcodes(
    left: Sequence[str], right: Sequence[str]
) -> Iterable[tuple[str, int, int, int, int]]:
    """Return difflib's codes, within what comparing may take."""
    if not left and not right:
        return []
    if not left or not right:
        tag = "delete" if left else "insert"
        return [(tag, 0, len(left), 0, len(right))]
    here, there = Counter(left), Counter(right)
    # Blank lines and such as stand on every page (a footer, a rule) tie nothing together.
    pairs = {line: count * there[line] for line, count in here.items()}
    frequent: set[str] = {""}
    total = sum(pairs.values()) - pairs.get("", 0)
    for line in sorted(pairs, key=lambda line: -pairs[line]):
        if total <= MOST_PAIRS:
            break
        if line not in frequent:
            frequent.add(line)
            total -= pairs[line]
    matcher = SequenceMatcher(frequent.__contains__, left, right, autojunk=False)
    return matcher.get_opcodes()


def word_changes(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return the pieces of two texts, those that the other lacks marked."""
    left, right = WORDS.findall(old), WORDS.findall(new)
    if max(len(left), len(right)) > MOST_WORDS:
        return whole(old, True), whole(new, True)  # noqa: FBT003
    if in_common(left, right) < LEAST_IN_COMMON:
        return whole(old, True), whole(new, True)  # noqa: FBT003
    matcher = SequenceMatcher(str.isspace, left, right, autojunk=False)
    old_pieces: list[Piece] = []
    new_pieces: list[Piece] = []
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        before, after = "".join(left[a1:a2]), "".join(right[b1:b2])
        differs = tag != "equal" and squeeze(before) != squeeze(after)
        if before:
            old_pieces.append(Piece(before, differs))
        if after:
            new_pieces.append(Piece(after, differs))
    return joined(old_pieces), joined(new_pieces)


def in_common(left: Sequence[str], right: Sequence[str]) -> float:
    """Return the share of the words of two texts that both have, 0 to 1."""
    here, there = (
        Counter(token for token in tokens if token[0].isalnum())
        for tokens in (left, right)
    )
    total = here.total() + there.total()
    return 2 * (here & there).total() / total if total else 1.0


def joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return pieces with neighbours of one kind as one, and no gap in a mark.

    The white space between two marked words is marked with them.
    """
    found: list[Piece] = []
    for index, piece in enumerate(pieces):
        marked = piece.changed
        if not marked and not piece.text.strip() and "\n" not in piece.text:
            after = pieces[index + 1] if index + 1 < len(pieces) else None
            marked = bool(found and found[-1].changed and after and after.changed)
        if found and found[-1].changed == marked:
            found[-1] = Piece(found[-1].text + piece.text, marked)
        else:
            found.append(Piece(piece.text, marked))
    return tuple(found)


def around(
    parts: Sequence[Part], *, span: tuple[int, int] | None = None, lines: int = 2
) -> list[Part]:
    """Return the parts with the same lines left out, but for some beside each change.

    With a span of the old text, only what touches it or stands right beside it is kept
    whole; changes elsewhere count as left out.
    """
    kept: list[Part] = []
    for index, part in enumerate(parts):
        near = span is None or (part.start <= span[1] and span[0] <= part.end)
        if part.change is not Change.SAME:
            kept.append(part if near else skipped(part))
            continue
        first = index == 0
        last = index == len(parts) - 1
        kept.extend(folded(part, span, lines=lines, first=first, last=last))
    return merged(kept)


def skipped(part: Part) -> Part:
    """Return a part as a note that there are lines."""
    return Part(Change.SKIPPED, (), (), part.start, part.end, part.lines)


def folded(
    part: Part, span: tuple[int, int] | None, *, lines: int, first: bool, last: bool
) -> Iterator[Part]:
    """Yield a part that is the same, as far as it is near a change or the span."""
    old = LINES.findall("".join(piece.text for piece in part.old))
    new = LINES.findall("".join(piece.text for piece in part.new))
    wanted: set[int] = set()
    offset = part.start
    for number, line in enumerate(old):
        end = offset + len(line)
        if span is not None and offset < span[1] and span[0] < end:
            wanted.update(range(number - lines, number + lines + 1))
        offset = end
    if span is None:
        wanted.update([] if first else range(lines))
        wanted.update([] if last else range(len(old) - lines, len(old)))
    offset = part.start
    start = 0
    while start < len(old):
        shown = start in wanted
        end = start
        while end < len(old) and (end in wanted) == shown:
            end += 1
        text = "".join(old[start:end])
        yield Part(
            Change.SAME if shown else Change.SKIPPED,
            whole(text, False) if shown else (),  # noqa: FBT003
            whole("".join(new[start:end]), False) if shown else (),  # noqa: FBT003
            offset,
            offset + len(text),
            end - start,
        )
        offset += len(text)
        start = end


def merged(parts: Iterable[Part]) -> list[Part]:
    """Return parts with neighbouring notes of left-out lines as one."""
    found: list[Part] = []
    for part in parts:
        before = found[-1] if found else None
        if (
            before is not None
            and before.change is Change.SKIPPED
            and part.change is Change.SKIPPED
        ):
            both = before.lines + part.lines
            found[-1] = Part(Change.SKIPPED, (), (), before.start, part.end, both)
        else:
            found.append(part)
    return found
