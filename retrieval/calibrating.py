"""Fitting a model's scales from questions whose answers are known (D12)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db import transaction

from knowledge.models import EmbeddingSpace, User
from knowledge.models.audit import record
from knowledge.terms import passage_language, question_language
from retrieval import reranking
from retrieval.answers import numbered
from retrieval.budget import pack
from retrieval.calibration import numbers_of, scorer_of
from retrieval.embedding import QueryVector, embed_now
from retrieval.engine import Found, choose, find
from retrieval.extractive import documents_of, raw_scores, sentences_of
from retrieval.interaction import Score, differ
from retrieval.journal import Journal
from retrieval.models import Calibration
from retrieval.reach import Reach, reader_of
from retrieval.results import Basis
from retrieval.scales import FitError, Observation, Scale, fit, held_out
from retrieval.tuning import Tuning

# Confidence is judged on what a search returns; ten is the most common length.
RESULTS = 10


class CalibrationError(Exception):
    """A calibration that cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question, and whether the documents answer it."""

    text: str
    is_answerable: bool


@dataclass(slots=True)
class Measured:
    """The best raw scores of the questions asked so far, by basis."""

    answerable: dict[Basis, list[Observation]] = field(
        default_factory=lambda: {basis: [] for basis in Basis}
    )
    unanswerable: dict[Basis, list[Observation]] = field(
        default_factory=lambda: {basis: [] for basis in Basis}
    )

    def add(self, basis: Basis, ask: Ask, observed: Observation) -> None:
        """Keep what one question gave."""
        kept = self.answerable if ask.is_answerable else self.unanswerable
        kept[basis].append(observed)


def ask_all(
    reach: Reach, asks: Iterable[Ask], tuning: Tuning, measured: Measured
) -> EmbeddingSpace | None:
    """Ask the questions within a reach; return the space they were compared in.

    Raises CalibrationError when the model server gives no vector.
    """
    space = None
    for ask in asks:
        vector = embed_now(ask.text, Journal())
        if vector is None:
            raise CalibrationError(
                "There is no vector for the questions. Index the documents and start "
                "the model server first."
            )
        space = vector.space
        for basis, observed in observe(reach, ask.text, tuning, vector):
            measured.add(basis, ask, observed)
    return space


def observe(
    reach: Reach, text: str, tuning: Tuning, vector: QueryVector
) -> Iterator[tuple[Basis, Observation]]:
    """Yield the best raw score of each basis for one question."""
    language = question_language(text)
    found = find(
        reach,
        text,
        tuning=replace(tuning, reranking=False),
        count=RESULTS,
        journal=Journal(),
        vector=lambda: vector,
    )
    similar = [
        Score(
            hit.similarity,
            differ(language, passage_language(hit.text, hit.citation.title)),
        )
        for hit in found.hits
    ]
    yield Basis.SIMILARITY, best_of(similar, language)
    ids = [row.passage_id for row in found.fused[: tuning.rerank_depth]]
    reranked = reranking.raw_scores(vector.space, vector.tokens, text, ids)
    if reranked or not ids:
        yield Basis.RERANK, best_of(reranked.values(), language)
        sentences = sentence_scores(reach, text, tuning, found)
        yield Basis.SENTENCES, best_of(sentences, language)


def sentence_scores(
    reach: Reach, text: str, tuning: Tuning, found: Found
) -> list[Score]:
    """Return the raw scores of the sentences that an extractive ask would weigh."""
    chosen = choose(
        reach,
        text,
        found,
        tuning=replace(tuning, reranking=True),
        count=RESULTS,
        journal=Journal(),
        reranks=True,
    )
    packed = pack(chosen.hits, budget=settings.ANSWER_TOKEN_BUDGET)
    passages = numbered(packed.kept)
    documents = documents_of(reader_of(reach.knowledge_base_ids, None), passages)
    touched = list(sentences_of(passages, documents))
    return [score for _sentence, score in raw_scores(text, touched, found.vector)]


def best_of(scores: Iterable[Score], language: str) -> Observation:
    """Return the best score; nothing found counts as 0."""
    best = max(scores, key=lambda score: score.raw, default=Score(0.0))
    return Observation(best.raw, language, best.crosses)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A scale, and how it holds on questions that it was not fitted on."""

    scale: Scale
    answerable: int
    unanswerable: int
    measured: dict[str, Any]


def fit_all(measured: Measured) -> list[Fitted]:
    """Fit every basis that the model has; sentences where there are enough of them.

    The best sentence may stand in a passage in another language more often than the
    best passage is one. Raises CalibrationError where there are too few questions.
    """
    fitted = [fit_basis(Basis.SIMILARITY, measured), fit_basis(Basis.RERANK, measured)]
    with suppress(CalibrationError):
        fitted.append(fit_basis(Basis.SENTENCES, measured))
    return [each for each in fitted if each is not None]


def fit_basis(basis: Basis, measured: Measured) -> Fitted | None:
    """Fit one basis; None where the model has none.

    Raises CalibrationError where there are too few questions.
    """
    answerable = measured.answerable[basis]
    unanswerable = measured.unanswerable[basis]
    if not answerable and not unanswerable:
        return None
    try:
        scale = fit(basis, answerable, unanswerable)
    except FitError as error:
        raise CalibrationError(str(error)) from error
    return Fitted(
        scale, len(answerable), len(unanswerable), {"held_out": halves(basis, measured)}
    )


def halves(basis: Basis, measured: Measured) -> dict[str, float] | None:
    """Return what a fit on one half refuses of the other; None with too few."""
    try:
        shares = held_out(
            basis, measured.answerable[basis], measured.unanswerable[basis]
        )
    except FitError:
        return None
    return {name: round(share, 4) for name, share in asdict(shares).items()}


def numbers(space: EmbeddingSpace, fitted: Sequence[Fitted]) -> dict[str, object]:
    """Return what ships with the bundled model of fitted scales."""
    shipped: dict[str, object] = {"model": space.model_id}
    for each in fitted:
        shipped[each.scale.basis] = {
            "scale": numbers_of(each.scale),
            "answerable": each.answerable,
            "unanswerable": each.unanswerable,
            **each.measured,
        }
    return shipped


def store(
    space: EmbeddingSpace,
    fitted: Sequence[Fitted],
    *,
    sources: str,
    actor: User | None,
) -> list[Calibration]:
    """Keep fitted scales; they hold from the next search on."""
    rows = []
    with transaction.atomic():
        for each in fitted:
            scorer = scorer_of(space, each.scale.basis)
            row = Calibration.objects.create(
                scorer=scorer,
                model_id=space.model_id if scorer == space.fingerprint else scorer,
                basis=each.scale.basis,
                scale=numbers_of(each.scale),
                measured=each.measured,
                answerable=each.answerable,
                unanswerable=each.unanswerable,
                sources=sources[:1000],
                fitted_by=actor,
            )
            record(actor, "fitted calibration", row, scale=row.scale, sources=sources)
            rows.append(row)
    return rows
