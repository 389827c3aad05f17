"""What becomes of quoted words when a text takes another one's place."""

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.differences import find_words
from retrieval.fates import Fate, Fates, Outcome, Words

OLD = (
    "# Fees\n\nA transfer costs 5 euro.\n\nA cash deposit is free of charge.\n\n"
    "Cards are sent by post.\n"
)
NEW = (
    "# Fees\n\nA transfer costs 6 euro.\n\nCards are sent  by\npost.\n\n"
    "Complaints are answered within 15 days.\n"
)


def of(words: str) -> Fate:
    """Return the fate of words of the old text."""
    start = OLD.index(words)
    return Fates(OLD, NEW).of(words, (start, start + len(words)))


def test_words_that_are_still_there_stand_whatever_the_line_breaks() -> None:
    fate = of("Cards are sent by post.")
    assert fate.outcome is Outcome.STANDS
    assert fate.place is not None
    assert NEW[slice(*fate.place)] == "Cards are sent  by\npost."


def test_a_sentence_that_says_something_else_now_changes() -> None:
    fate = of("A transfer costs 5 euro.")
    assert fate.outcome is Outcome.CHANGES
    assert fate.place is not None
    assert NEW[slice(*fate.place)] == "A transfer costs 6 euro."


def test_a_sentence_with_nothing_in_its_place_vanishes() -> None:
    assert of("A cash deposit is free of charge.") == Fate(Outcome.VANISHES)
    assert Fates(OLD, None).of("Cards are sent by post.") == Fate(Outcome.VANISHES)


def test_what_the_old_text_did_not_say_any_more_is_not_counted_again() -> None:
    assert Fates(OLD, NEW).of("A transfer costs 4 euro.") == Fate(Outcome.BEFORE)


def test_of_a_text_that_was_not_kept_all_words_are_taken_to_have_stood() -> None:
    fates = Fates(None, NEW)
    assert fates.of("A transfer costs 6 euro.").outcome is Outcome.STANDS
    assert fates.of("A transfer costs 4 euro.").outcome is Outcome.VANISHES


TEXT = st.text(alphabet="ab1é-. \n\t", max_size=30)


@settings(max_examples=100, deadline=None)
@given(TEXT, TEXT)
def test_words_are_found_where_citations_find_them(text: str, words: str) -> None:
    assert Words(text).find(words) == find_words(text, words)
