"""What people write at the gate, as it is taken: cleaned, bounded, and looked through."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from approvals.errors import ApprovalError, PrivacyError
from approvals.models.question import (
    LONGEST_ANSWER,
    LONGEST_PUBLISHED,
    LONGEST_REASON,
    MOST_ALSO_ASKED,
)
from approvals.privacy import Mark, check_answer, quoted_marks
from knowledge.sanitizing import InvalidTextError, clean_document_text, clean_query
from knowledge.scrubbing import ScrubbingError, scrub

# The place of other wordings, beside "question" and "answer".
ALSO_ASKED = "also_asked"


def refuse_personal(texts: Mapping[str, str], kept: Sequence[str]) -> None:
    """Raise PrivacyError where personal details are left (S2-APR-08).

    `texts` are what is to be published, by the names of their places. Each detail is
    removed, or named among those that stay on purpose. What takes too long to look
    through is not published either.
    """
    try:
        marks = check_answer(texts, kept)
    except ScrubbingError as error:
        raise ApprovalError(
            _("This text could not be looked through. Make it shorter.")
        ) from error
    if marks:
        raise PrivacyError(refusal(marks), marks)


def refusal(marks: Sequence[Mark], *, hides_bank_details: bool = False) -> str:
    """Return what is said to a person about marks that are left.

    What is kept until it can be said hides bank details (`quoted_marks`).
    """
    named = quoted_marks(marks, hides_bank_details=hides_bank_details)
    return _(
        "Remove what could tell who somebody is, or keep it on purpose: %(named)s."
    ) % {"named": named}


def cleaned_question(text: str) -> str:
    """Return a question as it is published: one line."""
    try:
        return clean_query(text, max_length=LONGEST_PUBLISHED)
    except InvalidTextError as error:
        raise ApprovalError(_("The question: %(why)s") % {"why": error}) from error


def cleaned_wordings(texts: Sequence[str], question: str) -> list[str]:
    """Return other wordings of a question as they are published, each once."""
    found: dict[str, str] = {}
    for text in texts:
        if not text.strip():
            continue
        try:
            wording = clean_query(text, max_length=LONGEST_PUBLISHED)
        except InvalidTextError as error:
            raise ApprovalError(
                _("Another wording: %(why)s") % {"why": error}
            ) from error
        found.setdefault(wording.casefold(), wording)
    found.pop(question.casefold(), None)
    if len(found) > MOST_ALSO_ASKED:
        raise ApprovalError(
            _("There are %(count)s other wordings; at most %(most)s are accepted.")
            % {"count": len(found), "most": MOST_ALSO_ASKED}
        )
    return list(found.values())


def cleaned_answer(text: str) -> str:
    """Return an answer with plain line ends, without what nobody can read."""
    cleaned = clean_document_text(text)[0].strip()
    if not cleaned:
        raise ApprovalError(_("Write the answer first."))
    if len(cleaned) > LONGEST_ANSWER:
        raise ApprovalError(
            _("The answer has %(count)s characters; at most %(most)s are accepted.")
            % {"count": len(cleaned), "most": LONGEST_ANSWER}
        )
    return cleaned


def cleaned_reason(text: str) -> str:
    """Return a reason in one line, scrubbed, cut to what is kept."""
    return scrub(" ".join(clean_document_text(text)[0].split()))[:LONGEST_REASON]


def required_reason(text: str) -> str:
    """Return a reason; raises ApprovalError where none is given."""
    reason = cleaned_reason(text)
    if not reason:
        raise ApprovalError(_("Say why, in a few words."))
    return reason
