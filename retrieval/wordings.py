"""Two questions compared on their content words (S1-LRN-03, 05). Pure.

Words are compared by their stems, so that another ending is no other word.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from knowledge.language import language_of
from knowledge.terms import (
    LANGUAGES,
    content_words,
    is_inflected,
    stem_lexeme,
    stems_of,
)

# What stands in the place of a word may be a few words side by side.
MOST_NEW = 3
LEAST_LETTERS = 2
# Of the shorter question's content words, so many are in the other one too.
LEAST_SHARED = 0.5

# Languages whose words have endings.
_STEMMED = frozenset({"en", "pl", "ro", "ru"})
# What scrubbing leaves of a bank detail is no word of the question.
_MARK = re.compile(r"\[[^\[\]]{1,40}\]")


@dataclass(frozen=True, slots=True)
class Wording:
    """A question's content words, each once and in order, with the key of each.

    `forms` are all keys that a word has in any language: of two short questions one may
    show its language and the other not.
    """

    words: tuple[str, ...]
    keys: tuple[str, ...]
    forms: tuple[frozenset[str], ...]

    @property
    def all_forms(self) -> frozenset[str]:
        """The forms of all words together."""
        return frozenset().union(*self.forms)

    @property
    def digest(self) -> str:
        """What the question is looked up by: SHA-256 of its keys in any order."""
        return hashlib.sha256(" ".join(sorted(self.keys)).encode()).hexdigest()

    def missing_from(self, other: "Wording") -> list[int]:
        """Return the places of the words that another question does not have."""
        known = other.all_forms
        return [
            place for place, forms in enumerate(self.forms) if forms.isdisjoint(known)
        ]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A word of a question, its key, and what stands in its place in another one."""

    word: str
    key: str
    by: str


@lru_cache(maxsize=2048)
def read(text: str) -> Wording:
    """Return a question's content words."""
    plain = _MARK.sub(" ", text)
    language = language_of(plain, LANGUAGES)
    found: dict[str, str] = {}
    for word in content_words(plain, LANGUAGES):
        found.setdefault(key_of(word, language), word)
    forms = tuple(
        frozenset({key, word, *stems_of(word)}) for key, word in found.items()
    )
    return Wording(tuple(found.values()), tuple(found), forms)


def key_of(word: str, language: str) -> str:
    """Return what a word of a question in some language is looked up by.

    Where the language is not known, a word in plain letters is taken for English.
    """
    spoken = language or ("en" if word.isascii() else "")
    if spoken in _STEMMED and is_inflected(word):
        return stem_lexeme(spoken, word)
    return word


def are_same(first: Wording, second: Wording) -> bool:
    """Tell whether two questions have the same content words."""
    differs = first.missing_from(second) or second.missing_from(first)
    return bool(first.words) and not differs


def are_close(first: Wording, second: Wording) -> bool:
    """Tell whether the second says what the first does in other words.

    They share a content word at least, and half of the shorter one's.
    """
    shared = min(
        len(first.words) - len(first.missing_from(second)),
        len(second.words) - len(second.missing_from(first)),
    )
    shorter = min(len(first.words), len(second.words))
    return shared > 0 and shared >= LEAST_SHARED * shorter


def replacement(first: Wording, second: Wording) -> Replacement | None:
    """Return what the second says in the place of one word of the first.

    None unless the two are close, exactly one content word of the first is missing from
    the second, and what is new there stands together. Numbers and codes have no
    synonyms: another one is another thing.
    """
    if not are_close(first, second):
        return None
    missing, new = first.missing_from(second), second.missing_from(first)
    if len(missing) != 1 or not 1 <= len(new) <= MOST_NEW:
        return None
    word = first.words[missing[0]]
    by = [second.words[place] for place in new]
    if new[-1] - new[0] != len(new) - 1 or not all(map(is_plain, (word, *by))):
        return None
    return Replacement(word, first.keys[missing[0]], " ".join(by))


def is_plain(word: str) -> bool:
    """Tell whether a word is made of letters alone, and of more than one."""
    return len(word) >= LEAST_LETTERS and word.isalpha()


def widened(text: str, additions: Sequence[str]) -> str:
    """Return a question with what it lacks of some additions appended (S1-QRW-02)."""
    held = set(read(text).words)
    lacking = [
        each for each in dict.fromkeys(additions) if not held.issuperset(each.split())
    ]
    return " ".join([text, *lacking]) if lacking else ""
