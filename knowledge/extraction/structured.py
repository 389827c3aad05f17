"""JSON: checked strictly, then laid out one value a line.

Numbers stay as written and texts are shown with their characters instead of escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from knowledge.extraction.blocks import BlockKind, Extracted, ExtractionError
from knowledge.extraction.building import TextBuilder, removed_sentences, require_text
from knowledge.extraction.decoding import Decoded
from knowledge.extraction.limits import Limits

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])"
    r"|(?P<word>true|false|null)\b|(?P<mark>[\[\]{},:]))"
)
_INDENT = "  "
_BLOCK_DEPTH = 2


def extract_json(decoded: Decoded, name: str, limits: Limits) -> Extracted:
    """Return a JSON document, or one of JSON lines, as laid-out text.

    Raises ExtractionError for what is not JSON (NaN and Infinity are not), has a
    key twice in one object, or is nested too deeply.
    """
    source = decoded.text.strip().removeprefix("\ufeff")
    builder = TextBuilder(limits)
    for document in _documents(source, limits):
        for lines in _pieces(document):
            builder.add(BlockKind.CODE, "\n".join(lines), gap="\n")
    return require_text(
        Extracted(
            text=builder.text(),
            kind="json",
            title=Path(name).stem,
            blocks=tuple(builder.blocks),
            report=removed_sentences(builder.removed),
        )
    )


def _documents(source: str, limits: Limits) -> Iterator[list[str]]:
    """Yield the laid-out lines of each document: one, or one a line."""
    at = 0
    count = 0
    while at < len(source):
        layout = _Layout(source, limits.json_depth, at)
        yield layout.read()
        count += 1
        at = layout.at
        rest = re.compile(r"[ \t]*(\n?)\s*").match(source, at)
        at = rest.end() if rest else at
        if at < len(source) and not (rest and rest[1]):
            raise _refusal(source, at, "something follows its end")
    if not count:
        raise _refusal(source, 0, "it holds nothing")


def _pieces(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines of one record, or top-level value, after the other."""
    piece: list[str] = []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // len(_INDENT)
        starts = depth < _BLOCK_DEPTH and line.strip()[:1] not in {"}", "]"}
        if piece and starts and depth:
            yield piece
            piece = []
        piece.append(line)
    if piece:
        yield piece


@dataclass(slots=True)
class _Layout:
    """Reads one JSON value token by token and writes its lines."""

    source: str
    most_depth: int
    at: int
    lines: list[str] = field(default_factory=list)
    line: str = ""
    stack: list[str] = field(default_factory=list)
    keys: list[set[str]] = field(default_factory=list)
    expects: str = "value"

    def read(self) -> list[str]:
        while True:
            match = _TOKEN.match(self.source, self.at)
            if match is None:
                raise _refusal(self.source, self.at, "a value or mark is malformed")
            self.at = match.end()
            if match["mark"]:
                self._mark(match["mark"], match.start("mark"))
            else:
                self._value(match)
            if not self.stack and self.expects == "end":
                self.lines.append(self.line)
                return self.lines

    def _value(self, match: re.Match[str]) -> None:
        string = match["string"]
        if string is not None:
            shown = _readable(string)
            if self.expects in {"key", "first key"}:
                self._key(shown, match.start("string"))
                return
        else:
            shown = match["number"] or match["word"]
        if self.expects not in {"value", "first value"}:
            raise _refusal(self.source, match.start(), "a comma or colon is missing")
        self.line += shown
        self._after_value()

    def _key(self, key: str, at: int) -> None:
        if key in self.keys[-1]:
            raise _refusal(self.source, at, f"the key {key[:60]} stands there twice")
        self.keys[-1].add(key)
        self.line += f"{key}: "
        self.expects = "colon"

    def _mark(self, mark: str, at: int) -> None:
        if mark in "[{" and self.expects in {"value", "first value"}:
            self._open(mark)
        elif mark in "]}" and self._may_close(mark):
            self._close(mark)
        elif mark == "," and self.expects == "comma":
            self.line += ","
            self._new_line()
            self.expects = "key" if self.stack[-1] == "{" else "value"
        elif mark == ":" and self.expects == "colon":
            self.expects = "value"
        else:
            raise _refusal(self.source, at, f"“{mark}” stands in a wrong place")

    def _open(self, mark: str) -> None:
        self.stack.append(mark)
        if len(self.stack) > self.most_depth:
            message = (
                f"The JSON is nested too deeply (more than {self.most_depth} levels), "
                "so it cannot be read. Please upload a flatter file."
            )
            raise ExtractionError("corrupt", message)
        self.keys.append(set())
        self.line += mark
        self._new_line()
        self.expects = "first key" if mark == "{" else "first value"

    def _may_close(self, mark: str) -> bool:
        if not self.stack or self.stack[-1] != {"]": "[", "}": "{"}[mark]:
            return False
        return self.expects == "comma" or self.expects.startswith("first")

    def _close(self, mark: str) -> None:
        self.stack.pop()
        self.keys.pop()
        if self.line.strip():
            self.lines.append(self.line)
        self.line = _INDENT * len(self.stack) + mark
        self._after_value()

    def _after_value(self) -> None:
        self.expects = "comma" if self.stack else "end"

    def _new_line(self) -> None:
        self.lines.append(self.line)
        self.line = _INDENT * len(self.stack)


def _readable(string: str) -> str:
    """Return a string literal with its characters instead of their escapes."""
    if "\\" not in string:
        return string
    value = json.loads(string)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else string


def _refusal(source: str, at: int, why: str) -> ExtractionError:
    line = source.count("\n", 0, at) + 1
    message = (
        f"The file is not valid JSON: {why} (line {line}). Please correct it, or "
        "upload it as plain text (.txt)."
    )
    return ExtractionError("corrupt", message)
