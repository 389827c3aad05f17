"""How a question is answered: grounded or extractive (S1-ASK-11, S1-EXT-04 to 07)."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _

from knowledge.models import Layer
from knowledge.models.knowledge_base import AnswerMode
from knowledge.permissions import Reader
from retrieval.answers import Mode, Note, NoteCode
from retrieval.reach import Reach
from retrieval.results import Citation, Hit


class LayerRow(NamedTuple):
    """What an ask has to know of a layer."""

    pk: int
    name: str
    knowledge_base: str
    knowledge_base_id: int
    answer_mode: str


class Layers:
    """The layers of a reader, by knowledge base and name."""

    def __init__(self, rows: Sequence[LayerRow]) -> None:
        self._rows = {(row.knowledge_base, row.name): row for row in rows}

    @classmethod
    def of(cls, reader: Reader) -> "Layers":
        """Read those that a reader may search."""
        rows = Layer.objects.visible_to(reader).values_list(
            "pk", "name", "knowledge_base__slug", "knowledge_base_id", "answer_mode"
        )
        return cls([LayerRow(*row) for row in rows])

    @property
    def knowledge_bases(self) -> dict[str, int]:
        """The ids of their knowledge bases, by short name."""
        return {
            row.knowledge_base: row.knowledge_base_id for row in self._rows.values()
        }

    @property
    def shared(self) -> frozenset[str]:
        """The names that layers of several knowledge bases have."""
        counted = Counter(name for _base, name in self._rows)
        return frozenset(name for name, count in counted.items() if count > 1)

    def is_extractive(self, citation: Citation) -> bool:
        """Tell whether what a citation names is of an extractive layer."""
        row = self._rows.get((citation.knowledge_base, citation.layer))
        return row is not None and row.answer_mode == AnswerMode.EXTRACTIVE

    def strictest(self, reach: Reach) -> Mode:
        """Return the strictest mode of the layers within a reach."""
        searched = (
            row
            for row in self._rows.values()
            if row.knowledge_base_id in reach.knowledge_base_ids
            and (reach.layer_ids is None or row.pk in reach.layer_ids)
        )
        if any(row.answer_mode == AnswerMode.EXTRACTIVE for row in searched):
            return Mode.EXTRACTIVE
        return Mode.GROUNDED


def choose_mode(
    wanted: Mode | None, given: Sequence[Hit], layers: Layers, reach: Reach
) -> tuple[Mode, tuple[Note, ...]]:
    """Return the mode of an answer, and what is said where it is not the one wanted.

    It follows the passages that are handed back: one from an extractive layer makes the
    answer extractive, which no caller can loosen (S1-EXT-06). Without any passage it is
    the mode that was asked for, else the strictest of the layers searched.
    """
    if not given:
        return wanted or layers.strictest(reach), ()
    if not any(layers.is_extractive(hit.citation) for hit in given):
        return wanted or Mode.GROUNDED, ()
    notes: tuple[Note, ...] = ()
    if wanted is Mode.GROUNDED:
        text = _(
            "A passage comes from a layer that must not be paraphrased, so the answer "
            "stays in the documents' own sentences."
        )
        notes = (Note(NoteCode.STAYS_EXTRACTIVE, text),)
    return Mode.EXTRACTIVE, notes
