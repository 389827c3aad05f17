"""Which scale a search's scores are judged on: fitted, bundled, or provisional (D12)."""

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from typing import Any

from django.conf import settings

from knowledge.inference.languages import is_bundled
from knowledge.models import EmbeddingSpace
from retrieval.models import Calibration
from retrieval.results import Basis
from retrieval.scales import Scale, unfitted
from retrieval.standing import standing

# What `manage.py calibrate --write` fitted for the bundled model; docs/models.md tells
# on which questions.
BUNDLED_FILE = "bundled-calibration.json"


def calibrated(space: EmbeddingSpace | None, basis: Basis) -> Scale:
    """Return the scale that holds for a space's scores.

    The newest fit of this very scorer, else the one that ships with the bundled model,
    else a provisional one. A CrossEncoder's scores need no space.
    """
    held = fitted(newest_fit(), scorer_of(space, basis), basis)
    if held is not None:
        return held
    if uses_cross_encoder(basis):
        return unfitted(basis)
    if space is not None and is_bundled(space.model_id, space.token_format):
        shipped = bundled_scales().get(basis)
        if shipped is not None:
            return shipped
    return unfitted(basis)


def newest_fit() -> int:
    """Return a number that changes with every fit: what was judged before is old."""
    return standing().fit or 0


@functools.lru_cache(maxsize=64)
def fitted(newest: int, scorer: str, basis: Basis) -> Scale | None:
    """Return the newest fit of a scorer, None where there is none.

    `newest` is the newest fit of all: rows are only ever added, so what holds while it
    does need not be asked for at each search.
    """
    row = Calibration.objects.of(scorer, basis).first() if newest else None
    return None if row is None else read_scale(basis, row.scale)


def uses_cross_encoder(basis: Basis) -> bool:
    """Tell whether the scores of a basis are those of RERANKING_MODEL."""
    return basis is not Basis.SIMILARITY and bool(settings.RERANKING_MODEL)


def scorer_of(space: EmbeddingSpace | None, basis: Basis) -> str:
    """Return what names the scorer whose raw scores a scale maps, "" without any."""
    if uses_cross_encoder(basis):
        return str(settings.RERANKING_MODEL)
    return "" if space is None else space.fingerprint


def read_scale(basis: Basis, numbers: Mapping[str, Any]) -> Scale:
    """Return a scale from its stored numbers."""
    return Scale(
        basis,
        medium=numbers["medium"],
        high=numbers["high"],
        offsets=numbers["offsets"],
        crossing=numbers["crossing"],
    )


def numbers_of(scale: Scale) -> dict[str, Any]:
    """Return what is stored of a scale."""
    numbers = asdict(scale)
    return {
        "medium": round(numbers["medium"], 4),
        "high": round(numbers["high"], 4),
        "offsets": {
            language: round(offset, 4)
            for language, offset in sorted(numbers["offsets"].items())
        },
        "crossing": round(numbers["crossing"], 4),
    }


@functools.cache
def bundled_scales() -> Mapping[Basis, Scale]:
    """Return the scales that ship with the bundled model."""
    content = (resources.files("retrieval") / BUNDLED_FILE).read_text("utf-8")
    shipped = json.loads(content)
    return {
        basis: read_scale(basis, shipped[basis]["scale"])
        for basis in Basis
        if basis in shipped
    }
