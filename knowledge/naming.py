"""The keys by which a question may call a document: by title, path, number or version.

A word's key has no accents and no ending, so that `Konstytucji` calls `Konstytucja`
and `gdpr` the file `GDPR/…`; `=csa` are the initials of a part of the title, `v4.0` is a
version or the beginning of one, `n30/2020` the number of an act, `pep8` a code.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from knowledge.codes import find_codes, normalise_code
from knowledge.terms import FUNCTION_WORDS

MAX_KEY_LENGTH = 80
_MOST_KEYS = 300
_LONGEST_VALUE = 120
_MOST_TITLE_WORDS = 16
_INITIALS = range(2, 7)

# Values of a document's head that speak of other documents, of people or of times.
_OTHER_VALUES = """
abstract author authors category contributors created date dated description
discussions_to editor expires keywords lang language languages layout license
modified owner post_history published related replaced_by replaces requires resolution
review_by see_also status summary superseded_by supersedes tags topic type updated
"""
_NOT_NAMES = frozenset(_OTHER_VALUES.split())
_TOKEN = re.compile(
    r"(?P<number>\d{1,6}/\d{2,4}(?:/[\w-]+)?)"
    r"|[vV]?(?P<version>\d{1,4}(?:\.\d{1,4}){1,3})(?![\w.]\d)"
    r"|(?P<word>[^\W_]+)"
)
_SEGMENTS = re.compile(r"[–—:;,()\[\]|/]| - ")
_LETTERS = str.maketrans("đłøıŁĐ", "dloild")
_LEADING_ZEROS = re.compile(r"(?<=[^\d.])0+(?=\d)")
# What the five languages put at the end of nouns and names, the longest first.
_NOUN_ENDINGS = """
ami ach owi iej ego emu imi ymi ului ilor elor iei ii ie ia ea ul a e i o u y
om em ow ej es s
ами ями ого его ому ему ием ией иях ии ия ию ие ых их ой ей ом ем ам ям ах ях ов
ев а я о е и ы у ю ь й
"""
_ENDINGS = tuple(sorted(_NOUN_ENDINGS.split(), key=len, reverse=True))
_SHORTEST_STEM = 4


@dataclass(frozen=True, slots=True)
class Call:
    """A part of a question that may call a document, by any one of its keys.

    It stands for `words` words from number `first` on, function words not counted.
    `is_name` tells that it is written as names are: in capitals or with digits.
    """

    keys: frozenset[str]
    first: int
    words: int = 1
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """The words next to a place that call a document.

    `names` of the `words` are written as names are; `is_whole` tells that the text has
    no other words.
    """

    words: int = 0
    names: int = 0
    is_whole: bool = False


def name_keys(title: str, path: str, head: Mapping[str, str | list[str]]) -> list[str]:
    """Return the keys of a document, sorted; `head` is its front matter."""
    keys: dict[str, None] = {}
    texts = [title, *_values(head), path.rpartition(".")[0] or path]
    for text in texts:
        for key in _keys_of(text):
            keys.setdefault(key[:MAX_KEY_LENGTH])
    for key in _initials(title):
        keys.setdefault(key)
    return sorted(list(keys)[:_MOST_KEYS])


def calls_in(text: str) -> list[Call]:
    """Return what in a part of a question may call a document, in order.

    Function words call nothing. The words of a run in capitals ("General Data
    Protection Regulation") count together too, as their initials.
    """
    tokens = [match for match in _TOKEN.finditer(_readable(text)) if _counts(match)]
    calls = [
        Call(frozenset(_token_keys(match)), at, is_name=not match[0].islower())
        for at, match in enumerate(tokens)
    ]
    calls += _runs([match[0] for match in tokens])
    for code in find_codes(text):
        key = _code_key(code)
        first = text.find(code)
        before = sum(match.start() < first for match in tokens)
        words = sum(first <= match.start() < first + len(code) for match in tokens)
        if key[1].isalpha() and words > 1:
            calls.append(Call(frozenset({key}), before, words, is_name=True))
    return calls


def run_beside(calls: Sequence[Call], keys: Collection[str], *, from_end: bool) -> Run:
    """Return how far the words at the start (or end) of a text call a document.

    One word may stand between, as in "the standard ASVS", if a name follows it.
    """
    count = max((call.first + call.words for call in calls), default=0)
    called = [False] * count
    names = [False] * count
    for call in calls:
        if not call.keys.isdisjoint(keys):
            for at in range(call.first, call.first + call.words):
                called[at], names[at] = True, names[at] or call.is_name
    if from_end:
        called.reverse()
        names.reverse()
    start = 0
    if count > 1 and not called[0] and called[1] and names[1]:
        start = 1
    end = start
    while end < count and called[end]:
        end += 1
    return Run(end - start, sum(names[start:end]), is_whole=end - start == count > 0)


def words_called(calls: Sequence[Call], keys: Collection[str]) -> int:
    """Return how many words that are written as names call a document."""
    called: set[int] = set()
    for call in calls:
        if call.is_name and not call.keys.isdisjoint(keys):
            called.update(range(call.first, call.first + call.words))
    return len(called)


def fold(text: str) -> str:
    """Return a text in small letters without accents, each character still one."""
    return "".join(
        unicodedata.normalize("NFD", letter)[0] for letter in text.lower()
    ).translate(_LETTERS)


def _values(head: Mapping[str, str | list[str]]) -> Iterator[str]:
    for key, value in head.items():
        if key.casefold().replace("-", "_") in _NOT_NAMES:
            continue
        for text in [value] if isinstance(value, str) else value:
            if len(text) <= _LONGEST_VALUE:
                yield text


def _keys_of(text: str) -> Iterator[str]:
    readable = _readable(text)
    for match in _TOKEN.finditer(readable):
        if _counts(match):
            yield from _token_keys(match)
            version = match["version"]
            while version and "." in version:
                version = version.rpartition(".")[0]
                yield f"v{version}"
    for part in re.split(r"[/\\]", text):
        for code in find_codes(part):
            yield _code_key(code)


def _readable(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _counts(match: re.Match[str]) -> bool:
    word = match["word"]
    return word is None or word.casefold() not in FUNCTION_WORDS


def _token_keys(match: re.Match[str]) -> Iterator[str]:
    if match["number"]:
        number = fold(match["number"])
        yield f"n{number}"
        yield "n" + "/".join(number.split("/")[:2])
    elif match["version"]:
        yield f"v{match['version']}"
    elif match["word"].isdecimal():
        yield f"v{int(match['word'])}"
    else:
        word = match["word"]
        yield _stem(fold(word))
        if word.isupper() and 1 < len(word) <= max(_INITIALS):
            yield f"={fold(word)}"


def _code_key(code: str) -> str:
    return _LEADING_ZEROS.sub("", fold(normalise_code(code)))


def _stem(word: str) -> str:
    """Return a folded word without its ending, if enough is left of it."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def _initials(title: str) -> Iterator[str]:
    """Yield the initials of each run of two to six words of a title's parts."""
    for segment in _SEGMENTS.split(title):
        letters = [
            fold(match["word"])[0]
            for match in _TOKEN.finditer(_readable(segment))
            if match["word"] and match["word"][0].isalpha() and _counts(match)
        ][:_MOST_TITLE_WORDS]
        for start in range(len(letters)):
            for length in _INITIALS:
                if start + length <= len(letters):
                    yield "=" + "".join(letters[start : start + length])


def _runs(words: Sequence[str]) -> Iterator[Call]:
    """Yield the initials of each run of three to six capitalised words."""
    run, first = "", 0
    for at, word in enumerate([*words, ""]):
        if word[:1].isupper() and not word[1:].isupper():
            first = first if run else at
            run += fold(word)[0]
            continue
        for start in range(len(run) - 2):
            for end in range(start + 3, min(len(run), start + 6) + 1):
                initials = run[start:end]
                yield Call(
                    frozenset({initials, f"={initials}"}),
                    first + start,
                    end - start,
                    is_name=True,
                )
        run = ""
