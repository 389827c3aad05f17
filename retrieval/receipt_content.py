"""What a receipt says, read from its file, and as plain text. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from retrieval.proof import Json

NOTHING_CHECKED: Final = (
    "Nothing was checked: this draft had no quotes and no facts, so this receipt does "
    "not show the answer is right."
)
OPENING, CLOSING = ">>>", "<<<"
WIDTH: Final = 88
REMOVED: Final = "words removed on {}"
STANDINGS: Final = {
    "unchanged": "Replaced on {}; the current text still says so, word for word.",
    "changed": "No longer current: replaced on {}, and the document does not say this any more.",
    "removed": "No longer current: the document was removed on {}.",
}
KINDS: Final = {
    "draft": "a draft that was checked against what was read",
    "extractive": "sentences of the documents, word for word",
}


def content_of(file: Json) -> Json:
    """Return what an intact receipt says; its members are listed in docs/api.md."""
    signed, words = file["signed"], file["words"]
    unchecked = sum(1 for part in words if part.startswith("unchecked/"))
    removed = [row["removed_at"] for row in words.values() if "removed_at" in row]
    return {
        "receipt_id": signed["id"],
        "number": signed["number"],
        "issued_at": signed["issued_at"],
        "kind": signed["kind"],
        "verification": signed["verdict"],
        "verification_note": NOTHING_CHECKED if signed["nothing_checked"] else None,
        "question": text_of(words, "question"),
        "draft": text_of(words, "draft"),
        "unchecked_sentences": [
            text_of(words, f"unchecked/{index}") for index in range(unchecked)
        ],
        "read": [
            content_of_read(read, f"read/{index}", words)
            for index, read in enumerate(signed["read"])
        ],
        "words_removed_at": max(removed, default=None),
        "interaction_id": signed["interaction"],
        "imported": signed.get("imported"),
        "made_with": signed["made_with"],
        "key_id": signed["key"],
        "sha256": file["sha256"],
    }


def content_of_read(read: Json, part: str, words: Mapping[str, Json]) -> Json:
    """Return what a receipt says of one passage."""
    text = text_of(words, f"{part}/text")
    return {
        "ref": read["ref"],
        "revision": read["revision"],
        "revision_sha256": read["revision_sha256"],
        "title": text_of(words, f"{part}/title"),
        "file": text_of(words, f"{part}/file"),
        "text": text,
        "quotes": [
            {
                "start": start,
                "end": end,
                "text": text[start:end] if text is not None else None,
            }
            for start, end in read["quotes"]
        ],
        "words_removed_at": words[f"{part}/text"].get("removed_at"),
    }


def text_of(words: Mapping[str, Json], part: str) -> str | None:
    """Return the words of a part, None where there are none or they were removed."""
    text: str | None = words.get(part, {}).get("text")
    return text


# --- As plain text ---------------------------------------------------------------------


def pieces(
    text: str, quotes: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, bool]]:
    """Cut a text into pieces, quoted or not; put together they are the text again.

    Quotes that touch or overlap are one.
    """
    at = 0
    for start, end in merged((quote["start"], quote["end"]) for quote in quotes):
        if start > at:
            yield text[at:start], False
        yield text[start:end], True
        at = end
    if at < len(text):
        yield text[at:], False


def merged(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, those that touch or overlap as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def marked(read: Json) -> str:
    """Return a passage in its context, each quote between >>> and <<<."""
    inner = "".join(
        f"{OPENING}{unmarked(piece)}{CLOSING}" if quoted else unmarked(piece)
        for piece, quoted in pieces(read["text"], read["quotes"])
    )
    return f"{unmarked(read.get('before', ''))}{inner}{unmarked(read.get('after', ''))}"


def unmarked(text: str) -> str:
    """Return a document's text with marks of its own set apart, since they are not ours."""
    return text.replace(OPENING, "> > >").replace(CLOSING, "< < <")


def as_text(content: Json) -> str:
    """Return a receipt as a person reads it in a terminal."""
    return "\n".join(lines_of(content)) + "\n"


def lines_of(content: Json) -> Iterator[str]:
    """Yield its lines."""
    yield f"Receipt {content['receipt_id']}"
    yield f"Number {content['number']}, issued {content['issued_at']}"
    yield f"For {KINDS[content['kind']]}"
    if content["imported"]:
        yield from textwrap.wrap(imported_note(content["imported"]), WIDTH)
    yield f"Verification: {content['verification']}"
    if content["verification_note"]:
        yield from textwrap.wrap(content["verification_note"], WIDTH)
    yield from lines_of_draft(content)
    yield from ("", "What was read")
    for number, read in enumerate(content["read"], 1):
        yield from lines_of_read(number, read)
    yield from ("", "Made with")
    for name, value in content["made_with"].items():
        yield f"  {name}: {value if value is not None else 'none'}"
    yield f"  key: {content['key_id']}"


def imported_note(imported: Json) -> str:
    """Return what is said of a receipt that another installation issued first."""
    when = imported["issued_at"] or "a day that it did not tell"
    return (
        f"Brought in from an older version, which issued it as {imported['id']} on "
        f"{when} and did not sign it. What was signed here is what it said then."
    )


def lines_of_draft(content: Json) -> Iterator[str]:
    """Yield the lines of what was asked and written."""
    gone = REMOVED.format(content["words_removed_at"])
    if content["words_removed_at"]:
        yield f"What is missing below: {gone}."
    for name in ("question", "draft"):
        if content[name] is not None:
            yield from ("", name.capitalize(), *indented(content[name]))
    sentences = content["unchecked_sentences"]
    if sentences:
        yield from ("", "Not checked: sentences without a quote or a fact")
    for sentence in sentences:
        yield from indented(sentence if sentence is not None else gone, first="  - ")


def lines_of_read(number: int, read: Json) -> Iterator[str]:
    """Yield the lines of one passage."""
    names = [name for name in (read["title"], read["file"]) if name]
    yield ""
    yield f"[{number}] {read['ref']}" + "".join(f"  {name}" for name in names)
    standing = STANDINGS.get(read.get("standing", ""))
    if standing:
        yield f"    {standing.format(read['since'] or 'a later day')}"
    if read["text"] is None:
        yield f"    {REMOVED.format(read['words_removed_at'])}"
    else:
        yield from indented(marked(read), first="    ")


def indented(text: str, first: str = "  ", rest: str = "    ") -> Iterator[str]:
    """Yield a text's lines, wrapped, with white space before them."""
    before = first
    for line in text.splitlines() or [""]:
        for part in textwrap.wrap(line, WIDTH - len(rest)) or [""]:
            yield f"{before}{part}".rstrip()
            before = rest
