"""What an answer's status comes to, and what is said of what is missing (S1-MIS)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from retrieval.answers import Mode, Note, NoteCode
from retrieval.clauses.references import Reference
from retrieval.confidence import Status
from retrieval.names import Name
from retrieval.results import Hit, Match
from retrieval.sections import SectionsFound


@dataclass(frozen=True, slots=True)
class Named:
    """What a question asks about by name, and what of it the passages do not hold.

    `references` are the labelled ones that were looked up (D34); bare numbers count
    for nothing where no section bears them (S1-ASK-16). `lacks_denial` tells that it
    asks for what is not so, and that what lies nearest to it denies nothing.
    """

    names: Sequence[Name] = ()
    missing_names: Sequence[Name] = ()
    references: Sequence[Reference] = ()
    missing_references: Sequence[Reference] = ()
    lacks_denial: bool = False

    @property
    def missing(self) -> list[str]:
        """What is missing, as the question writes it."""
        written = [each.written for each in self.missing_references]
        return written + [each.written for each in self.missing_names]

    @property
    def is_all_missing(self) -> bool:
        """Whether nothing of what it names is there."""
        return bool(self.missing) and len(self.missing) == (
            len(self.names) + len(self.references)
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer's status and its notes."""

    status: Status
    notes: tuple[Note, ...] = ()


def settle(
    judged: Status,
    *,
    mode: Mode,
    sections: SectionsFound,
    given: Sequence[Hit],
    named: Named,
    said: Sequence[Note] = (),
) -> Verdict:
    """Return the status that the scores' own comes to, and what is to be said.

    `given` are the passages that are handed back, `said` the notes of the sentences
    that were chosen, each of which says that a part is missing. A named clause that
    came back is found, whatever the scores (S1-ASK-14).
    """
    clauses = [hit for hit in given if hit.match is Match.EXACT]
    is_extractive = mode is Mode.EXTRACTIVE
    status = Status.FOUND if clauses and not is_extractive else judged
    notes = [*said]
    if not is_extractive:
        notes += cut_notes(clauses)
    if sections.note:
        notes.append(Note(NoteCode.SECTIONS, sections.note))
    is_short = sections.unread > 0 or sections.left_out > 0
    if status is Status.FOUND and (is_short or said or any(map(is_cut, clauses))):
        status = Status.PARTLY_FOUND
    if named.missing:
        if named.is_all_missing and not clauses:
            status = Status.NOT_FOUND
        elif status is Status.FOUND:
            status = Status.PARTLY_FOUND
        is_related = status is Status.NOT_FOUND and bool(given) and not is_extractive
        notes.append(missing_note(named.missing, is_related=is_related))
    elif named.lacks_denial and status is not Status.NOT_FOUND and not clauses:
        status = Status.NOT_FOUND
        notes.append(denial_note(is_related=not is_extractive))
    return Verdict(status, tuple(notes))


def is_cut(hit: Hit) -> bool:
    """Tell whether a named clause goes on after what is given of it."""
    return hit.cut


def cut_notes(clauses: Sequence[Hit]) -> Iterator[Note]:
    """Yield what is said of clauses of which only the beginning is given (S1-MIS-01)."""
    for hit in clauses:
        if hit.cut:
            yield Note(
                NoteCode.CLAUSE_CUT,
                _(
                    "Only the beginning of %(clause)s (%(file)s) is given. What is "
                    "missing can reverse what is there: read the whole clause in the "
                    "file."
                )
                % {"clause": clause_of(hit), "file": hit.citation.file},
            )


def clause_of(hit: Hit) -> str:
    """Return what a named clause is called: the last part of its path."""
    return hit.citation.clause_path.rpartition(" > ")[2] or hit.citation.title


def missing_note(missing: Sequence[str], *, is_related: bool) -> Note:
    """Return what is said of names that no passage holds (S1-MIS-15)."""
    sentence = ngettext(
        "No passage holds %(names)s.",
        "No passage holds any of: %(names)s.",
        len(missing),
    ) % {"names": ", ".join(missing)}
    return Note(NoteCode.NAMES_MISSING, sentence + related(is_related=is_related))


def denial_note(*, is_related: bool) -> Note:
    """Return what is said where a question asks for what is not so, and none says it."""
    sentence = _(
        "The question asks for what is not so, and the sentences nearest to it only say "
        "what is."
    )
    return Note(NoteCode.DENIAL_MISSING, sentence + related(is_related=is_related))


def related(*, is_related: bool) -> str:
    """Return what is said of passages that are no answer."""
    if not is_related:
        return ""
    return " " + _("The passages are related text, not the answer.")


def next_step(status: Status, *, has_layers: bool, named_layers: bool) -> str:
    """Return what to do after anything but a found answer (S1-ASK-10)."""
    if status is Status.FOUND:
        return ""
    if not has_layers:
        return _(
            "There is nothing that you may search here. Ask for access to a knowledge "
            "base, or name other layers."
        )
    if status is Status.PARTLY_FOUND:
        return _(
            "Answer what the passages support and say what stays open; a narrower "
            "question, or the document itself, may have the rest."
        )
    if named_layers:
        return _(
            "Reword the question in the documents' own terms or language, or ask without "
            "naming layers. If that finds nothing, no document covers it yet: add one."
        )
    return _(
        "Reword the question in the documents' own terms or language. If that finds "
        "nothing, no layer covers it yet: add a document or folder that does."
    )
