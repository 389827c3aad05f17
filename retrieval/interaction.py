"""Late interaction: how well a passage's tokens meet those of a query (D11). Pure.

Not every word of a question says the same: those that `content_words` drops count
little, names and numbers a little more than others, and what is told before the
sentence that asks counts little, too. Where question and passage are in
different languages, the question's tokens are moved over first (see
`knowledge.inference.languages`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.inference.tokens import Floats, best_match, shifted, unpack
from knowledge.sentences import split_sentences
from knowledge.terms import content_words, question_language, words

FUNCTION_WEIGHT, NAME_WEIGHT = 0.2, 1.25
# What a word of a sentence counts that only tells, beside one that asks. Measured with
# such a sentence put before 100 questions (docs/models.md).
TOLD_WEIGHT = 0.1

_WORD = re.compile(r"[^\W_]+")
_ASKING = ("?", "？")
_CLOSING = " \t\r\n!.\"'”’»“)]*_"

Means = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Score:
    """A raw score, and whether query and passage are in different languages."""

    raw: float
    crosses: bool = False


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """A query's token vectors with what each of them weighs, and its language."""

    vectors: Floats
    weights: Floats
    language: str


def read_query(text: str, packed: bytes) -> QueryTokens:
    """Unpack a query's token vectors.

    Raises:
        ValueError: the bytes are broken.
    """
    unpacked = unpack(packed)
    weights = token_weights(text, unpacked.ends)
    return QueryTokens(unpacked.vectors, weights, question_language(text))


def match_all(
    query: QueryTokens, passages: Sequence[tuple[str, bytes]], means: Means
) -> list[Score]:
    """Return MaxSim of each (language, packed token vectors); -1 to 1, 0 without tokens.

    The language is a code, or "" where it is not known.

    Raises:
        ValueError: bytes are broken, or of another dimension.
    """
    moved: dict[str, Floats] = {}
    scores = []
    for language, packed in passages:
        vectors, crosses = moved_to(query, language, means, moved)
        raw = best_match(vectors, unpack(packed).vectors, query.weights)
        scores.append(Score(raw, crosses))
    return scores


def match_spans(
    query: QueryTokens,
    language: str,
    packed: bytes,
    spans: Sequence[tuple[int, int]],
    means: Means,
    *,
    beside: tuple[int, int] = (0, 0),
) -> list[Score]:
    """Return MaxSim of each span (characters) of what one passage's tokens stand for.

    `language` is the passage's, or "". The tokens of the span `beside` count for each of
    the others, too. A span without tokens scores 0.

    Raises:
        ValueError: the bytes are broken, or of another dimension.
    """
    vectors, crosses = moved_to(query, language, means, {})
    tokens = unpack(packed)
    cosines = vectors @ tokens.vectors.T
    starts = [0, *tokens.ends[:-1]]

    def touched(start: int, end: int) -> list[int]:
        places = enumerate(zip(starts, tokens.ends, strict=True))
        return [n for n, (first, last) in places if first < end and start < last]

    always = touched(*beside)
    scores = []
    for start, end in spans:
        held = touched(start, end)
        raw = 0.0
        if held and len(vectors):
            best = cosines[:, [*always, *held]].max(axis=1)
            raw = float(np.average(best, weights=query.weights))
        scores.append(Score(raw, crosses))
    return scores


def moved_to(
    query: QueryTokens, language: str, means: Means, moved: dict[str, Floats]
) -> tuple[Floats, bool]:
    """Return the query's vectors, moved to a language, and whether it is another.

    `moved` keeps them by language.
    """
    crosses = differ(query.language, language)
    if not (crosses and {query.language, language} <= set(means)):
        return query.vectors, crosses
    if language not in moved:
        way = means[language] - means[query.language]
        moved[language] = shifted(query.vectors, way)
    return moved[language], crosses


def differ(query_language: str, passage_language: str) -> bool:
    """Tell whether two guessed languages are known and not the same."""
    return bool(query_language and passage_language) and (
        query_language != passage_language
    )


def token_weights(text: str, ends: Sequence[int]) -> Floats:
    """Return the weight of each token of a query; `ends` are those of its tokens.

    A token weighs what the heaviest word that it touches does, so that the parts of a
    long word together weigh more than a short one.
    """
    content = set(content_words(text, ()))
    if not content:
        return np.ones(len(ends), dtype=np.float32)
    told = told_spans(text)
    spans = [
        (
            match.start(),
            match.end(),
            word_weight(match.group(), number == 0, content)
            * (TOLD_WEIGHT if is_within(match.start(), told) else 1.0),
        )
        for number, match in enumerate(_WORD.finditer(text))
    ]
    weights = []
    start = 0
    for end in ends:
        touched = [w for first, last, w in spans if first < end and last > start]
        weights.append(max(touched, default=FUNCTION_WEIGHT))
        start = end
    return np.array(weights, dtype=np.float32)


def told_spans(text: str) -> list[tuple[int, int]]:
    """Return the sentences of a question that only tell, where others of it ask."""
    sentences = split_sentences(text)
    told = [
        (start, end)
        for start, end in sentences
        if not text[start:end].rstrip(_CLOSING).endswith(_ASKING)
    ]
    return told if len(told) < len(sentences) else []


def is_within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a place lies in one of some spans."""
    return any(start <= at < end for start, end in spans)


def word_weight(word: str, is_first: bool, content: set[str]) -> float:  # noqa: FBT001
    """Return what one word of a query weighs."""
    if content.isdisjoint(words(word)):
        return FUNCTION_WEIGHT
    is_name = word[0].isupper() and not is_first
    has_digit = any(character.isdigit() for character in word)
    return NAME_WEIGHT if is_name or has_digit else 1.0
