"""Hold a draft against the passages it was written from. Pure, without a model.

Every quote must stand in the passage it cites, every fact outside quotes in a passage
that its sentence cites. A paraphrase that changes the meaning without changing a fact is
not found out (S1-VER-17).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from retrieval.verification.facts import Fact, FactKind, facts_in
from retrieval.verification.holdings import Holdings
from retrieval.verification.quotes import (
    Quote,
    Wanted,
    Words,
    find_quotes,
    find_wanted,
    wanted_of,
    words_of,
)
from retrieval.verification.sentences import (
    Sentence,
    find_citations,
    split_draft,
)
from retrieval.verification.text import TAKEN
from retrieval.verification.verdict import (
    MOST_FLAGS,
    MOST_SENTENCE_CHARACTERS,
    MOST_TEXT_CHARACTERS,
    MOST_UNCHECKED,
    Flag,
    FlagKind,
    Found,
    Outcome,
    Read,
    Verdict,
    listed,
    shortened,
)

# The number of a list's item is the writer's and no fact: "1. …", "2) …".
_ITEM = re.compile(r"^[ \t>#]{0,12}\(?\d{1,2}[.)](?=\s)", re.MULTILINE)
_LETTER = re.compile(r"[^\W\d_]")
# Between a quote and its citations, and between these.
_TO_CITATION = re.compile(r"[ \t]*[.,;:)]?[ \t]*")
NO_CITATION = (
    "No citation: the draft cites no passage. Name in each sentence the passage that "
    "supports it, as in [S1]."
)
NOTHING_CHECKED = (
    "Nothing was checked: the draft has no quote and no fact. Quote the passage that "
    "supports it and verify again, or call the answer unverified."
)


def check_draft(draft: str, passages: Sequence[Read]) -> Verdict:
    """Return whether the passages hold a draft's quotes and facts.

    The first passage is S1. Work grows in proportion to the draft and to the passages.
    """
    return _Check(draft, passages).verdict()


def sentences_of(draft: str, passages: Sequence[Read]) -> list[str]:
    """Return a draft's sentences as they are checked; together they are the draft."""
    check = _Check(draft, passages)
    return [draft[each.start : each.end] for each in check.sentences]


class _Passage:
    """A passage's words and facts, read when they are first asked for."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text

    @cached_property
    def words(self) -> Words:
        return words_of(self.text)

    @cached_property
    def holdings(self) -> Holdings:
        return Holdings(self.text)


class _Check:
    """One check: the parts of a draft, and what was found of them."""

    def __init__(self, draft: str, passages: Sequence[Read]) -> None:
        self.draft = draft
        self.reads = passages
        self.passages = {
            number: _Passage(number, read.text)
            for number, read in enumerate(passages, start=1)
            if read.text is not None
        }
        self.quotes = [
            (quote, wanted)
            for quote in find_quotes(draft)
            if (wanted := wanted_of(draft[quote.inner_start : quote.inner_end])).parts
        ]
        spans = [quote for quote, _wanted in self.quotes]
        self.citations, self.unknown = find_citations(draft, spans, len(passages))
        self.facts = [
            fact
            for fact in facts_in(self._outside_quotes())
            if not self._is_passage(fact)
        ]
        self.sentences = split_draft(draft, spans, self.citations, self.facts)
        self.flags: dict[tuple[FlagKind, str, str], Flag] = {}
        self.found: dict[Found, None] = {}
        self.citation_at = {one.start: one for one in self.citations}
        self._looked_for: dict[tuple[int, Wanted], tuple[tuple[int, int], ...]] = {}

    def verdict(self) -> Verdict:
        """Check everything and say how it ended."""
        self._check_passages()
        self._check_citations()
        unchecked = []
        quotes, facts = iter(self.quotes), iter(self.facts)
        quote, fact = next(quotes, None), next(facts, None)
        for sentence in self.sentences:
            numbers = sentence.numbers
            is_checked = False
            while quote is not None and quote[0].start < sentence.end:
                self._check_quote(sentence, numbers, *quote)
                quote, is_checked = next(quotes, None), True
            while fact is not None and fact.start < sentence.end:
                self._check_fact(sentence, numbers, fact)
                fact, is_checked = next(facts, None), True
            if not is_checked and self._says_something(sentence):
                unchecked.append(sentence)
        return self._ended(unchecked)

    def _ended(self, unchecked: Sequence[Sentence]) -> Verdict:
        flags = tuple(self.flags.values())[:MOST_FLAGS]
        is_any = bool(self.quotes or self.facts)
        if flags:
            outcome = Outcome.FLAGGED
        else:
            outcome = Outcome.VERIFIED if is_any else Outcome.NOTHING_CHECKED
        listed_sentences = unchecked[:MOST_UNCHECKED] if is_any else ()
        return Verdict(
            outcome=outcome,
            flags=flags,
            unchecked_sentences=tuple(
                self._written(each).strip()[:MOST_SENTENCE_CHARACTERS]
                for each in listed_sentences
            ),
            found=tuple(self.found),
            note=NOTHING_CHECKED if outcome is Outcome.NOTHING_CHECKED else "",
        )

    # --- The parts of the draft -------------------------------------------------

    def _outside_quotes(self) -> str:
        """Return the draft with only what may be a fact, at its own offsets."""
        kept = list(self.draft)
        for quote, _wanted in self.quotes:
            length = quote.end - quote.start
            kept[quote.start : quote.end] = TAKEN * length
        for citation in self.citations:
            length = citation.end - citation.start
            kept[citation.start : citation.end] = " " * length
        return _ITEM.sub(lambda item: TAKEN * len(item[0]), "".join(kept))

    def _is_passage(self, fact: Fact) -> bool:
        """Tell a passage's name without brackets ("S1 says so") from a code."""
        number = fact.value[1:]
        is_named = fact.kind is FactKind.CODE and fact.value[0] == "s"
        return is_named and number.isdecimal() and 0 < int(number) <= len(self.reads)

    def _written(self, sentence: Sentence) -> str:
        return self.draft[sentence.start : sentence.end]

    def _says_something(self, sentence: Sentence) -> bool:
        """Tell a sentence from one that is only a citation, a mark or a number."""
        kept, at = [], sentence.start
        for citation in sentence.citations:
            kept.append(self.draft[at : citation.start])
            at = citation.end
        kept.append(self.draft[at : sentence.end])
        return _LETTER.search("".join(kept)) is not None

    # --- Passages and citations -------------------------------------------------

    def _check_passages(self) -> None:
        for number, read in enumerate(self.reads, start=1):
            if read.problem or read.text is None:
                message = read.problem or f"{read.ref} could not be read."
                self._flag(FlagKind.PASSAGE, read.ref, None, (number,), message)

    def _check_citations(self) -> None:
        everywhere = range(1, len(self.reads) + 1)
        for name in self.unknown:
            given = f"{len(self.reads)} passage" + "s" * (len(self.reads) != 1)
            message = f"[{name}] is cited, but {given} came with the draft."
            self._flag(FlagKind.CITATION, f"[{name}]", None, everywhere, message)
        if not self.citations:
            self._flag(FlagKind.NO_CITATION, "", None, everywhere, NO_CITATION)

    # --- Quotes and facts -------------------------------------------------------

    def _check_quote(
        self, sentence: Sentence, numbers: Sequence[int], quote: Quote, wanted: Wanted
    ) -> None:
        written = shortened(self.draft[quote.start : quote.end], MOST_TEXT_CHARACTERS)
        numbers = self._searched(self._cited_behind(quote) or numbers)
        for number in numbers if quote.is_closed else ():
            if spans := self._quote_in(number, wanted):
                for start, end in spans:
                    one = Found(FlagKind.QUOTE, written, f"S{number}", start, end)
                    self.found.setdefault(one)
                return
        if not quote.is_closed:
            message = f"The quotation mark of {written} is never closed."
        elif wanted.is_short:
            message = f"{written}: an omission has at least two words on each side."
        elif all(number in self.passages for number in numbers):
            message = f"{written} not found in {listed(numbers)}"
        else:
            # What could not be read has a flag of its own.
            return
        self._flag(FlagKind.QUOTE, written, sentence, numbers, message)

    def _quote_in(self, number: int, wanted: Wanted) -> tuple[tuple[int, int], ...]:
        """Return where a passage holds a quote's parts; looked for once."""
        key = (number, wanted)
        if key not in self._looked_for:
            passage = self.passages.get(number)
            self._looked_for[key] = (
                find_wanted(wanted, passage.words, passage.text) if passage else ()
            )
        return self._looked_for[key]

    def _check_fact(
        self, sentence: Sentence, numbers: Sequence[int], fact: Fact
    ) -> None:
        numbers = self._searched(numbers)
        written = shortened(fact.text, MOST_TEXT_CHARACTERS)
        for number in numbers:
            passage = self.passages.get(number)
            place = passage.holdings.find(fact) if passage else None
            if place is not None:
                one = Found(str(fact.kind), written, f"S{number}", *place)
                self.found.setdefault(one)
                return
        # What could not be read has a flag of its own.
        if all(number in self.passages for number in numbers):
            message = f'"{written}" not found in {listed(numbers)}'
            self._flag(FlagKind.FACT, written, sentence, numbers, message)

    def _searched(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the passages to search: those cited, or else all (S1-VER-07)."""
        return numbers or range(1, len(self.reads) + 1)

    def _cited_behind(self, quote: Quote) -> tuple[int, ...]:
        """Return the passages cited right behind a quote: `"…" [S2]`."""
        cited: list[int] = []
        at = quote.end
        while gap := _TO_CITATION.match(self.draft, at):
            citation = self.citation_at.get(gap.end())
            if citation is None:
                break
            cited += citation.numbers
            at = citation.end
        return tuple(dict.fromkeys(cited))

    def _flag(
        self,
        kind: FlagKind,
        text: str,
        sentence: Sentence | None,
        numbers: Sequence[int],
        message: str,
    ) -> None:
        """Note a flag; the same one again is no other."""
        if len(self.flags) >= MOST_FLAGS:
            return
        written = self._written(sentence).strip() if sentence else ""
        searched = tuple(f"S{number}" for number in numbers)
        flag = Flag(kind, text, written, searched, message)
        self.flags.setdefault((kind, text, written), flag)
