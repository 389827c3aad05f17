"""How surely one search's hits cover its query: scores, scale and marks together."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from knowledge.models import EmbeddingSpace
from knowledge.terms import passage_language, question_language
from retrieval.calibration import calibrated
from retrieval.confidence import judge
from retrieval.interaction import differ
from retrieval.results import Basis, Confidence, Hit, Match
from retrieval.scales import Scale


def judge_hits(
    space: EmbeddingSpace | None, text: str, hits: Sequence[Hit]
) -> Confidence | None:
    """Return the confidence of a result; None where there was nothing to compare.

    The basis is the reranker's probability where it ran, else the cosine (S1-CNF-02).
    A section that the query names counts as certain.
    """
    if space is None:
        return None
    basis = basis_of(hits)
    scale = calibrated(space, basis)
    scores = calibrated_scores(scale, text, hits)
    return judge(
        scores,
        basis,
        scale.marks,
        provisional=scale.provisional,
        warning=_(
            "The documents in reach probably do not cover this. Try other terms or "
            "another layer."
        ),
    )


def basis_of(hits: Sequence[Hit]) -> Basis:
    """Return what the hits can be judged on."""
    ran = any(hit.rerank_score is not None for hit in hits)
    return Basis.RERANK if ran else Basis.SIMILARITY


def calibrated_scores(scale: Scale, text: str, hits: Sequence[Hit]) -> list[float]:
    """Return each hit's score on the scale."""
    language = question_language(text)
    scores = []
    for hit in hits:
        if hit.match is Match.EXACT:
            scores.append(1.0)
        elif scale.basis is Basis.RERANK:
            # A probability already; what the reranker did not read counts as nothing.
            scores.append(hit.rerank_score or 0.0)
        else:
            spoken = passage_language(hit.text, hit.citation.title)
            crosses = differ(language, spoken)
            scores.append(scale.probability(hit.similarity, language, crosses=crosses))
    return scores
