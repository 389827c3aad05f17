"""From bytes to text: byte order marks, UTF-8, UTF-16, and the legacy code pages.

Charset detectors are unsure of short texts. The code pages of our languages are
therefore tried first, each judged by how many of its non-ASCII characters make words
of one alphabet; charset-normalizer decides the rest.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

from charset_normalizer import from_bytes

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 200_000
# High bytes of Latin, Cyrillic and Vietnamese letters in UTF-16; as characters of
# their own they are control characters, which no text is full of.
_HIGH_BYTES = (0x00, 0x01, 0x04, 0x1E)
_HIGH_BYTES_IN_UTF16 = 0.6
_CONFIDENT = 0.85

_ALPHABETS = {
    "pl": "ąćęłńóśźż",
    "ro": "ăâîșțşţ",
    "ru": "абвгдежзийклмнопрстуфхцчшщъыьэюяё",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    "western": "àâäáãåæçéèêëíìîïñóòôöõøœßúùûüÿ",
}
_TYPOGRAPHIC = "„”“‘’‚–—…«»•§°·№€£©®™\u00a0½²³"
# In order of preference where two read a text equally well.
_CODE_PAGES = (
    ("cp1252", ("western",)),
    ("cp1250", ("pl", "ro")),
    ("iso8859_2", ("pl", "ro")),
    ("cp1251", ("ru",)),
    ("koi8_r", ("ru",)),
    ("cp866", ("ru",)),
    ("iso8859_5", ("ru",)),
    ("iso8859_16", ("ro", "pl")),
    ("cp852", ("pl",)),
    ("cp1258", ("vi",)),
)
_VIETNAMESE_ONLY = re.compile("[ăđơưạ-ỹ]")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, the encoding it was read in, and how many bytes made no character."""

    text: str
    encoding: str
    broken: int = 0


def decode(data: bytes) -> Decoded:
    """Return the text of a file's bytes; broken bytes become U+FFFD."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _replacing(data[len(mark) :], encoding)
    wide = _utf16_without_mark(data)
    if wide:
        return _replacing(data, wide)
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    if _mostly_utf8(data):
        return _replacing(data, "utf-8")
    encoding = _legacy_encoding(data[:_SAMPLE])
    decoded = _replacing(data, encoding)
    # A code page has no Unicode form of its own; cp1258 would give loose marks.
    text = unicodedata.normalize("NFC", decoded.text)
    return Decoded(text, encoding, decoded.broken)


def _replacing(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, errors="replace")
    return Decoded(text, encoding, text.count("\ufffd"))


def _utf16_without_mark(data: bytes) -> str:
    sample = data[:_SAMPLE]
    half = max(1, len(sample) // 2)
    even, odd = (
        sum(sample[parity::2].count(byte) for byte in _HIGH_BYTES) / half
        for parity in (0, 1)
    )
    if max(even, odd) < _HIGH_BYTES_IN_UTF16 or min(even, odd) > max(even, odd) / 2:
        return ""
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    try:
        sample[: half * 2].decode(encoding, errors="strict")
    except UnicodeDecodeError as error:
        return encoding if error.start > len(sample) - 4 else ""
    return encoding


def _mostly_utf8(data: bytes) -> bool:
    """Tell a UTF-8 text with a few broken bytes from one in another encoding."""
    sample = data[:_SAMPLE].decode("utf-8", errors="replace")
    broken = sample.count("\ufffd")
    whole = sum(1 for character in sample if character > "\x7f") - broken
    return whole > 2 * broken


def _legacy_encoding(sample: bytes) -> str:
    best, best_score = "", 0.0
    for encoding, alphabets in _CODE_PAGES:
        try:
            text = sample.decode(encoding)
        except UnicodeDecodeError:
            continue
        text = unicodedata.normalize("NFC", text)
        for alphabet in alphabets:
            score = _score(text, alphabet)
            if score > best_score + 0.01:
                best, best_score = encoding, score
    if best_score >= _CONFIDENT:
        return best
    guess = from_bytes(sample).best()
    if guess is not None:
        return guess.encoding
    return best or "cp1252"


def _score(text: str, alphabet: str) -> float:
    """Return the share of non-ASCII characters that fit an alphabet's words."""
    letters = _ALPHABETS[alphabet]
    total = sum(1 for c in text if c > "\x7f" and c not in _TYPOGRAPHIC)
    marks = sum(1 for c in text if c > "\x7f" and c in _TYPOGRAPHIC)
    if not total:
        return 0.5 if marks else 0.0
    fitting = 0.0
    for word in _WORD.findall(text):
        outside = [c for c in word if c > "\x7f"]
        if not outside or any(c.casefold() not in letters for c in outside):
            continue
        mixed = alphabet == "ru" and len(outside) < len(word)
        odd_case = not (word.islower() or word.isupper() or word.istitle())
        if not mixed:
            fitting += len(outside) * (0.5 if odd_case else 1.0)
    if alphabet == "vi" and len(_VIETNAMESE_ONLY.findall(text)) < total / 5:
        return 0.0
    return fitting / total
