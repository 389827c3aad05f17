"""How alike two wordings are, in any language, by the vectors of their queries."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.conf import settings
from django.db.models import Q, QuerySet
from numpy.typing import NDArray

from approvals.models import Wording
from approvals.pauses import is_pausing, pause
from knowledge.inference.gateway import ModelError
from retrieval.embedding import embed, space_in_use

logger = logging.getLogger(__name__)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Mark:
    """From which cosine on two wordings count as one question.

    A question and its translation lie further apart than two of one language.
    """

    within: float
    across: float

    def holds(self, likeness: float, one: str, other: str) -> bool:
        """Tell whether wordings in these languages, "" being unknown, are that alike."""
        is_within = bool(one) and one == other
        return likeness >= (self.within if is_within else self.across)

    def between(
        self, ones: Sequence[str], others: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return the mark of each pair of wordings in these languages, as `holds` has it.

        A row for each of `ones`, a column for each of `others`.
        """
        first, second = np.array(ones)[:, np.newaxis], np.array(others)
        is_within = (first != "") & (first == second)
        return np.where(is_within, self.within, self.across)


# Of the bundled model; docs/approvals.md says how they were measured. In one
# conversation two like questions are probably one; of all questions, few are.
REWORDS: Final = Mark(within=0.85, across=0.80)
ALIKE: Final = Mark(within=0.90, across=0.83)
PAUSED: Final = "likeness"
# Wordings whose vectors one round asks for.
BATCH: Final = 200


def embedded(texts: Iterable[str]) -> tuple[dict[str, bytes], str]:
    """Return the packed vector of each text, and the fingerprint of their space.

    Nothing where this deployment compares no vectors. Raises ModelError where the model
    server gives none now.
    """
    space = space_in_use() if settings.PORTAL_EMBEDS else None
    if space is None:
        return {}, ""
    packed = {text: pack(embed(text, space).vector) for text in dict.fromkeys(texts)}
    return packed, space.fingerprint


def pack(vector: Iterable[float]) -> bytes:
    """Return a vector as it is stored: float32, little-endian."""
    return np.fromiter(vector, dtype="<f4").tobytes()


def unpack(packed: bytes) -> Floats:
    """Return a stored vector."""
    return np.frombuffer(packed, dtype="<f4")


def cosine(one: bytes, other: bytes) -> float:
    """Return the cosine of two stored unit vectors of one space."""
    return float(unpack(one) @ unpack(other))


def unknown_wordings() -> QuerySet[Wording]:
    """Return the wordings of questions that have no vector of the space in use yet."""
    space = space_in_use() if settings.PORTAL_EMBEDS else None
    if space is None:
        return Wording.objects.none()
    known = Wording.objects.filter(pending__isnull=False).exclude(text="")
    # On either side of the one space, so that the index finds them.
    other = Q(space__lt=space.fingerprint) | Q(space__gt=space.fingerprint)
    return known.filter(other)


def is_due() -> bool:
    """Tell whether there are vectors to fill in, and a model that may give them."""
    return not is_pausing(PAUSED) and unknown_wordings().exists()


def learn_wordings() -> int:
    """Fill in vectors, as many as one round takes; returns how many."""
    wordings = list(unknown_wordings().order_by("-pk")[:BATCH])
    try:
        vectors, space = embedded(each.text for each in wordings)
    except ModelError as error:
        logger.info("wordings are compared later: %s", error)
        pause(PAUSED)
        return 0
    for each in wordings:
        each.vector, each.space = vectors.get(each.text), space
    Wording.objects.bulk_update(wordings, ["vector", "space"])
    return len(wordings)
