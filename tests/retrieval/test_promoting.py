"""What questions teach: the rules of promotion, held for any history (S1-LRN)."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.scrubbing import DROPPED
from retrieval.promoting import (
    LEAST_SEEN,
    LOOKBACK,
    SOON,
    Asked,
    History,
    Kind,
    Lesson,
    Noticed,
    Rating,
    Scope,
    Source,
    Subject,
    Taught,
    has_failed,
    identity,
    is_stale,
    lessons,
    noticed,
    shares,
    strength,
)
from retrieval.wordings import (
    are_close,
    are_same,
    key_of,
    read,
    replacement,
    widened,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
# No two of them have a stem in common, and none is a grammatical word.
WORDS = (
    "heron", "ladder", "copper", "window", "garden", "bottle", "market", "silver",
    "thunder", "village",
)  # fmt: skip
BASES = frozenset({1})
BASE_OF = {10: 1, 20: 2}

questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique=True)


def ask(number: int, text: str, minutes: float = 0, **fields: object) -> Asked:
    """Return a question asked so many minutes before now, counted backwards."""
    asked = Asked(UUID(int=number), "chain", NOW - minutes * MINUTE, text, BASES)
    return replace(asked, **fields)


def taught(
    history: Sequence[Asked],
    *,
    ratings: Mapping[int, Rating] | None = None,
    rated: Sequence[Noticed] = (),
    now: datetime = NOW,
) -> list[Taught]:
    """Return what a history teaches."""
    known = History(
        {each.id: each for each in history},
        {UUID(int=number): each for number, each in (ratings or {}).items()},
        BASE_OF,
    )
    return lessons([*noticed(history), *rated], known, now=now)


def learned(history: Sequence[Asked], **more: object) -> list[Taught]:
    """Return what a history teaches often enough."""
    return [each for each in taught(history, **more) if each.is_enough]


def twice(first: str, second: str, **fields: object) -> list[Asked]:
    """Return two conversations in which the second question follows the first."""
    return [
        ask(1, first, 60, chain="a"),
        ask(2, second, 59, chain="a", **fields),
        ask(3, first, 30, chain="b"),
        ask(4, second, 29, chain="b", **fields),
    ]


# --- The four rules --------------------------------------------------------------


@pytest.mark.req("S1-LRN-03")
@given(questions, questions)
@settings(max_examples=100, deadline=None)
def test_synonym_takes_exactly_one_missing_word(
    first: list[str], second: list[str]
) -> None:
    """One content word of the first is gone, something took its place, some stayed."""
    found = replacement(read(" ".join(first)), read(" ".join(second)))
    missing = [word for word in first if word not in second]
    new = [word for word in second if word not in first]
    shared = [word for word in first if word in second]
    if found is None:
        return
    assert missing == [found.word]
    assert found.by.split() == new
    assert shared


@pytest.mark.req("S1-LRN-03")
@given(questions, st.data())
@settings(max_examples=60, deadline=None)
def test_one_replaced_word_among_others_is_a_synonym(
    words: list[str], data: st.DataObject
) -> None:
    """Wherever it stands, if anything stays beside it."""
    place = data.draw(st.integers(0, len(words) - 1))
    new = data.draw(st.sampled_from([word for word in WORDS if word not in words]))
    second = [*words[:place], new, *words[place + 1 :]]
    found = replacement(read(" ".join(words)), read(" ".join(second)))
    if len(words) == 1:
        assert found is None
    else:
        assert found is not None
        assert (found.word, found.by) == (words[place], new)


@pytest.mark.req("S1-LRN-05")
@given(questions, questions)
@settings(max_examples=100, deadline=None)
def test_rewording_without_a_shared_word_teaches_nothing(
    first: list[str], second: list[str]
) -> None:
    """However often it is seen, and whatever it found."""
    others = [word for word in second if word not in first]
    one, other = " ".join(first), " ".join(others)
    history = twice(one, other)
    history[0] = replace(history[0], is_weak=True)
    history[2] = replace(history[2], is_weak=True)
    assert taught(history) == []


@pytest.mark.req("S1-LRN-04")
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60 * 24 * 45)),
        min_size=0,
        max_size=8,
        unique_by=lambda each: each[1] // 30,
    )
)
@settings(max_examples=80, deadline=None)
def test_pair_is_learned_from_two_sightings_in_the_lookback(
    sightings: list[tuple[int, int]],
) -> None:
    """Each pair by itself; what is older than the lookback does not count."""
    history = []
    for number, (word, minutes) in enumerate(sightings):
        chain = f"chain {number}"
        first, second = f"heron {WORDS[2 + word]}", f"heron {WORDS[5 + word]}"
        history += [
            ask(2 * number + 1, first, minutes + 1, chain=chain),
            ask(2 * number + 2, second, minutes, chain=chain),
        ]
    found = {each.term for each in learned(history) if each.lesson is Lesson.SYNONYM}
    for word in range(3):
        recent = [
            minutes
            for which, minutes in sightings
            if which == word and timedelta(minutes=minutes) <= LOOKBACK
        ]
        assert (WORDS[2 + word] in found) == (len(recent) >= LEAST_SEEN)


@pytest.mark.req("S1-LRN-02")
@given(
    st.lists(
        st.tuples(
            questions, st.integers(0, 200), st.sampled_from(["a", "b"]), st.booleans()
        ),
        max_size=12,
    ),
    st.integers(0, 12),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_same_history_teaches_the_same(
    rows: list[tuple[list[str], int, str, bool]], cut: int, shuffled: random.Random
) -> None:
    """In any order, read at once or in parts that overlap by what belongs together."""
    history = [
        ask(number, " ".join(words), minutes, chain=chain, is_weak=weak)
        for number, (words, minutes, chain, weak) in enumerate(rows, 1)
    ]
    mixed = list(history)
    shuffled.shuffle(mixed)
    signals = noticed(history)
    assert noticed(mixed) == signals
    edge = (
        sorted(each.at for each in history)[min(cut, len(history) - 1)] if rows else NOW
    )
    parts = {
        *noticed([each for each in history if each.at <= edge]),
        *noticed([each for each in history if each.at >= edge - SOON]),
    }
    # Of the second part only what it sees whole counts; the first has the rest.
    late = {each for each in parts if each.at > edge}
    early = set(noticed([each for each in history if each.at <= edge]))
    assert early | late == set(signals)
    known = History({each.id: each for each in history}, {}, BASE_OF)
    assert lessons(mixed_of(signals, shuffled), known, now=NOW) == lessons(
        signals, known, now=NOW
    )


def mixed_of(signals: Sequence[Noticed], shuffled: random.Random) -> list[Noticed]:
    """Return signals in another order, some of them twice."""
    mixed = [*signals, *signals[:3]]
    shuffled.shuffle(mixed)
    return mixed


# --- Words -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "word", "by"),
    [
        ("How do I block my card?", "how can I freeze the cards", "block", "freeze"),
        ("zablokować zgubioną kartę", "zastrzec zgubioną kartę", "zablokować", "zastrzec"),
        ("сколько стоит перевод денег", "сколько стоит отправка денег", "перевод", "отправка"),
        ("lương nhân viên mới", "thu nhập nhân viên mới", "lương", "thu nhập"),
        ("comision retragere bancomat", "taxă retragere bancomat", "comision", "taxă"),
    ],
)  # fmt: skip
@pytest.mark.req("S1-LRN-03")
def test_word_is_replaced_in_each_language(
    first: str, second: str, word: str, by: str
) -> None:
    """Grammatical words and endings do not count."""
    found = replacement(read(first), read(second))
    assert found is not None
    assert (found.word, found.by) == (word, by)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("block a card", "freeze a card abroad today please quickly now"),
        ("heron nest", "heron"),
        ("limit of QT-07", "limit of QT-08"),
        ("fees of 2024", "fees of 2025"),
        ("send [IBAN] money", "send [BIC] money"),
        ("block the card", "card blocked"),
        ("what is it", "how is it"),
        ("copper ladder heron", "silver ladder thunder heron"),
    ],
)
@pytest.mark.req("S1-LRN-03")
def test_nothing_stands_in_the_place_of_a_word(first: str, second: str) -> None:
    """Too much is new, nothing is, it is a code, or it is not in one place."""
    assert replacement(read(first), read(second)) is None


def test_questions_are_compared_by_their_content() -> None:
    """Endings and little words make no other question; a word does."""
    assert are_same(read("Where are the herons?"), read("heron, where"))
    assert not are_same(read("Where is it?"), read("what is it"))
    assert are_close(read("heron nest in June"), read("nests of storks"))
    assert not are_close(read("heron nest"), read("copper ladder"))
    assert read("heron nests").digest == read("the nest of a heron").digest


def test_word_is_found_whatever_language_the_question_seems_to_be_in() -> None:
    """A few words in plain letters may be of any of four languages."""
    key = key_of("karta", "pl")
    assert key in read("karty").all_forms
    assert key_of("đăng", "vi") == "đăng"


@pytest.mark.req("S1-QRW-02")
def test_synonyms_are_appended_once_and_only_where_they_lack() -> None:
    """The question as written comes first."""
    assert widened("block my card", ["freeze", "stop payment", "freeze"]) == (
        "block my card freeze stop payment"
    )
    assert widened("freeze a card", ["freeze"]) == ""
    assert widened("a card", []) == ""


# --- Signals ---------------------------------------------------------------------


@pytest.mark.req("S1-LRN-01")
def test_what_follows_an_answer_is_told_apart() -> None:
    """Other words, another layer, another question; and not what comes too late."""
    history = [
        ask(1, "heron nest", 40),
        ask(2, "heron nests", 39, chosen=frozenset({10})),
        ask(3, "heron eggs", 38, chosen=frozenset({10})),
        ask(4, "copper ladder", 37),
        ask(5, "silver ladder", 26),
    ]
    kinds = [(each.kind, each.first.int, each.second) for each in noticed(history)]
    assert kinds == [
        (Kind.LAYER_SWITCH, 1, UUID(int=2)),
        (Kind.REWORDED, 2, UUID(int=3)),
        (Kind.FOLLOW_UP, 3, UUID(int=4)),
    ]


@pytest.mark.req("S1-LRN-01")
def test_only_ones_own_chain_follows() -> None:
    """Somebody else's question is no rewording, nor one that belongs to nothing."""
    assert noticed([ask(1, "heron nest", 2, chain="a"), ask(2, "heron eggs", 1)]) == []
    alone = [ask(1, "heron nest", 2, chain=None), ask(2, "heron eggs", 1, chain=None)]
    assert noticed(alone) == []


# --- Lessons ---------------------------------------------------------------------


@pytest.mark.req("S1-LRN-07")
def test_synonym_belongs_to_the_layer_that_the_new_words_found() -> None:
    """Without one it holds for all that was asked over, and for nobody with less."""
    (found,) = learned(twice("block card", "freeze card", layer=10))
    assert found.lesson is Lesson.SYNONYM
    assert (found.term, found.value, found.scope) == (
        "block", ("freeze",), Scope(10, BASES),
    )  # fmt: skip
    (found,) = learned(twice("block card", "freeze card"))
    assert found.scope == Scope(None, BASES)
    # Asked over more, the words may come from any of it: they are for nobody with less.
    wide = frozenset({1, 2})
    over = twice("block card", "freeze card", layer=10, bases=wide)
    (found,) = learned(over)
    assert found.scope == Scope(10, wide)
    # A layer that went, or that was not among what was asked.
    for layer in (99, 20):
        (found,) = learned(twice("block card", "freeze card", layer=layer))
        assert found.scope == Scope(None, BASES)


@pytest.mark.req("S1-QRW-03")
def test_rewrite_is_learned_from_words_that_found_more() -> None:
    """Twice nothing with the first, and something with the second."""
    history = twice("bird nests in June", "heron nests", layer=10)
    assert [each.lesson for each in learned(history)] == []
    weak = [replace(each, is_weak=each.id.int % 2 == 1) for each in history]
    found = [each for each in learned(weak) if each.lesson is Lesson.REWRITE]
    assert [(each.term, each.value) for each in found] == [
        ("bird nests in June", ("heron nests",))
    ]
    # Whoever was answered knows better than a score.
    poor = {4: Rating(is_helpful=False)}
    assert not [
        each for each in learned(weak, ratings=poor) if each.lesson is Lesson.REWRITE
    ]


@pytest.mark.req("S1-QRW-03")
def test_searches_of_a_model_are_proven_by_use() -> None:
    """Found twice, and not asked again; the newest wording counts."""
    history = [
        ask(1, "bird nests", 300, chain="a", searches=("heron nests",)),
        ask(2, "nests of birds", 200, chain="b", searches=("heron nest", "stork nest")),
    ]
    (found,) = learned(history)
    assert found.source is Source.MODEL
    assert found.value == ("heron nest", "stork nest")
    assert found.scope == Scope(None, BASES)
    again = [*history, ask(3, "bird nests in trees", 199, chain="b")]
    assert not [each for each in learned(again) if each.source is Source.MODEL]
    liked = {1: Rating(is_helpful=True)}
    signal = Noticed(NOW, Kind.FEEDBACK, UUID(int=1), None, None, BASES)
    (found,) = learned(history[:1], ratings=liked, rated=[signal])
    assert len(found.evidence) == LEAST_SEEN


@pytest.mark.req("S1-RTE-01", "S1-FBK-02")
def test_affinity_comes_from_what_people_chose() -> None:
    """Another layer, named after an answer, and never from what was merely found."""
    assert learned(twice("heron nest", "heron nest", layer=10)) == []
    chosen = learned(twice("heron nest", "heron nest", chosen=frozenset({10})))
    assert {(each.term, each.scope.layer) for each in chosen} == {
        ("heron", 10), ("nest", 10),
    }  # fmt: skip
    ratings = {number: Rating(is_helpful=False, layer=10) for number in (1, 3)}
    said = [
        Noticed(NOW, Kind.FEEDBACK, UUID(int=number), None, 10, BASES)
        for number in ratings
    ]
    rated = learned(
        [ask(1, "heron 12", 60, chain="a"), ask(3, "the heron", 30, chain="b")],
        ratings=ratings,
        rated=said,
    )
    assert [(each.term, each.source) for each in rated] == [("heron", Source.CHOSEN)]


def test_better_question_of_a_rating_is_a_rewrite() -> None:
    """Said twice; the same words in another order are no better question."""
    history = [ask(1, "bird nests", 60, chain="a"), ask(3, "bird nest", 30, chain="b")]
    queries = (("heron nests", 1), ("nests of a bird", 0), (DROPPED, 0))
    for query, count in queries:
        ratings = {
            each.id.int: Rating(is_helpful=False, query=query) for each in history
        }
        said = [
            Noticed(NOW, Kind.FEEDBACK, each.id, None, None, BASES) for each in history
        ]
        found = learned(history, ratings=ratings, rated=said)
        assert [each.value for each in found] == [(query,)] * count


# --- What becomes of it ------------------------------------------------------------


@pytest.mark.req("S1-LRN-02")
@given(st.integers(0, 1000), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_unused_rewrite_counts_ever_less(days: int, more: int) -> None:
    """By half every 90 days; it goes after 180."""
    used, earlier = NOW - timedelta(days=days), NOW - timedelta(days=days + more)
    assert strength(earlier, now=NOW) <= strength(used, now=NOW) <= 1
    assert strength(used - timedelta(days=90), now=NOW) == pytest.approx(
        strength(used, now=NOW) / 2
    )
    assert is_stale(used, now=NOW) == (days > 180)


def test_what_fails_more_often_than_not_has_failed() -> None:
    """Once is an accident."""
    assert has_failed(2, 3)
    assert not has_failed(2, 4)
    assert not has_failed(1, 1)


def test_layer_has_a_share_of_each_word() -> None:
    """Words that lead elsewhere, or nowhere, count against it."""
    # Of two knowledge bases, each with the layers that are its own.
    counts = [{"heron": {1: 3}, "nest": {1: 2}}, {"heron": {2: 1}}]
    heron, nest, other = frozenset({"heron"}), frozenset({"nest"}), frozenset({"x"})
    assert shares(counts, [heron]) == {1: 0.75, 2: 0.25}
    assert shares(counts, [heron, nest, other, other]) == pytest.approx(
        {1: (0.75 + 1) / 4, 2: 0.25 / 4}
    )
    assert shares(counts, [other]) == {}
    assert shares(counts, []) == {}


def test_item_is_the_same_whoever_taught_it() -> None:
    """Its place, words and key make it; of a model's searches the question alone."""
    here, there = Scope(10, BASES), Scope(None, BASES)
    one = identity(Lesson.SYNONYM, "block", ["freeze"], here)
    assert one == identity("synonym", "block", ["Freeze"], here)
    assert one != identity(Lesson.SYNONYM, "block", ["freeze"], there)
    wide = Scope(10, frozenset({1, 2}))
    assert one != identity(Lesson.SYNONYM, "block", ["freeze"], wide)
    assert one != identity(Lesson.REWRITE, "block", ["freeze"], here)
    assert identity("rewrite", "k", ["a"], there, is_model=True) == identity(
        "rewrite", "k", ["b"], there, is_model=True
    )


HERE, OTHER, WIDE = Scope(10, BASES), Scope(20, frozenset({2})), frozenset({1, 2})


def said(
    term: str,
    *value: str,
    scope: Scope = HERE,
    lesson: Lesson = Lesson.REWRITE,
    is_model: bool = False,
) -> Subject:
    """Return what something learned says."""
    return Subject(lesson, read(term).digest, term, value, scope, is_model)


@pytest.mark.req("S1-LRN-08")
@pytest.mark.parametrize(
    ("removed", "learned_anew", "is_covered"),
    [
        # Other endings, another order, another little word.
        (("bird nests", "heron nests"), ("the nest of a bird", "a heron nest"), True),
        (("bird nests", "heron nests"), ("bird nests", "stork nests"), False),
        (("bird nests", "heron nests"), ("bird eggs", "heron nests"), False),
        (("bird nests", "heron nests"), ("bird nests", "heron nests", "eggs"), False),
    ],
)
def test_removal_covers_the_same_in_other_words(
    removed: tuple[str, ...], learned_anew: tuple[str, ...], *, is_covered: bool
) -> None:
    """And nothing that says something else."""
    assert said(*removed).covers(said(*learned_anew)) == is_covered


@pytest.mark.req("S1-LRN-08")
def test_removal_covers_the_same_over_other_lists() -> None:
    """In its layer and without one; without one, wherever it is asked."""
    one = said("bird nests", "heron nests")
    assert one.covers(replace(one, scope=Scope(10, WIDE)))
    assert one.covers(replace(one, scope=Scope(None, WIDE)))
    assert not one.covers(replace(one, scope=OTHER))
    assert not one.covers(replace(one, scope=Scope(None, OTHER.bases)))
    everywhere = replace(one, scope=Scope(None, BASES))
    assert all(
        everywhere.covers(replace(one, scope=scope))
        for scope in (HERE, OTHER, Scope(None, WIDE), Scope(None, OTHER.bases))
    )
    # A word is the same whatever language its question seemed to be in.
    word = Subject(Lesson.SYNONYM, "karty", "karty", ("plastik",), HERE, is_model=False)
    assert word.covers(replace(word, key=key_of("karty", "pl")))
    # A model words its searches anew each time; what people said is another thing.
    model = replace(one, is_model=True)
    assert model.covers(replace(model, value=("storks", "nest boxes")))
    assert not model.covers(one)
