"""Any text is judged without an error, with work in proportion to its length."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.verification import Outcome, Read, check_draft, facts_in
from retrieval.verification.holdings import Holdings

PASSAGE = (
    "7.2 Either party may end this agreement within thirty (30) days, a b c, for EUR 5, "
    "by 4 November 2026, as Article 6(1)(b) and AC01 say."
)
PASSAGES = [Read("d1:0-9", PASSAGE), Read("d2:0-9", PASSAGE.upper())]
# What attackers and accidents are made of: each piece once meant something to a rule.
PIECES = [
    "1", "1 ", "1,", "111 ", "1.", "-", "(1)", "4.3.2 ", "30 or ", "30 days ",
    "thirty ", "hundred ", "mười ", "douăzeci de ", "twenty and ", "o sută ", "năm ",
    '"a" ', '"a b ... c d" ', "“", "”", "«", "»", "‘a ", "’s ", '"a\n', "a b … ",
    "[S1]", "[S1] ", "[S1-S2,", "[S", "...", ". ", ".\n", "? [S1] ", "\n", " ", "_", "*",
    "Article 5, ", "art. 1-60 ust. 1-60 ", "§ 4 ust. 2, ", "6(1)(b) ", "part ", "khoản ",
    "AC01 ", "A1/", "AC-", "pacs.", "PL61 1090 1014 ", "PL61", "EUR 5 ", "$", "5 % ",
    "4 November 2026 ", "2026-11-", "4–6 May ", "May 5 ", "ngày 4 tháng 11 năm 2026 ",
    "tháng ", "10:30 ", "| 5 |", "https://a.b/1 ", "a@", "e\u0323\u0302", "\u00ad",
    "（", "１", "\x00",
]  # fmt: skip

texts = st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text()


def steps(work: Callable[[], object]) -> int:
    """Return how many calls, of Python's own functions too, some work makes."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@given(texts)
def test_any_draft_is_judged(draft: str) -> None:
    verdict = check_draft(draft, PASSAGES)
    assert (verdict.outcome is Outcome.FLAGGED) is bool(verdict.flags)
    assert len(verdict.flags) <= 50
    assert len(verdict.unchecked_sentences) <= 50
    for flag in verdict.flags:
        assert flag.sentence in draft
    for found in verdict.found:
        text = PASSAGES[int(found.passage[1:]) - 1].text or ""
        assert 0 <= found.start < found.end <= len(text)


@given(texts)
def test_a_passage_holds_all_that_its_own_text_claims(text: str) -> None:
    holdings = Holdings(text)
    for fact in facts_in(text):
        assert 0 <= fact.start < fact.end <= len(text)
        assert holdings.find(fact) is not None, fact


@given(st.text(alphabet="ab \n.«»“”\"'…0123456789[]S", max_size=200))
def test_words_of_a_passage_between_marks_are_a_quote_of_it(text: str) -> None:
    words = PASSAGE.split()
    quote = " ".join(words[1:5])
    draft = f"«{quote}» [S1]."
    assert check_draft(draft, [Read("d1:0-9", f"{text}\n{PASSAGE}")]).outcome == (
        Outcome.VERIFIED
    )


@pytest.mark.req("REL-P8")
@pytest.mark.parametrize("piece", PIECES)
def test_the_work_grows_as_the_text_does(piece: str) -> None:
    def drafted(size: int) -> Callable[[], object]:
        draft = (piece * size)[:size] + " [S1]"
        return lambda: check_draft(draft, PASSAGES)

    def held(size: int) -> Callable[[], object]:
        text = (piece * size)[:size]
        return lambda: Holdings(text)

    for work in (drafted, held):
        small, large = steps(work(1_000)), steps(work(4_000))
        # Four times the text; what does not grow with it only helps.
        assert large <= 4.5 * small + 500


@pytest.mark.req("REL-P8")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "run",
    [
        "a",
        "A-",
        "a.",
        "a@",
        "a_",
        "_",
        ".",
        "-",
        " ",
        "\n",
        "(",
        "[",
        '"',
        "«",
        "e\u0323\u0302",
    ],
)
def test_no_pattern_goes_over_a_long_run_again_and_again(run: str) -> None:
    # Calls are not counted within a pattern. One that takes steps by the square of the
    # length would need minutes for 100 kB; all of them together need a moment.
    text = (run * 100_000)[:100_000]
    assert check_draft(f"{text} [S1]", PASSAGES).outcome is not None
    Holdings(text)
