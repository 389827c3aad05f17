"""The reranker over stored token vectors, and the scales that results are judged on."""

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from pytest_django.fixtures import Settings

from knowledge.embedding import active_space
from knowledge.models import AuditEntry, EmbeddingSpace, PassageTokens
from retrieval.calibration import bundled_scales, calibrated, newest_fit
from retrieval.embedding import embed_now
from retrieval.engine import Found, find
from retrieval.fusion import Fused
from retrieval.journal import Journal
from retrieval.judging import judge_hits
from retrieval.models import Calibration, Question, QuestionSet
from retrieval.reach import Reach
from retrieval.reranking import final_order, raw_scores, rerank
from retrieval.results import Basis, Branch, BranchRank, Level
from retrieval.search import search
from retrieval.tuning import Tuning
from tests.cast import Cast
from tests.factories import CalibrationFactory
from tests.retrieval.shelf import layer_of, open_space, put, reader_of
from tests.servers import Handler, LocalServer, fail
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db


def space_in_use() -> EmbeddingSpace:
    """Return the space of the corpus."""
    space = active_space()
    assert space is not None
    return space


def reranked(cast: Cast, question: str, tuning: Tuning | None = None) -> Found:
    """Return what a question finds with the reranker."""
    vector = embed_now(question, Journal())
    return find(
        Reach.of(cast.granted.reader),
        question,
        tuning=tuning or Tuning(),
        count=5,
        journal=Journal(),
        vector=lambda: vector,
        reranks=True,
    )


# --- On the real model ---------------------------------------------------------


@pytest.mark.req("S1-ASK-02", "S1-HYB-07", "D11")
def test_the_best_are_reranked_and_carry_their_probability(
    corpus: Corpus, cast: Cast
) -> None:
    found = reranked(cast, "For how many days may an arranged overdraft be used?")
    scores = [hit.rerank_score for hit in found.hits]
    assert None not in scores
    # Further down, the question's words may put one passage before another.
    assert scores[0] == max(score for score in scores if score is not None)
    assert all(0 < score < 1 for score in scores if score is not None)
    assert "overdraft" in found.hits[0].text.lower()


@pytest.mark.req("S1-CNF-02", "R10", "S1-ASK-02")
def test_without_the_reranker_similarity_is_the_basis(
    corpus: Corpus, cast: Cast
) -> None:
    question = "For how many days may an arranged overdraft be used?"
    off = reranked(cast, question, replace(Tuning(), reranking=False))
    assert [hit.rerank_score for hit in off.hits] == [None] * len(off.hits)
    space = space_in_use()
    for found, basis in ((off, Basis.SIMILARITY), (reranked(cast, question), "rerank")):
        confidence = judge_hits(space, question, found.hits)
        assert confidence is not None
        assert confidence.basis == basis
        assert not confidence.provisional


@pytest.mark.req("S1-CNF-01", "S1-CNF-02", "S1-HYB-04")
def test_every_search_says_how_sure_it_is(corpus: Corpus, cast: Cast) -> None:
    result = search(
        cast.granted.reader, "For how many days may an arranged overdraft be used?"
    )
    assert result.confidence is not None
    assert result.confidence.basis is Basis.SIMILARITY
    assert result.confidence.level is not Level.LOW
    # The cosine of a hit stays raw: for this model never far below 0.7.
    assert all(hit.similarity > 0.6 for hit in result.hits)
    assert result.confidence.score not in {hit.similarity for hit in result.hits}


@pytest.mark.req("S1-CNF-07", "D12")
def test_what_the_documents_do_not_cover_is_low(corpus: Corpus, cast: Cast) -> None:
    question = "Which moons of Jupiter were photographed by the probe Galileo?"
    found = reranked(cast, question)
    confidence = judge_hits(space_in_use(), question, found.hits)
    assert confidence is not None
    assert confidence.level is Level.LOW
    assert confidence.warning


@pytest.mark.req("D11")
def test_only_the_given_passages_are_read(corpus: Corpus, cast: Cast) -> None:
    space = space_in_use()
    vector = embed_now("lost card", Journal())
    assert vector is not None
    ids = list(PassageTokens.objects.values_list("passage_id", flat=True)[:2])
    scores = rerank(space, vector.tokens, "lost card", ids)
    assert set(scores) == set(ids)
    assert rerank(space, vector.tokens, "lost card", []) == {}
    assert rerank(space, b"", "lost card", ids) == {}


# --- Order ---------------------------------------------------------------------


@pytest.mark.req("D11", "S1-HYB-07")
def test_the_final_order_is_the_rerankers_and_then_the_fused() -> None:
    fused = [Fused(pk, 1 / pk, {}) for pk in (1, 2, 3, 4, 5)]
    order = final_order(fused, {1: 0.2, 2: 0.9, 3: 0.5}, word_weight=2.0)
    assert order == [2, 3, 1, 4, 5]


@pytest.mark.req("D11")
def test_between_like_passages_the_querys_words_decide() -> None:
    held = {Branch.KEYWORDS: BranchRank(1, 0.4, relaxed=True, share=0.8)}
    fused = [Fused(1, 0.1, {}), Fused(2, 0.05, held)]
    assert final_order(fused, {1: 0.6, 2: 0.5}, word_weight=2.0) == [2, 1]
    assert final_order(fused, {1: 0.6, 2: 0.5}, word_weight=0.0) == [1, 2]
    assert final_order(fused, {1: 1.0, 2: 0.0}, word_weight=2.0) == [1, 2]


# --- Scales --------------------------------------------------------------------


@pytest.mark.req("D12", "S1-CNF-06")
def test_the_newest_fit_of_a_model_holds_over_the_bundled_one(corpus: Corpus) -> None:
    space = space_in_use()
    assert calibrated(space, Basis.RERANK) == bundled_scales()[Basis.RERANK]
    before = newest_fit()
    CalibrationFactory(scorer="another model's")
    assert calibrated(space, Basis.RERANK) == bundled_scales()[Basis.RERANK]
    CalibrationFactory(scorer=space.fingerprint)
    newest = CalibrationFactory(scorer=space.fingerprint, scale__medium=0.3)
    newest.scale = {**newest.scale, "medium": 0.3}
    newest.save()
    scale = calibrated(space, Basis.RERANK)
    assert scale.medium == 0.3
    assert not scale.provisional
    assert newest_fit() > before


@pytest.mark.req("D12", "S1-CNF-06")
def test_another_model_is_provisional_until_it_is_calibrated() -> None:
    space = open_space()
    put(layer_of("handbook"), "The lost card is blocked.", (1.0, 0.0, 0.0, 0.0))
    result = search(
        reader_of("handbook"),
        "lost card",
        query_vector=(1.0, 0.0, 0.0, 0.0),
        query_model=space.model_id,
    )
    assert result.confidence is not None
    assert result.confidence.provisional
    assert 0.6 < result.confidence.score < 1


def test_what_was_compared_with_nothing_is_not_judged() -> None:
    put(layer_of("handbook"), "The lost card is blocked.")
    assert search(reader_of("handbook"), "lost card").confidence is None


# --- A CrossEncoder ------------------------------------------------------------


def length_as_score(handler: Handler) -> None:
    """Answer in the common form; the longest passage is the best."""
    documents = handler.read_json()["documents"]
    results = [
        {"index": index, "relevance_score": len(text) / 1000}
        for index, text in enumerate(documents)
    ]
    results.reverse()
    handler.send_content(200, json.dumps({"results": results}).encode())


@pytest.mark.req("S1-ASK-02", "D11")
def test_a_cross_encoder_takes_the_place_of_token_vectors(settings: Settings) -> None:
    space = open_space()
    layer = layer_of("handbook")
    short, long = put(layer, "Rent."), put(layer, "The rent is due on the first day.")
    settings.RERANKING_MODEL = "length"
    with LocalServer(length_as_score) as server:
        settings.STRATA_RERANKING_URL = server.url
        scores = rerank(space, b"", "rent", [short.pk, long.pk])
        raw = raw_scores(space, b"", "rent", [short.pk, long.pk])
    assert raw[short.pk].raw == pytest.approx(len("Rent.") / 1000)
    assert scores[long.pk] > scores[short.pk]
    assert calibrated(space, Basis.RERANK).provisional


@pytest.mark.req("R10")
def test_a_cross_encoder_that_is_down_leaves_the_fused_order(
    settings: Settings,
) -> None:
    space = open_space()
    passage = put(layer_of("handbook"), "The rent is due.")
    settings.RERANKING_MODEL = "down"
    with LocalServer(fail) as server:
        settings.STRATA_RERANKING_URL = server.url
        assert rerank(space, b"", "rent", [passage.pk]) == {}


# --- manage.py calibrate -------------------------------------------------------


def question_files(folder: Path, corpus: Corpus) -> tuple[Path, Path]:
    """Write questions that the handbook answers, and others."""
    texts = corpus.handbook.passages.values_list("text", flat=True)
    words = [word for text in texts for word in text.split()]
    asked = [" ".join(words[at : at + 8]) for at in range(60)]
    other = [f"How many moons has planet number {at}?" for at in range(59)]
    questions, unanswerable = folder / "questions.jsonl", folder / "others.jsonl"
    write(questions, [{"question": text} for text in asked])
    rows: list[dict[str, object]] = [
        {"question": text, "answerable": False} for text in other
    ]
    rows.append({"question": "?", "answerable": False, "type": "adversarial"})
    write(unanswerable, rows)
    return questions, unanswerable


def write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write JSON lines."""
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")


@pytest.mark.req("D12", "S1-CNF-06")
def test_calibrate_fits_stores_and_tells_who_did(
    corpus: Corpus, cast: Cast, tmp_path: Path
) -> None:
    questions, unanswerable = question_files(tmp_path, corpus)
    assert cast.superuser.user is not None
    out = StringIO()
    call_command(
        "calibrate",
        f"--knowledge-base={corpus.handbook.slug}",
        f"--questions={questions}",
        f"--unanswerable={unanswerable}",
        f"--by={cast.superuser.user.username}",
        f"--write={tmp_path / 'numbers.json'}",
        stdout=out,
    )
    rows = {row.basis: row for row in Calibration.objects.all()}
    assert set(rows) == {"rerank", "similarity"}
    row = rows["rerank"]
    assert (row.answerable, row.unanswerable) == (60, 59)
    assert row.fitted_by == cast.superuser.user
    assert calibrated(space_in_use(), Basis.RERANK).medium == row.scale["medium"]
    entry = AuditEntry.objects.filter(verb="fitted calibration").latest("pk")
    assert entry.actor == cast.superuser.user
    assert "from 60 answerable and 59 unanswerable questions" in out.getvalue()
    numbers = json.loads((tmp_path / "numbers.json").read_text("utf-8"))
    assert numbers["rerank"]["scale"] == row.scale


@pytest.mark.req("D12")
def test_calibrate_takes_question_sets(corpus: Corpus, tmp_path: Path) -> None:
    few = QuestionSet.objects.create(name="few")
    few.knowledge_bases.add(corpus.handbook)
    Question.objects.create(question_set=few, text="What is a lost card?")
    with pytest.raises(CommandError, match="there are 1 and 0"):
        call_command("calibrate", "--question-set=few", stdout=StringIO())
    assert not Calibration.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Name a question set"),
        (["--question-set=none"], "no question set 'none'"),
        (["--knowledge-base=a"], "once for each --knowledge-base"),
        (
            ["--knowledge-base=a", "--questions=b", "--unanswerable=c"],
            "no knowledge base a",
        ),
    ],
)
def test_calibrate_says_what_is_wrong(arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("calibrate", *arguments, stdout=StringIO())


# --- The page ------------------------------------------------------------------


@pytest.mark.req("D12")
def test_staff_see_which_fit_holds(cast: Cast) -> None:
    old, new = CalibrationFactory(sources="spring"), CalibrationFactory()
    new.fitted_by = cast.superuser.user
    new.save()
    client = cast.superuser.client()
    page = client.get(reverse("admin:retrieval_calibration_changelist"))
    assert page.status_code == 200
    assert page.content.decode().count("icon-yes") == 1
    assert str(cast.superuser.user) in page.content.decode()
    page = client.get(reverse("admin:retrieval_calibration_change", args=[old.pk]))
    assert "spring" in page.content.decode()
    assert "en 0.0100" in page.content.decode()
