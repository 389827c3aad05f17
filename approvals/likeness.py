"""How alike two wordings are, in any language, by the vectors of their queries."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.conf import settings
from django.db.models import QuerySet
from numpy.typing import NDArray

from approvals.models import Wording
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


# Of the bundled model; docs/approvals.md says how they were measured. In one
# conversation two like questions are probably one; of all questions, few are.
REWORDS: Final = Mark(within=0.85, across=0.80)
ALIKE: Final = Mark(within=0.90, across=0.83)
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
    return known.exclude(space=space.fingerprint)


def learn_wordings() -> int:
    """Fill in vectors, as many as one round takes; returns how many."""
    wordings = list(unknown_wordings().order_by("-pk")[:BATCH])
    try:
        vectors, space = embedded(each.text for each in wordings)
    except ModelError as error:
        logger.info("wordings are compared later: %s", error)
        return 0
    for each in wordings:
        each.vector, each.space = vectors.get(each.text), space
    Wording.objects.bulk_update(wordings, ["vector", "space"])
    return len(wordings)
