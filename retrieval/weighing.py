"""How probably each sentence of some passages answers a question (S1-EXT-01, D11).

Late interaction on the part of a passage's stored token vectors that the sentence
takes; or the CrossEncoder that RERANKING_MODEL names. A sentence of an approved answer
is read together with the question that it answers where that very question is asked,
and alone where another one is: beside it, "No, that is not allowed" would look like an
answer to every question of its kind.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings
from django.utils.translation import gettext as _

from knowledge.frontmatter import other_wordings
from knowledge.inference.gateway import ModelError
from knowledge.inference.languages import language_means
from knowledge.models import EmbeddingSpace
from knowledge.models import Passage as KnownPassage
from knowledge.models.source import SourceKind
from knowledge.sentences import split_sentences
from knowledge.terms import passage_language, question_language, words
from retrieval.answers import Passage
from retrieval.calibration import calibrated
from retrieval.citations import parse_ref
from retrieval.embedding import QueryVector
from retrieval.interaction import Score, match_spans, read_query
from retrieval.quotable import Span
from retrieval.reach import Sql, rows_of
from retrieval.reranking import cross_encode
from retrieval.results import Basis

PACKED = """
SELECT p.id, p.start, p.context, p.text, t.packed
FROM knowledge_passage p
JOIN knowledge_passagetokens t ON t.passage_id = p.id
WHERE t.space_id = %s AND p.id = ANY(%s)
"""


# MaxSim; sentences within it of the best one lie as near to the question.
NEAR = 0.03


class ScoringError(Exception):
    """No model can score sentences now; the message says which and why."""


def weigh(
    text: str, spans: Mapping[int, Sequence[Span]], compared: QueryVector | None
) -> dict[tuple[int, Span], Score]:
    """Return the raw score of each span of each passage, by (passage id, span).

    Spans are of the passages' documents. A sentence that a passage cuts is weighed by
    the part within it. Raises ScoringError where nothing can score (S1-EXT-16).
    """
    if compared is None or not compared.tokens:
        raise ScoringError(
            _(
                "Sentences cannot be chosen now: the model server gives no token vectors "
                "of the question, and no RERANKING_MODEL is set. Ask again, or ask for "
                "passages."
            )
        )
    query = read_query(text, compared.tokens)
    space = compared.space
    means = language_means(space.model_id, space.token_format)
    weighed: dict[tuple[int, Span], Score] = {}
    own = answering(text, spans)
    for pk, start, context, passage, packed in rows_of(
        Sql(PACKED, (space.pk, list(spans)))
    ):
        # The tokens are those of the context and the text together.
        shift = len(context) + 1 - start if context else -start
        least, most = start, start + len(passage)
        within = [
            (max(first, least) + shift, min(last, most) + shift)
            for first, last in spans[pk]
        ]
        language = passage_language(passage, context)
        asked = (0, len(context)) if pk in own else (0, 0)
        scores = match_spans(
            query, language, bytes(packed), within, means, beside=asked
        )
        weighed |= {
            (pk, span): one for span, one in zip(spans[pk], scores, strict=True)
        }
    return weighed


def nearest_sentences(
    text: str, passages: Sequence[Passage], compared: QueryVector
) -> list[str]:
    """Return the sentences of ranked passages that lie nearest to a question.

    By late interaction alone, whatever RERANKING_MODEL names. A sentence that a passage
    cuts is judged by the part within it; named sections have no token vectors. Raises
    ScoringError where the question has none.
    """
    sentences: dict[tuple[int, Span], str] = {}
    spans: dict[int, list[Span]] = {}
    for passage in passages:
        pk, place = passage.hit.passage_id, parse_ref(passage.ref)
        if pk is None or place is None:
            continue
        begins, body = place[1], passage.text
        for first, last in split_sentences(body, 0, len(body)):
            span = (begins + first, begins + last)
            sentences[pk, span] = body[first:last]
            spans.setdefault(pk, []).append(span)
    raw = {key: score.raw for key, score in weigh(text, spans, compared).items()}
    best = max(raw.values(), default=0.0)
    return [sentences[key] for key, score in raw.items() if score >= best - NEAR]


def answering(text: str, passage_ids: Iterable[int]) -> set[int]:
    """Return the passages of approved answers to this very question among some.

    However it is capitalised and punctuated; by its own words or another wording's.
    """
    asked = words(text)
    found = KnownPassage.objects.filter(
        pk__in=set(passage_ids), source__kind=SourceKind.QA
    )
    return {
        pk
        for pk, title, head in found.values_list(
            "pk", "document__title", "document__front_matter"
        )
        if asked in map(words, (title, *other_wordings(head)))
    }


def weigh_texts(text: str, sentences: Sequence[tuple[str, str]]) -> list[Score]:
    """Return the CrossEncoder's raw scores of some (sentence, title of its document).

    Raises ScoringError when it does not answer.
    """
    try:
        return cross_encode(text, sentences)
    except ModelError as error:
        raise ScoringError(
            _(
                "Sentences cannot be chosen now, since %(model)s does not answer: %(why)s"
            )
            % {"model": settings.RERANKING_MODEL, "why": error}
        ) from error


def probabilities(
    space: EmbeddingSpace | None, text: str, scores: Sequence[Score]
) -> list[float]:
    """Return raw scores of sentences on the scale of their marks."""
    scale = calibrated(space, Basis.SENTENCES)
    language = question_language(text)
    return [
        scale.probability(score.raw, language, crosses=score.crosses)
        for score in scores
    ]
