"""Literal codes: form, procedure and standard numbers such as `QT-07`.

They survive neither embedding nor word search, so they have a branch of their own.
A code is a token with at least one letter and one digit, its parts joined by `-`,
`.`, `/` or nothing; a space is allowed only between two or more capitals and a
number (`ISO 20022`). Ordinals, measures and counted adjectives (`20th`, `30km`,
`18-year-old`, `1990-х`) have that shape and are not codes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from knowledge.sanitizing import strip_invisible
from knowledge.terms import FUNCTION_WORDS

MAX_CODE_LENGTH = 64
MAX_KEY_LENGTH = 80
# Begins the key of a part of a code.
PART = "~"

_HYPHENS = str.maketrans("\u2010\u2011\u2212\ufe63\uff0d", "-----")
# A word processor turns the hyphen of "QT-07" into a dash.
_DASH_IN_CODE = re.compile(r"(?<=[^\W\d_])[\u2013\u2014](?=\d)")
_TOKEN = re.compile(
    r"(?P<address>(?:https?|ftp)://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+)"
    r"|(?<!\w)(?P<token>[^\W_]+(?:[-./][^\W_]+)*)(?!\w)"
)
_NUMBER = re.compile(r"\d+(?:[-./]\d+)*")
_CAPITALS = re.compile(r"[^\W\d_]+(?:[-/][^\W\d_]+)*")
_MEASURE = re.compile(
    r"\d+(?:[.]\d+)?(?:st|nd|rd|th|s|h|min|ms|am|pm|km|m|cm|mm|kg|g|mg|ml|l|kb|mb|gb"
    r"|px|pt|x|г|км|м|кг)"
)
_COUNTED = re.compile(r"\d[\d.]*(?:st|nd|rd|th|s)?(?:-[^\W\d_]+)+")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[-./ ]+(?=\d)")
_SEPARATOR = re.compile(r"[-./ ]")
_SEPARATORS = re.compile(r"[-/ ]+|\.(?!\d)|(?<!\d)\.")


def find_codes(text: str) -> list[str]:
    """Return the codes of a text as written (in NFC), in order, repeats included."""
    return list(_codes(_readable(text)))


def placed_codes(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, code) for each code of a text that is in NFC.

    The text holds no invisible marks, so that its offsets stay what they are.
    """
    return _placed(_DASH_IN_CODE.sub("-", text.translate(_HYPHENS)))


def normalise_code(code: str) -> str:
    """Return the form in which codes are compared: `QT-07` and `qt 07` are `qt07`.

    Separators vanish, except between two digits, where they become a full stop:
    `AC-1.12` and `AC-11.2` are different codes.
    """
    code = _BETWEEN_DIGITS.sub(".", _readable(code).strip().casefold())
    return unicodedata.normalize("NFC", _SEPARATORS.sub("", code))


def code_keys(text: str) -> list[str]:
    """Return the normalised codes of a text, sorted, each once.

    Codes that a slash joins (`QT-07/QT-08`) count together and each by itself.
    """
    keys = set()
    for code in _codes(_readable(text)):
        keys.add(normalise_code(code))
        parts = code.split("/")
        if all(_is_code(part) for part in parts):
            keys.update(normalise_code(part) for part in parts)
    return sorted(keys)


def stored_codes(text: str) -> list[str]:
    """Return what is stored for the code branch: the keys, and those of their parts.

    The parts are marked, since a passage that bears a whole code comes first.
    """
    keys = set(code_keys(text))
    parts = {
        normalise_code(part)
        for code in _codes(_readable(text))
        for part in _parts(code)
    }
    stored = keys | {PART + part for part in parts - keys}
    return sorted(key for key in stored if len(key) <= MAX_KEY_LENGTH)


def _parts(code: str) -> Iterator[str]:
    """Yield the beginnings and ends of a code that are codes themselves.

    `30/2020/NĐ-CP` is also asked for as `2020/NĐ-CP`, `pacs.008.001.08` as `pacs.008`.
    """
    for separator in _SEPARATOR.finditer(code):
        for part in (code[: separator.start()], code[separator.end() :]):
            if _is_code(part.replace(" ", "-")):
                yield part


def _readable(text: str) -> str:
    text = unicodedata.normalize("NFC", strip_invisible(text)).translate(_HYPHENS)
    return _DASH_IN_CODE.sub("-", text).replace("\u00a0", " ")


def _codes(text: str) -> Iterator[str]:
    return (code for _start, _end, code in _placed(text))


def _placed(text: str) -> Iterator[tuple[int, int, str]]:
    tokens = [match for match in _TOKEN.finditer(text) if match["token"]]
    skip = False
    for index, match in enumerate(tokens):
        token = match["token"]
        if skip:
            skip = False
        elif _is_code(token):
            yield match.start(), match.end(), token
        elif index + 1 < len(tokens) and _is_prefix(token):
            following = tokens[index + 1]
            beside = text[match.end() : following.start()] == " "
            if beside and _NUMBER.fullmatch(following["token"]):
                yield match.start(), following.end(), f"{token} {following['token']}"
                skip = True


def _is_prefix(token: str) -> bool:
    return (
        len(token) > 1
        and token.isupper()
        and _CAPITALS.fullmatch(token) is not None
        and token.casefold() not in FUNCTION_WORDS
    )


def _is_code(token: str) -> bool:
    if len(token) > MAX_CODE_LENGTH:
        return False
    has_digit = any(character.isdecimal() for character in token)
    has_letter = any(character.isalpha() for character in token)
    if not (has_digit and has_letter):
        return False
    if not token.islower():
        return not _MEASURE.fullmatch(token)
    return not (_MEASURE.fullmatch(token) or _COUNTED.fullmatch(token))
