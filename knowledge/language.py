"""Which of our languages a text is in, so that browsers read and break it well. Pure."""

import re
import unicodedata
from collections.abc import Collection

SAMPLE_CHARACTERS = 4_000
WORD = re.compile(r"[^\W\d_]+")
# The share of a language's own letters among all letters from which on it is told by
# them; ordinary prose has several times as many.
OWN_LETTERS = {
    "ru": (re.compile("[а-яё]"), 0.4),
    "vi": (re.compile("[đơưạ-ỹ]"), 0.04),
    "pl": (re.compile("[ąęłńśźż]"), 0.015),
    "ro": (re.compile("[șțşţăâî]"), 0.015),
}
_ENGLISH = "the of and to is are for with not by be may must or what how who when"
ENGLISH_WORDS = frozenset(_ENGLISH.split())
# English prose has such a word in every third to fifth place.
ENGLISH_SHARE = 0.08


def language_of(text: str, languages: Collection[str]) -> str:
    """Return the code of the language that a text seems to be in, or "".

    `languages` are those that its layer declares; a single one is believed.
    """
    if len(languages) == 1:
        return next(iter(languages))
    sample = unicodedata.normalize("NFC", text[:SAMPLE_CHARACTERS]).casefold()
    words = WORD.findall(sample)
    letters = sum(map(len, words))
    if not letters:
        return ""
    for language, (own, share) in OWN_LETTERS.items():
        if language in languages and len(own.findall(sample)) >= share * letters:
            return language
    if "en" in languages:
        english = sum(word in ENGLISH_WORDS for word in words)
        return "en" if english >= ENGLISH_SHARE * len(words) else ""
    return ""
