"""Which of our languages a text is in, so that browsers read and break it well. Pure."""

import re
import unicodedata
from collections.abc import Collection

SAMPLE_CHARACTERS = 4_000
# The share of a language's own letters among all letters from which on it is told by
# them; ordinary prose has several times as many.
OWN_LETTERS = {
    "ru": (re.compile("[а-яё]"), 0.4),
    "vi": (re.compile("[đơưạ-ỹ]"), 0.04),
    "pl": (re.compile("[ąęłńśźż]"), 0.015),
    "ro": (re.compile("[șțşţăâî]"), 0.015),
}
ENGLISH_WORDS = re.compile(
    r"\b(?:the|of|and|to|is|are|for|with|not|by|be|may|must|or|what|how|who|when)\b"
)
# English prose has such a word in every third to fifth place.
ENGLISH_SHARE = 0.08


def language_of(text: str, languages: Collection[str]) -> str:
    """Return the code of the language that a text seems to be in, or "".

    `languages` are those that its layer declares; a single one is believed.
    """
    if len(languages) == 1:
        return next(iter(languages))
    sample = unicodedata.normalize("NFC", text[:SAMPLE_CHARACTERS]).casefold()
    letters = sum(character.isalpha() for character in sample)
    if not letters:
        return ""
    for language, (own, share) in OWN_LETTERS.items():
        if language in languages and len(own.findall(sample)) >= share * letters:
            return language
    words = len(re.findall(r"[^\W\d_]+", sample))
    if (
        "en" in languages
        and len(ENGLISH_WORDS.findall(sample)) >= ENGLISH_SHARE * words
    ):
        return "en"
    return ""
