"""What may be personal in an answer that is being written, as the page shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from approvals.privacy import check_answer, is_kept


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mark stands: the field, and its characters from `start` to `end`."""

    field: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ShownMark:
    """Words that may be personal, why, where they stand, and whether they stay."""

    text: str
    why: str
    places: tuple[Place, ...]
    is_kept: bool


def shown_marks(texts: Mapping[str, str], kept: Sequence[str]) -> list[ShownMark]:
    """Return what is marked in texts, by the names of their fields, each wording once.

    Raises ScrubbingError where it takes too long.
    """
    places: dict[str, list[Place]] = {}
    reasons: dict[str, str] = {}
    for mark in check_answer(texts):
        reasons.setdefault(mark.text, mark.why)
        places.setdefault(mark.text, []).append(Place(mark.place, mark.start, mark.end))
    return [
        # The guard is pure; its reasons are put into the page's language here.
        ShownMark(text, _(reasons[text]), tuple(where), is_kept(text, kept))
        for text, where in places.items()
    ]
