"""A worded answer, drafted by a language model and checked before anybody sees it.

The model gets the question and the passages, and gives back words, which are looked up
in the documents (`retrieval.verify`). It calls nothing, opens nothing and is told
nothing else, so a document that addresses it can at most spoil its own answer. What is
flagged is written anew once, then left out; what cannot be proved is not shown.
"""

import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.conf import settings

from knowledge.inference.gateway import ModelError, ModelMismatchError
from knowledge.models.ledger import Kind
from knowledge.permissions import Reader
from knowledge.sanitizing import clean_document_text
from knowledge.scrubbing import scrub
from retrieval.answers import Answer, Mode
from retrieval.confidence import Status
from retrieval.contract import DRAFTING_RULES
from retrieval.ledger import charge_all
from retrieval.providers import Provider, drafting_model
from retrieval.results import Occasion
from retrieval.verification import Found, Read, check_draft, sentences_of
from retrieval.verification import Outcome as Verdict
from retrieval.verify import Verified, verify

logger = logging.getLogger(__name__)

MOST_TOKENS: Final = 1200
# Characters of a draft; a longer one has not kept to "a few sentences".
MOST_DRAFT: Final = 8000
# Sentences of a draft that are looked up one by one.
MOST_SENTENCES: Final = 20
NOT_THERE: Final = "NOT IN THE PASSAGES"
# What models that think aloud write before their answer.
THOUGHT: Final = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
ADDRESS: Final = re.compile(
    r"(?:[a-z]{2,10}://|www\.)\S{1,300}|[^\s@]{1,64}@[^\s@]{1,255}", re.IGNORECASE
)
# What may stand behind an address and is none of it.
ENDINGS: Final = ".,;:!?)]}>'\"”»"
INSTRUCTIONS: Final = f"""\
You word the answer to one question from the passages that come with it. Your words are \
checked against the passages by a program; whatever it does not find there is not shown.

{DRAFTING_RULES}

## This answer

- Write one to five plain sentences in the language of the question: no heading, no \
list, no link, no greeting.
- End each sentence's claim with the id of its passage, as in [S1]. Use the ids that \
are given, and no others.
- Where words decide, quote them in quotation marks, exactly as the passage has them.
- If no passage answers exactly what is asked, reply with {NOT_THERE} and nothing else.
- If a draft and its problems come along, write it anew so that none of them is left. \
Leave out what the passages do not say.\
"""


class Outcome(StrEnum):
    """What came of drafting."""

    WORDED = "worded"
    NOT_THERE = "not_there"
    UNPROVED = "unproved"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a language model made of an answer's passages.

    `text` is its draft as it was verified, with marks such as [S1], and empty unless
    the outcome is WORDED; then `receipt_id` names the receipt. `unchecked` are its
    sentences that hold nothing to check, `found` where passages hold its quotes and
    facts. `left_out` counts sentences that were dropped since the passages do not bear
    them out.
    """

    outcome: Outcome
    text: str = ""
    receipt_id: str = ""
    unchecked: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()
    left_out: int = 0


def draft(
    reader: Reader,
    question: str,
    answer: Answer,
    *,
    occasion: Occasion,
    progress: Callable[[str], None] = lambda _step: None,
) -> Drafted | None:
    """Return a worded answer to a question from an answer's passages.

    None where none is wanted: no provider is set up, nothing was found, or the passages
    may only be quoted. `progress` is told "draft" and "verify" as each begins. A model
    that fails is said in the outcome; it raises nothing.
    """
    model = drafting_model()
    if (
        model is None
        or answer.mode is not Mode.GROUNDED
        or answer.status is Status.NOT_FOUND
        or not answer.passages
    ):
        return None
    drafting = Drafting(reader, question, answer, occasion, model, progress)
    try:
        return drafting.checked()
    except ModelError as error:
        logger.warning("draft_failed: %s", error)
        return Drafted(Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class Drafting:
    """One question with its passages, and whoever words and checks the answer."""

    reader: Reader
    question: str
    answer: Answer
    occasion: Occasion
    model: Provider
    progress: Callable[[str], None]

    def checked(self) -> Drafted:
        """Return the first of three drafts that stands: written, corrected, trimmed."""
        text, left_out = self.write(), 0
        for attempt in ("written", "corrected", "trimmed"):
            if NOT_THERE in text:
                return Drafted(Outcome.NOT_THERE)
            found, problems = self.examined(text)
            if found is not None and not problems:
                return Drafted(
                    Outcome.WORDED,
                    text=text,
                    receipt_id=found.receipt_id,
                    unchecked=found.unchecked_sentences,
                    found=found.found,
                    left_out=left_out,
                )
            if attempt == "written":
                text = self.write(text, problems)
            elif attempt == "corrected":
                text, left_out = self.trimmed(text)
                if not left_out or not text:
                    break
        return Drafted(Outcome.UNPROVED)

    def write(self, earlier: str = "", problems: Sequence[str] = ()) -> str:
        """Return what the model writes, or writes anew; raises ModelError.

        It is asked in JSON, so that no passage can end its own part and speak as us.
        """
        self.progress("draft")
        message: dict[str, object] = {
            "question": scrub(self.question),
            "passages": [
                {"id": passage.id, "text": passage.text}
                for passage in self.answer.passages
            ],
        }
        if problems:
            message |= {"draft": earlier, "problems": problems}
        reply = self.model.complete(
            INSTRUCTIONS,
            json.dumps(message, ensure_ascii=False),
            most_tokens=MOST_TOKENS,
            seconds=settings.STRATA_DRAFTING_TIMEOUT,
        )
        if self.occasion.leaves_trace:
            charge_all(self.reader, {Kind.REWRITE: reply.tokens})
        text, _dropped = clean_document_text(THOUGHT.sub("", reply.text))
        text = text.strip()
        if not text or len(text) > MOST_DRAFT:
            raise ModelMismatchError("The draft is empty or far too long.")
        return text

    def examined(self, text: str) -> tuple[Verified | None, list[str]]:
        """Return how the documents bear a draft out, and what is to be corrected.

        One with an address of its own is not even looked up: a receipt would be written
        for what is not shown.
        """
        self.progress("verify")
        if addresses := self.strange_addresses(text):
            return None, [f"{each} is in no passage." for each in addresses]
        found = verify(
            self.reader,
            text,
            [passage.ref for passage in self.answer.passages],
            occasion=self.occasion,
            interaction=UUID(self.answer.interaction_id)
            if self.answer.interaction_id
            else None,
        )
        if found.outcome is Verdict.VERIFIED:
            return found, []
        told = [flag.message for flag in found.flags]
        return found, list(dict.fromkeys(told)) or [found.note]

    def trimmed(self, text: str) -> tuple[str, int]:
        """Return the sentences that each by itself stand, and how many do not."""
        reads = [Read(passage.ref, passage.text) for passage in self.answer.passages]
        sentences = sentences_of(text, reads)
        if len(sentences) > MOST_SENTENCES:
            return "", len(sentences)
        # A line break is a sentence of its own, and keeps others apart.
        kept = [
            each for each in sentences if not each.strip() or self.stands(each, reads)
        ]
        return "".join(kept).strip(), len(sentences) - len(kept)

    def stands(self, sentence: str, reads: Sequence[Read]) -> bool:
        """Tell whether the passages bear one sentence out."""
        return check_draft(
            sentence, reads
        ).outcome is not Verdict.FLAGGED and not self.strange_addresses(sentence)

    def strange_addresses(self, text: str) -> list[str]:
        """Return web and mail addresses that no passage holds: nobody checks those."""
        told = "\n".join(passage.text for passage in self.answer.passages)
        found = (each[0].rstrip(ENDINGS) for each in ADDRESS.finditer(text))
        return [each for each in found if each not in told]
