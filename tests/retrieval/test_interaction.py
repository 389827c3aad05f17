"""Late interaction: the weight of words, languages, parts of passages."""

import re

import numpy as np
import pytest

from knowledge.inference.tokens import centre_and_turn, pack_passage, pack_query
from retrieval.interaction import (
    FUNCTION_WEIGHT,
    NAME_WEIGHT,
    TOLD_WEIGHT,
    differ,
    match_all,
    match_spans,
    read_query,
    token_weights,
    told_spans,
)

DIMENSION = 64
MEAN = np.zeros(DIMENSION, dtype=np.float32)


def axis(number: int) -> np.ndarray:
    """Return the unit vector along one axis."""
    return np.eye(DIMENSION, dtype=np.float32)[number]


@pytest.mark.req("D11")
def test_words_weigh_by_what_they_say() -> None:
    # What | is | the | notice | for | Kil | burn | ?
    ends = [4, 7, 11, 18, 22, 26, 30, 31]
    weights = token_weights("What is the notice for Kilburn?", ends)
    low, name = FUNCTION_WEIGHT, NAME_WEIGHT
    wanted = [low, low, low, 1.0, low, name, name, low]
    assert weights.tolist() == pytest.approx(wanted)


@pytest.mark.req("D11")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Our branch burned. Who pays?", "Our branch burned. "),
        ("Who pays? Our branch burned.", "Our branch burned."),
        ("Wczoraj spłonął oddział (art. 5 ust. 2). Kto płaci?", "Wczoraj spłonął"),
        # Nothing asks more than the rest of it.
        ("Who pays? And when?", ""),
        ("Our branch burned. Tell me who pays.", ""),
        ("Co stanowi art. 54 ust. 2?", ""),
        ("Kilburn", ""),
    ],
)
def test_what_is_only_told_counts_little(question: str, told: str) -> None:
    spans = told_spans(question)
    assert "".join(question[start:end] for start, end in spans).startswith(told)
    assert bool(spans) == bool(told)
    ends = [match.end() for match in re.finditer(r"\w+", question)]
    weights = token_weights(question, ends)
    for end, weight in zip(ends, weights, strict=True):
        is_told = any(start < end <= last for start, last in spans)
        assert weight <= (TOLD_WEIGHT * NAME_WEIGHT if is_told else NAME_WEIGHT) + 1e-6


def test_a_query_of_function_words_weighs_all_alike() -> None:
    assert token_weights("What is it?", [4, 7, 10, 11]).tolist() == [1, 1, 1, 1]


@pytest.mark.req("D11")
def test_the_passage_with_the_telling_word_is_better() -> None:
    text = "the notice"
    packed = pack_query(np.stack([axis(0), axis(1)]), [3, 10], MEAN)
    query = read_query(text, packed)
    telling, other = match_all(
        query,
        [
            ("en", pack_passage(np.stack([axis(1), axis(2)]), [1, 8], MEAN)),
            ("en", pack_passage(np.stack([axis(0), axis(2)]), [3, 9], MEAN)),
        ],
        {},
    )
    assert telling.raw > other.raw


@pytest.mark.req("D11")
def test_a_query_is_moved_over_to_the_passages_language() -> None:
    english, vietnamese = 0.9 * axis(5), 0.9 * axis(6)
    # Means rest where packed vectors do.
    means = {
        language: 0.6 * centre_and_turn(mean[None, :], MEAN)[0]
        for language, mean in (("en", english), ("vi", vietnamese))
    }
    packed = pack_query((axis(1) + vietnamese)[None, :], [30], MEAN)
    query = read_query("được quy định như thế nào ở đây", packed)
    passage = "The rules of the house are to be kept by all who live in it."
    tokens = pack_passage((axis(1) + english)[None, :], [len(passage)], MEAN)
    (moved,) = match_all(query, [("en", tokens)], means)
    (unmoved,) = match_all(query, [("en", tokens)], {})
    assert moved.crosses
    assert unmoved.crosses
    assert moved.raw > unmoved.raw + 0.2


def test_languages_differ_only_if_both_are_known() -> None:
    assert differ("vi", "en")
    assert not differ("", "en")
    assert not differ("vi", "")
    assert not differ("vi", "vi")


def test_a_part_of_a_passage_is_matched_by_its_own_tokens() -> None:
    """A span without a token scores nothing."""
    vectors = np.stack([axis(0), axis(1)])
    passage = pack_passage(vectors, [5, 11], MEAN)
    query = read_query("berth", pack_query(vectors[:1], [5], MEAN))
    first, second, none = match_spans(
        query, "en", passage, [(0, 5), (6, 11), (20, 30)], {}
    )
    assert first.raw > 0.9
    assert second.raw < 0.3
    assert none.raw == 0
