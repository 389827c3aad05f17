"""The second PDF reader: text-showing operators, straight from the file.

For files that pypdf cannot open and pages on which it fails. It scans for objects
instead of following the cross-reference table, inflates what it finds, and reads the
strings that the content streams show, with each font's own character map. There is
no layout: lines come in the order of drawing.
"""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from pypdf._codecs.adobe_glyphs import adobe_glyphs

_OBJECT = re.compile(rb"(?<![\d.])(\d{1,9})\s+(\d{1,5})\s+obj\b")
_STREAM = re.compile(rb"stream(?:\r\n|\n|\r)")
_REFERENCE = rb"(\d{1,9})\s+\d{1,5}\s+R\b"
_FIRST_REFERENCE = re.compile(_REFERENCE)
_FONT_ENTRY = re.compile(rb"/([^\s/<>\[\]()]{1,64})\s*" + _REFERENCE)
_PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")
_CONTENTS = re.compile(rb"/Contents\s*(\[[^\]]*\]|\d{1,9}\s+\d{1,5}\s+R)")
_KIDS = re.compile(rb"/Kids\s*\[([^\]]*)\]")
_PARENT = re.compile(rb"/Parent\s+" + _REFERENCE)
_DIFFERENCES = re.compile(rb"/Differences\s*\[([^\]]*)\]")
_CMAP_SECTION = re.compile(rb"begin(bfchar|bfrange)(.*?)end\1", re.DOTALL)
_CMAP_ITEM = re.compile(rb"<([0-9a-fA-F\s]*)>|(\[)|(\])")
_TOKEN = re.compile(
    rb"\((?P<string>)|<(?P<hex>[0-9a-fA-F\s]*)>|(?P<open>\[)|(?P<close>\])"
    rb"|/(?P<name>[^\s/<>\[\]()%]*)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+))"
    rb"|(?P<operator>[A-Za-z'\"*]+[0-9*]?)|%[^\r\n]*"
)
_STRING_PART = re.compile(rb"[^()\\]+|\\(?:\r\n|[0-7]{1,3}|.)|[()]", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}

_MOST_INFLATED = 50 * 1024 * 1024
_MOST_INFLATED_IN_ALL = 200 * 1024 * 1024
_MOST_TOKENS = 5_000_000
_WORD_SHIFT = -170.0
_MOST_PAGES_DEPTH = 50


@dataclass(slots=True)
class _Object:
    """An object's own source and, if it has one, its inflated stream."""

    source: bytes
    stream: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Operator:
    name: bytes


@dataclass(slots=True)
class _Charset:
    """Maps the codes of a font's strings to characters."""

    mapping: dict[int, str] = field(default_factory=dict)
    code_bytes: int = 1

    def decode(self, data: bytes) -> str:
        step = self.code_bytes
        codes = [int.from_bytes(data[i : i + step]) for i in range(0, len(data), step)]
        if step == 1:
            plain = data.decode("cp1252", "replace")
            return "".join(
                self.mapping.get(c, p) for c, p in zip(codes, plain, strict=True)
            )
        return "".join(self.mapping.get(code, "") for code in codes)


def read_texts(data: bytes) -> list[list[str]]:
    """Return the lines of text of each page, or of each stream if no page is found."""
    objects = _read_objects(data)
    pages = _page_numbers(objects)
    if pages:
        return [_page_lines(objects, number) for number in pages]
    texts = []
    for one in objects.values():
        if one.stream is not None and b"BT" in one.stream and b"ET" in one.stream:
            lines = list(_lines(one.stream, {}))
            if lines:
                texts.append(lines)
    return texts


def _read_objects(data: bytes) -> dict[int, _Object]:
    objects: dict[int, _Object] = {}
    budget = _MOST_INFLATED_IN_ALL
    matches = list(_OBJECT.finditer(data))
    for index, match in enumerate(matches):
        until = matches[index + 1].start() if index + 1 < len(matches) else len(data)
        body = data[match.end() : until]
        begun = _STREAM.search(body)
        if begun is None:
            objects[int(match[1])] = _Object(body.split(b"endobj")[0])
            continue
        source = body[: begun.start()]
        raw = body[begun.end() :]
        ended = raw.rfind(b"endstream")
        stream = _inflate(source, raw[:ended] if ended >= 0 else raw, budget)
        budget -= len(stream)
        objects[int(match[1])] = _Object(source, stream)
    for one in list(objects.values()):
        if one.stream is not None and b"/ObjStm" in one.source:
            for number, source in _packed_objects(one):
                objects.setdefault(number, _Object(source))
    return objects


def _inflate(source: bytes, raw: bytes, budget: int) -> bytes:
    """Return a stream without its filters; what cannot be undone gives nothing."""
    if b"/DCTDecode" in source or b"/JPXDecode" in source or b"/LZWDecode" in source:
        return b""
    if b"/ASCIIHexDecode" in source:
        digits = re.sub(rb"[^0-9a-fA-F]", b"", raw.split(b">")[0])
        raw = binascii.unhexlify(digits[: len(digits) // 2 * 2])
    if b"/FlateDecode" not in source:
        return raw[:budget]
    inflater = zlib.decompressobj()
    inflated = b""
    try:
        inflated = inflater.decompress(raw, min(_MOST_INFLATED, max(budget, 1)))
    except zlib.error:
        inflated = _inflate_damaged(raw, min(_MOST_INFLATED, max(budget, 1)))
    return inflated


def _inflate_damaged(raw: bytes, most: int) -> bytes:
    """Return what comes before the damage."""
    inflater = zlib.decompressobj()
    parts: list[bytes] = []
    for at in range(0, len(raw), 64):
        try:
            parts.append(inflater.decompress(raw[at : at + 64], most))
        except zlib.error:
            break
    return b"".join(parts)[:most]


def _packed_objects(container: _Object) -> Iterator[tuple[int, bytes]]:
    count = re.search(rb"/N\s+(\d{1,6})", container.source)
    first = re.search(rb"/First\s+(\d{1,9})", container.source)
    if container.stream is None or count is None or first is None:
        return
    base = int(first[1])
    numbers = [int(one) for one in re.findall(rb"\d{1,9}", container.stream[:base])]
    pairs = list(zip(numbers[0::2], numbers[1::2], strict=False))[: int(count[1])]
    for index, (number, offset) in enumerate(pairs):
        until = pairs[index + 1][1] if index + 1 < len(pairs) else None
        end = base + until if until is not None else len(container.stream)
        yield number, container.stream[base + offset : end]


def _page_numbers(objects: dict[int, _Object]) -> list[int]:
    """Return the numbers of the page objects in the order of the page tree."""
    pages = [number for number, one in objects.items() if _PAGE.search(one.source)]
    roots = [
        number
        for number, one in objects.items()
        if _KIDS.search(one.source) and not _PARENT.search(one.source)
    ]
    ordered: list[int] = []
    seen: set[int] = set()

    def walk(number: int, depth: int) -> None:
        if number in seen or number not in objects or depth > _MOST_PAGES_DEPTH:
            return
        seen.add(number)
        kids = _KIDS.search(objects[number].source)
        if kids is None:
            ordered.append(number)
            return
        for kid in _FIRST_REFERENCE.findall(kids[1]):
            walk(int(kid), depth + 1)

    for root in roots:
        walk(root, 0)
    ordered = [number for number in ordered if number in set(pages)]
    return ordered if len(ordered) == len(pages) else pages


def _page_lines(objects: dict[int, _Object], number: int) -> list[str]:
    source = objects[number].source
    contents = _CONTENTS.search(source)
    if contents is None:
        return []
    references = [int(one) for one in _FIRST_REFERENCE.findall(contents[1])]
    if len(references) == 1:
        target = objects.get(references[0])
        if target is not None and target.stream is None:
            references = [int(one) for one in _FIRST_REFERENCE.findall(target.source)]
    streams = [objects[one].stream for one in references if one in objects]
    joined = b"\n".join(stream for stream in streams if stream is not None)
    return list(_lines(joined, _charsets(objects, number)))


def _charsets(objects: dict[int, _Object], number: int) -> dict[bytes, _Charset]:
    """Return the fonts of a page, its parents' included, by name."""
    charsets: dict[bytes, _Charset] = {}
    for _ in range(_MOST_PAGES_DEPTH):
        page = objects.get(number)
        if page is None:
            break
        for source in _resources(objects, page.source):
            for name, reference in _FONT_ENTRY.findall(source):
                font = objects.get(int(reference))
                if (
                    name not in charsets
                    and font is not None
                    and b"/Font" in font.source
                ):
                    charsets[name] = _charset(objects, font.source)
        parent = _PARENT.search(page.source)
        if parent is None:
            break
        number = int(parent[1])
    return charsets


def _resources(objects: dict[int, _Object], source: bytes) -> Iterator[bytes]:
    """Yield the sources that may list fonts: inline and referred to."""
    yield source
    for key in (rb"/Resources", rb"/Font"):
        for reference in re.findall(key + rb"\s+" + _REFERENCE, source):
            target = objects.get(int(reference))
            if target is not None:
                yield target.source
                for inner in re.findall(rb"/Font\s+" + _REFERENCE, target.source):
                    if int(inner) in objects:
                        yield objects[int(inner)].source


def _charset(objects: dict[int, _Object], source: bytes) -> _Charset:
    mapped = re.search(rb"/ToUnicode\s+" + _REFERENCE, source)
    composite = b"/Type0" in source
    if mapped is not None and int(mapped[1]) in objects:
        stream = objects[int(mapped[1])].stream
        if stream is not None:
            return _read_cmap(stream, composite=composite)
    charset = _Charset(code_bytes=2 if composite else 1)
    encoding = re.search(rb"/Encoding\s+" + _REFERENCE, source)
    if encoding is not None and int(encoding[1]) in objects:
        source = objects[int(encoding[1])].source
    differences = _DIFFERENCES.search(source)
    code = 0
    for token in (differences[1] if differences else b"").replace(b"/", b" /").split():
        if token.isdigit():
            code = int(token)
        else:
            character = adobe_glyphs.get(token.decode("latin-1"))
            if character is not None:
                charset.mapping[code] = character
            code += 1
    return charset


def _read_cmap(stream: bytes, *, composite: bool) -> _Charset:
    charset = _Charset(code_bytes=2 if composite else 1)
    for section in _CMAP_SECTION.finditer(stream):
        items = [
            "[" if match[2] else "]" if match[3] else b"".join(match[1].split())
            for match in _CMAP_ITEM.finditer(section[2])
        ]
        values = [item for item in items if isinstance(item, bytes)]
        if section[1] == b"bfchar":
            for code, target in zip(values[0::2], values[1::2], strict=False):
                charset.mapping[int(code or b"0", 16)] = _utf16(target)
        else:
            _read_ranges(items, charset)
    return charset


def _read_ranges(items: list[bytes | str], charset: _Charset) -> None:
    at = 0
    while at + 2 < len(items):
        low, high, target = items[at : at + 3]
        at += 3
        if not isinstance(low, bytes) or not isinstance(high, bytes):
            continue
        first, last = int(low or b"0", 16), int(high or b"0", 16)
        last = min(last, first + 0xFFFF)
        if isinstance(target, bytes):
            start = _utf16(target)
            for code in range(first, last + 1):
                point = ord(start[-1]) + code - first if start else 0
                if start and point < 0x110000:
                    charset.mapping[code] = start[:-1] + chr(point)
            continue
        while at < len(items) and isinstance(items[at], bytes):
            one = items[at]
            if isinstance(one, bytes):
                charset.mapping[first] = _utf16(one)
            first += 1
            at += 1
        at += 1


def _utf16(digits: bytes) -> str:
    padded = digits if len(digits) % 2 == 0 else digits + b"0"
    return binascii.unhexlify(padded).decode("utf-16-be", "ignore")


def _lines(content: bytes, charsets: dict[bytes, _Charset]) -> Iterator[str]:
    """Yield the lines that a content stream shows."""
    charset = _Charset()
    line: list[str] = []
    stack: list[bytes | float | str] = []
    for token in _tokens(content):
        if not isinstance(token, _Operator):
            stack.append(token)
            continue
        if token.name == b"Tf":
            names = [one for one in stack if isinstance(one, str)]
            name = names[-1].encode("latin-1") if names else b""
            charset = charsets.get(name, _Charset())
        if _breaks_line(token.name, stack) and line:
            yield from _finished(line)
            line = []
        if token.name in {b"Tj", b"TJ", b"'", b'"'}:
            line.append(_shown(stack, charset))
        stack = []
    yield from _finished(line)


def _tokens(content: bytes) -> Iterator[bytes | float | str | _Operator]:
    """Yield strings as bytes, numbers, names as text, and operators."""
    at = 0
    for _ in range(_MOST_TOKENS):
        match = _TOKEN.search(content, at)
        if match is None:
            return
        at = match.end()
        kind = match.lastgroup
        if kind == "string":
            value, at = _string(content, at)
            yield value
        elif kind == "hex":
            digits = b"".join(match["hex"].split())
            yield binascii.unhexlify(digits + b"0" * (len(digits) % 2))
        elif kind == "number":
            yield float(match["number"])
        elif kind == "name":
            yield match["name"].decode("latin-1")
        elif kind == "operator":
            yield _Operator(match["operator"])


def _finished(line: list[str]) -> Iterator[str]:
    text = " ".join("".join(line).split())
    if text:
        yield text


def _breaks_line(operator: bytes, stack: list[bytes | float | str]) -> bool:
    if operator in {b"T*", b"'", b'"', b"ET", b"Tm"}:
        return True
    if operator in {b"Td", b"TD"}:
        numbers = [one for one in stack if isinstance(one, float)]
        return len(numbers) > 1 and abs(numbers[-1]) > 0.5
    return False


def _shown(stack: list[bytes | float | str], charset: _Charset) -> str:
    text = ""
    for one in stack:
        if isinstance(one, bytes):
            text += charset.decode(one)
        elif isinstance(one, float) and one < _WORD_SHIFT and not text.endswith(" "):
            text += " "
    return text


def _string(content: bytes, at: int) -> tuple[bytes, int]:
    """Return a literal string that starts at an offset, and where it ends."""
    depth = 1
    parts: list[bytes] = []
    while at < len(content):
        match = _STRING_PART.match(content, at)
        if match is None:
            break
        at = match.end()
        part = match[0]
        if part == b"(":
            depth += 1
        elif part == b")":
            depth -= 1
            if not depth:
                break
        elif part.startswith(b"\\"):
            part = _unescaped(part[1:])
        parts.append(part)
    return b"".join(parts), at


def _unescaped(escape: bytes) -> bytes:
    if escape[:1].isdigit() and escape[:1] not in b"89":
        return bytes([int(escape, 8) & 0xFF])
    if escape in {b"\n", b"\r", b"\r\n"}:
        return b""
    return _ESCAPES.get(escape, escape)
