"""Runs the content of a PDF page and notes where each piece of text is shown.

pypdf parses the file, decrypts, inflates and maps codes to characters; its own text
extraction gives no usable places. Fonts come from pypdf's internal `Font` class, so
pypdf is pinned.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pypdf import PageObject
from pypdf.generic import ContentStream, DictionaryObject, StreamObject
from pypdf.generic._font import Font

Matrix = tuple[float, float, float, float, float, float]

IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_MOST_FORM_DEPTH = 8
_MOST_OPERATIONS = 3_000_000
_INVISIBLE_MODE = 3
# Shares of the font size.
_PIECE_GAP = 0.1
_STEP_BACK = 0.25
_OVERPRINT = 0.14
_USUAL_SPACE = 0.25
_NARROWEST_SPACE = 0.1
_WIDEST_SPACE = 0.7


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of text in one line: where it starts and ends along its baseline.

    Coordinates are those of a page turned so that the text runs left to right;
    `turn` is the quarter turns that this took. `box` is in the page's own
    coordinates (left, bottom, right, top). `order` counts in the order of drawing.
    `space` is the width of a space in its font. Spaces that are shown by themselves
    are fragments too.
    """

    text: str
    start: float
    end: float
    baseline: float
    size: float
    space: float
    bold: bool
    invisible: bool
    turn: int
    order: int
    box: tuple[float, float, float, float]

    @property
    def is_blank(self) -> bool:
        """Whether it shows nothing but spaces."""
        return self.text.isspace()


@dataclass(slots=True)
class PageContent:
    """What a page shows: text fragments, images, and how many glyphs say no character."""

    fragments: list[Fragment] = field(default_factory=list)
    images: int = 0
    unmapped: int = 0


@dataclass(slots=True)
class _Typeface:
    font: Font
    width_scale: float
    space: float
    bold: bool
    readable: bool
    known: dict[bytes, _Shown] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a string shows in a font: its width is in shares of the font size."""

    text: str
    width: float
    count: int
    spaces: int


@dataclass(slots=True)
class _State:
    """The part of the graphics state that text depends on."""

    matrix: Matrix = IDENTITY
    face: _Typeface | None = None
    size: float = 0.0
    character_gap: float = 0.0
    word_gap: float = 0.0
    stretch: float = 1.0
    leading: float = 0.0
    rise: float = 0.0
    mode: int = 0

    def copy(self) -> _State:
        return _State(
            self.matrix,
            self.face,
            self.size,
            self.character_gap,
            self.word_gap,
            self.stretch,
            self.leading,
            self.rise,
            self.mode,
        )


def read_page(page: PageObject) -> PageContent:
    """Return what a page shows; broken parts of its content are left out."""
    interpreter = _Interpreter(page.pdf)
    contents = page.get_contents()
    if contents is not None:
        resources = _dictionary(page.get("/Resources"))
        interpreter.run(contents, resources, 0)
    return interpreter.content


def multiply(first: Matrix, second: Matrix) -> Matrix:
    """Return the matrix that applies `first`, then `second`."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return (
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + m,
    )


def make_fragment(
    text: str,
    start: tuple[float, float],
    end: tuple[float, float],
    height: float,
    *,
    order: int,
    space: float = 0.0,
    bold: bool = False,
    invisible: bool = False,
) -> Fragment:
    """Return a fragment from the two ends of its baseline in page coordinates."""
    (x0, y0), (x1, y1) = start, end
    turn = round(math.atan2(y1 - y0, x1 - x0) / (math.pi / 2)) % 4
    ups = ((0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0))
    up_x, up_y = ups[turn]
    xs = (x0, x1, x0 + up_x * height, x1 + up_x * height)
    ys = (y0, y1, y0 + up_y * height, y1 + up_y * height)
    along = (x0, y0, -x0, -y0)[turn]
    until = (x1, y1, -x1, -y1)[turn]
    baseline = (y0, -x0, -y0, x0)[turn]
    return Fragment(
        text=text,
        start=along,
        end=max(along, until),
        baseline=baseline,
        size=height,
        space=space or _USUAL_SPACE * height,
        bold=bold,
        invisible=invisible,
        turn=turn,
        order=order,
        box=(min(xs), min(ys), max(xs), max(ys)),
    )


class _Interpreter:
    """Carries out the operators that move and show text."""

    def __init__(self, pdf: Any) -> None:
        self.content = PageContent()
        self._pdf = pdf
        self._state = _State()
        self._stack: list[_State] = []
        self._text: Matrix = IDENTITY
        self._line: Matrix = IDENTITY
        self._faces: dict[int, _Typeface | None] = {}
        self._operations = 0
        self._seen: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
        self._replaced: list[str | None] = []
        self._operators: dict[bytes, Callable[[list[Any]], None]] = {
            b"q": self._save,
            b"Q": self._restore,
            b"cm": self._transform,
            b"BT": self._begin_text,
            b"Tc": self._set_character_gap,
            b"Tw": self._set_word_gap,
            b"Tz": self._set_stretch,
            b"TL": self._set_leading,
            b"Ts": self._set_rise,
            b"Tr": self._set_mode,
            b"Td": self._move,
            b"TD": self._move_with_leading,
            b"Tm": self._set_matrix,
            b"T*": self._next_line,
            b"Tj": self._show,
            b"TJ": self._show_spaced,
            b"'": self._show_next,
            b'"': self._show_next_spaced,
            b"BDC": self._begin_marked,
            b"BMC": self._begin_marked,
            b"EMC": self._end_marked,
        }

    def run(self, stream: Any, resources: DictionaryObject, depth: int) -> None:
        """Carry out the operators of a content stream."""
        if not isinstance(stream, ContentStream):
            stream = ContentStream(stream, self._pdf)
        base = len(self._stack)
        for operands, operator in stream.operations:
            self._operations += 1
            if self._operations > _MOST_OPERATIONS:
                return
            try:
                self._carry_out(operator, list(operands), resources, depth)
            except (TypeError, ValueError, IndexError, KeyError, AttributeError):
                # A malformed operator shows nothing; the next ones may.
                continue
        del self._stack[base:]

    def _carry_out(
        self,
        operator: bytes,
        operands: list[Any],
        resources: DictionaryObject,
        depth: int,
    ) -> None:
        if operator == b"Tf":
            self._set_font(operands, resources)
        elif operator == b"Do":
            self._draw(operands, resources, depth)
        elif operator == b"INLINE IMAGE":
            self.content.images += 1
        elif operator in self._operators:
            self._operators[operator](operands)

    def _save(self, operands: list[Any]) -> None:
        self._stack.append(self._state.copy())

    def _restore(self, operands: list[Any]) -> None:
        if self._stack:
            self._state = self._stack.pop()

    def _transform(self, operands: list[Any]) -> None:
        self._state.matrix = multiply(_matrix(operands), self._state.matrix)

    def _begin_text(self, operands: list[Any]) -> None:
        self._text = self._line = IDENTITY

    def _set_character_gap(self, operands: list[Any]) -> None:
        self._state.character_gap = float(operands[0])

    def _set_word_gap(self, operands: list[Any]) -> None:
        self._state.word_gap = float(operands[0])

    def _set_stretch(self, operands: list[Any]) -> None:
        self._state.stretch = float(operands[0]) / 100

    def _set_leading(self, operands: list[Any]) -> None:
        self._state.leading = float(operands[0])

    def _set_rise(self, operands: list[Any]) -> None:
        self._state.rise = float(operands[0])

    def _set_mode(self, operands: list[Any]) -> None:
        self._state.mode = int(operands[0])

    def _move(self, operands: list[Any]) -> None:
        shift = (1.0, 0.0, 0.0, 1.0, float(operands[0]), float(operands[1]))
        self._text = self._line = multiply(shift, self._line)

    def _move_with_leading(self, operands: list[Any]) -> None:
        self._state.leading = -float(operands[1])
        self._move(operands)

    def _set_matrix(self, operands: list[Any]) -> None:
        self._text = self._line = _matrix(operands)

    def _next_line(self, operands: list[Any]) -> None:
        self._move([0.0, -self._state.leading])

    def _show_next(self, operands: list[Any]) -> None:
        self._next_line([])
        self._show(operands)

    def _show_next_spaced(self, operands: list[Any]) -> None:
        self._state.word_gap = float(operands[0])
        self._state.character_gap = float(operands[1])
        self._show_next(operands[2:])

    def _begin_marked(self, operands: list[Any]) -> None:
        properties = operands[1] if len(operands) > 1 else None
        actual = None
        if isinstance(properties, DictionaryObject) and "/ActualText" in properties:
            actual = str(properties["/ActualText"])
        self._replaced.append(actual)

    def _end_marked(self, operands: list[Any]) -> None:
        if self._replaced:
            self._replaced.pop()

    def _set_font(self, operands: list[Any], resources: DictionaryObject) -> None:
        self._state.size = float(operands[1])
        self._state.face = None
        fonts = _dictionary(resources.get("/Font"))
        font = _dictionary(fonts.get(operands[0]))
        key = id(font)
        if key not in self._faces:
            self._faces[key] = _typeface(font)
        self._state.face = self._faces[key]

    def _draw(
        self, operands: list[Any], resources: DictionaryObject, depth: int
    ) -> None:
        drawn = _dictionary(resources.get("/XObject")).get(operands[0])
        drawn = drawn.get_object() if drawn is not None else None
        if not isinstance(drawn, StreamObject):
            return
        if drawn.get("/Subtype") == "/Image":
            self.content.images += 1
        elif drawn.get("/Subtype") == "/Form" and depth < _MOST_FORM_DEPTH:
            saved, text, line = self._state.copy(), self._text, self._line
            matrix = drawn.get("/Matrix")
            if matrix is not None:
                self._transform(list(matrix.get_object()))
            inner = _dictionary(drawn.get("/Resources"))
            self.run(drawn, inner or resources, depth + 1)
            self._state, self._text, self._line = saved, text, line

    def _show(self, operands: list[Any]) -> None:
        self._show_spaced([[operands[0]]])

    def _show_spaced(self, operands: list[Any]) -> None:
        """Show strings and shifts; shifts other than kerning cut it into fragments."""
        state = self._state
        if state.face is None:
            return
        piece = _Piece()
        for item in operands[0]:
            if isinstance(item, (int, float)):
                shift = -float(item) / 1000
                if shift > _PIECE_GAP or shift < -_STEP_BACK:
                    self._emit(piece)
                    piece = _Piece()
                self._advance(shift * state.size * state.stretch)
                piece.width += shift * state.size * state.stretch if piece.text else 0
                continue
            text, width = self._decode(item)
            if piece.origin is None:
                piece.origin = self._text
            piece.text += text
            piece.width += width
            self._advance(width)
        self._emit(piece)

    def _advance(self, width: float) -> None:
        a, b, c, d, e, f = self._text
        self._text = (a, b, c, d, e + width * a, f + width * b)

    def _decode(self, item: Any) -> tuple[str, float]:
        """Return the text of a shown string and its width in text space."""
        state, face = self._state, self._state.face
        if face is None:
            return "", 0.0
        data = item.original_bytes if hasattr(item, "original_bytes") else bytes(item)
        shown = face.known.get(data)
        if shown is None:
            shown = face.known[data] = _shown(face, data)
        if not face.readable:
            self.content.unmapped += shown.count
        width = shown.width * state.size + shown.count * state.character_gap
        width += shown.spaces * state.word_gap
        return shown.text, width * state.stretch

    def _emit(self, piece: _Piece) -> None:
        actual = self._replaced[-1] if self._replaced else None
        if actual is not None:
            piece.text = actual
            self._replaced[-1] = ""
        if piece.origin is None or not piece.text:
            return
        matrix = multiply(piece.origin, self._state.matrix)
        a, b, c, d, _, _ = matrix
        size = abs(self._state.size)
        height = size * math.hypot(c, d) or size * math.hypot(a, b)
        start = _point(matrix, 0.0, self._state.rise)
        end = _point(matrix, piece.width, self._state.rise)
        if height < 0.5 or not all(map(math.isfinite, (*start, *end, height))):
            return
        if not piece.text.isspace() and self._is_overprint(piece.text, start, height):
            return
        mode = self._state.mode
        face = self._state.face
        space = face.space * height if face is not None else 0.0
        self.content.fragments.append(
            make_fragment(
                piece.text,
                start,
                end if end != start else (start[0] + 0.01, start[1]),
                height,
                order=len(self.content.fragments),
                space=space,
                bold=mode == 2 or (face is not None and face.bold),
                invisible=mode == _INVISIBLE_MODE,
            )
        )

    def _is_overprint(
        self, text: str, start: tuple[float, float], height: float
    ) -> bool:
        """Tell whether a text was already shown here, as fake bold and shadows are."""
        near = _OVERPRINT * height
        column, row = int(start[0] // 20), int(start[1] // 20)
        for x in (column - 1, column, column + 1):
            for y in (row - 1, row, row + 1):
                for at in self._seen.get((text, x, y), ()):
                    if abs(at[0] - start[0]) < near and abs(at[1] - start[1]) < near:
                        return True
        self._seen.setdefault((text, column, row), []).append(start)
        return False


@dataclass(slots=True)
class _Piece:
    text: str = ""
    width: float = 0.0
    origin: Matrix | None = None


def _matrix(operands: list[Any]) -> Matrix:
    a, b, c, d, e, f = (float(value) for value in operands[:6])
    return a, b, c, d, e, f


def _point(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _dictionary(value: Any) -> DictionaryObject:
    value = value.get_object() if value is not None else None
    return value if isinstance(value, DictionaryObject) else DictionaryObject()


def _typeface(font: DictionaryObject) -> _Typeface | None:
    if not font:
        return None
    try:
        parsed = Font.from_font_resource(font)
    except Exception:  # noqa: BLE001 a broken font raises whatever it likes
        return None
    scale = 0.001
    if parsed.sub_type == "Type3":
        try:
            matrix: Any = font["/FontMatrix"].get_object()
            scale = abs(float(matrix[0]))
        except (KeyError, TypeError, ValueError, IndexError):
            scale = 0.001
    descriptor = parsed.font_descriptor
    name = f"{parsed.name} {descriptor.name} {descriptor.weight}".casefold()
    heavy = any(word in name for word in ("bold", "black", "heavy", "-bd", "semibold"))
    space = float(parsed.space_width or 0) * scale
    space = space if _NARROWEST_SPACE <= space <= _WIDEST_SPACE else _USUAL_SPACE
    return _Typeface(parsed, scale, space, heavy, _is_readable(font, parsed))


def _is_readable(font: DictionaryObject, parsed: Font) -> bool:
    """Tell whether a font says which characters its glyphs stand for."""
    by_glyph = font.get("/Encoding") in ("/Identity-H", "/Identity-V")
    mapped = "/ToUnicode" in font or bool(parsed.character_map)
    return parsed.interpretable and (mapped or not by_glyph)


def _shown(face: _Typeface, data: bytes) -> _Shown:
    codes, text = _characters(face.font, data)
    widths = face.font.character_widths
    default = widths.get("default", 500)
    width = sum(float(widths.get(code, default)) for code in codes)
    return _Shown(
        text=text if face.readable else "",
        width=width * face.width_scale,
        count=len(codes),
        spaces=codes.count(" "),
    )


def _characters(font: Font, data: bytes) -> tuple[str, str]:
    """Return the codes (for widths) and the readable text of a shown string."""
    if isinstance(font.encoding, str):
        try:
            codes = data.decode(font.encoding, "surrogatepass")
        except (UnicodeDecodeError, LookupError):
            codes = data.decode("latin-1")
        named = codes
    else:
        codes = data.decode("latin-1")
        named = "".join(str(font.encoding.get(byte, chr(byte))) for byte in data)
    text = "".join(_glyph_text(str(font.character_map.get(one, one))) for one in named)
    return codes, _plain_letters(text)


def _plain_letters(text: str) -> str:
    """Return the letters of ligatures and presentation forms, without soft hyphens."""
    if text.isascii():
        return text
    return "".join(
        _glyph_text(unicodedata.normalize("NFKC", character))
        if "\ufb00" <= character <= "\ufdff" or "\ufe70" <= character <= "\ufefc"
        else character
        for character in text
    )


def _glyph_text(text: str) -> str:
    """Return a glyph's letters in the order in which a page shows them."""
    return text[::-1] if len(text) > 1 and "\u0590" <= text[0] <= "\u08ff" else text
