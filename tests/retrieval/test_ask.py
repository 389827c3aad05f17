"""Asking: the order of the steps, what comes back, and what it leaves behind."""

import re
from collections.abc import Iterator
from datetime import date

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from knowledge.models import Department, LedgerEntry, User
from knowledge.models.knowledge_base import AnswerMode
from knowledge.purging import purge_source
from retrieval.answers import Answer, Mode, Step
from retrieval.ask import ask
from retrieval.budget import cost_of
from retrieval.confidence import Status
from retrieval.models import Interaction, LearnedItem, SearchLog, Snapshot
from retrieval.results import Basis, Level, Occasion
from retrieval.search import SearchInputError
from retrieval.snapshots import forget_queries
from retrieval.wordings import read
from tests.cast import Cast
from tests.retrieval.shelf import layer_of, put, reader_of
from tests.servers import LanguageModel
from tests.stored_corpus import Corpus, bring_in

pytestmark = pytest.mark.django_db

API = Occasion("api")
OVERDRAFT = "For how long may an arranged overdraft be used?"
NOWHERE = "Which moons of Saturn have an atmosphere?"


def files(answer: Answer) -> list[str]:
    """Return the files of the passages that are handed back."""
    return [passage.citation.file for passage in answer.passages]


@pytest.fixture
def language_model(settings: Settings) -> Iterator[LanguageModel]:
    """A provider that rewords every question in the same way."""
    with LanguageModel('["opening hours", "when the doors open"]') as server:
        settings.QUERY_REWRITE_PROVIDER = "openai_compatible"
        settings.QUERY_REWRITE_BASE_URL = f"{server.url}/v1"
        settings.QUERY_REWRITE_MODEL = "llama3.2"
        settings.QUERY_REWRITE_TIMEOUT = 60.0
        yield server


# --- The steps -------------------------------------------------------------------


@pytest.mark.req("S1-ASK-01", "S1-HYB-01")
def test_the_steps_come_in_their_order(corpus: Corpus, cast: Cast) -> None:
    steps: list[Step] = []
    ask(cast.granted.reader, OVERDRAFT, progress=steps.append, occasion=API)
    assert steps == [step for step in Step if step is not Step.RECEIPT]
    steps.clear()
    ask(
        cast.granted.reader,
        OVERDRAFT,
        mode="extractive",
        progress=steps.append,
        occasion=API,
    )
    assert steps == list(Step)


@pytest.mark.req("S1-ASK-07", "S1-ASK-09", "S1-ASK-11")
def test_a_question_that_the_documents_answer_is_found(
    corpus: Corpus, cast: Cast
) -> None:
    answer = ask(cast.granted.reader, OVERDRAFT)
    assert answer.status is Status.FOUND
    assert answer.mode is Mode.GROUNDED
    assert [passage.id for passage in answer.passages] == [
        f"S{number}" for number in range(1, len(answer.passages) + 1)
    ]
    first = answer.passages[0]
    assert "ninety days in a row" in first.text
    assert first.citation.file == "account-terms.md"
    assert re.fullmatch(r"d\d+:\d+-\d+", first.ref)
    assert answer.next_step == answer.note == ""


@pytest.mark.req("S1-ASK-09", "S1-ASK-10", "S1-CNF-07")
def test_what_no_document_covers_is_not_found(corpus: Corpus, cast: Cast) -> None:
    answer = ask(cast.granted.reader, NOWHERE)
    assert answer.status is Status.NOT_FOUND
    assert answer.passages
    assert "add a document or folder" in answer.next_step
    assert answer.confidence is not None
    assert answer.confidence.level is Level.LOW


@pytest.mark.req("S1-ASK-02", "S1-CNF-02")
def test_the_reranker_reads_unless_it_is_off(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    answer = ask(cast.granted.reader, OVERDRAFT)
    assert all(hit.rerank_score is not None for hit in answer.hits)
    assert answer.confidence is not None
    assert answer.confidence.basis is Basis.RERANK
    settings.RERANKING_ENABLED = False
    answer = ask(cast.granted.reader, OVERDRAFT)
    assert all(hit.rerank_score is None for hit in answer.hits)
    assert answer.confidence is not None
    assert answer.confidence.basis is Basis.SIMILARITY
    assert answer.status is not Status.NOT_FOUND


@pytest.mark.req("S1-ASK-05", "R4")
def test_top_k_bounds_what_is_found(corpus: Corpus, cast: Cast) -> None:
    assert len(ask(cast.granted.reader, OVERDRAFT).hits) == 10
    answer = ask(cast.granted.reader, OVERDRAFT, top_k=2)
    assert len(answer.hits) == len(answer.passages) == 2


@pytest.mark.req("S1-ASK-03", "S1-ASK-04", "S1-DAT-07")
def test_passages_fill_the_budget_best_first(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    """Each counts with its citation; the first comes whatever it costs."""
    settings.ANSWER_TOKEN_BUDGET = 700
    answer = ask(cast.granted.reader, OVERDRAFT)
    costs = [cost_of(hit) for hit in answer.hits]
    given = len(answer.passages)
    assert 1 < given < len(costs)
    assert sum(costs[:given]) <= 700 < sum(costs[: given + 1])
    assert [one.ref for one in answer.passages] == [
        hit.ref for hit in answer.hits[:given]
    ]
    assert all(cost_of(hit) > len(hit.text) / 4 for hit in answer.hits)
    settings.ANSWER_TOKEN_BUDGET = 100
    (first,) = ask(cast.granted.reader, OVERDRAFT).passages
    assert cost_of(first.hit) > 100
    assert not first.cut


@pytest.mark.req("S1-ASK-04")
def test_fifty_passages_come_back_at_most(settings: Settings) -> None:
    settings.ANSWER_TOKEN_BUDGET = 100_000
    for number in range(55):
        put(layer_of("sea"), f"Berth {number} of the harbour.")
    assert len(ask(reader_of("sea"), "harbour berth", top_k=50).passages) == 50


@pytest.mark.req("S1-HYB-06", "S1-HYB-07")
def test_each_rewritten_query_is_searched_and_merged_by_rank(
    corpus: Corpus, cast: Cast, language_model: LanguageModel
) -> None:
    """What the question's words miss, a rewritten query may find."""
    answer = ask(cast.other_staff.reader, "From what time can one come in?")
    assert answer.queries[1:] == ("opening hours", "when the doors open")
    assert "opening-hours.txt" in files(answer)
    assert max(hit.score for hit in answer.hits) == 1.0


@pytest.mark.req("S1-HYB-06", "S1-IDX-02")
@pytest.mark.django_db(transaction=True)
def test_searches_run_beside_each_other_and_are_kept(
    corpus: Corpus, cast: Cast, language_model: LanguageModel
) -> None:
    """Outside a transaction, with a cache in front of each."""
    reader = cast.other_staff.reader
    first = ask(reader, "From what time can one come in?")
    with CaptureQueriesContext(connection) as queries:
        second = ask(cast.other_staff.reader, "From what time can one come in?")
    assert [hit.ref for hit in second.hits] == [hit.ref for hit in first.hits]
    assert second.status is first.status
    assert not any("embedding <=>" in each["sql"] for each in queries)
    assert not any("search_vector" in each["sql"] for each in queries)


@pytest.mark.req("R14", "S1-ASK-09")
def test_a_question_typed_without_marks_is_read_with_them(
    corpus: Corpus, cast: Cast
) -> None:
    """It is judged as the passages spell it, and that is said."""
    bring_in(
        corpus.handbook.layers.get(name="main"),
        "pozyczki.md",
        "# Pożyczki\n\nWcześniejsza spłata pożyczki jest bezpłatna.\n",
    )
    written = "wczesniejsza splata pozyczki"
    answer = ask(cast.granted.reader, written)
    assert answer.question == written
    assert answer.queries == (written, "wcześniejsza spłata pożyczki")
    assert answer.status is Status.FOUND
    assert files(answer)[0] == "pozyczki.md"
    assert "read as “wcześniejsza spłata pożyczki”" in " ".join(answer.notices)
    # Nothing is searched twice where the same was learned for it.
    LearnedItem.objects.create(
        kind="rewrite", key=read(written).digest, term=written, origin="reworded",
        value=["Wcześniejsza spłata pożyczki", "spłata przed terminem"],
        knowledge_base_ids=[corpus.handbook.pk], digest="0" * 64,
    )  # fmt: skip
    answer = ask(cast.granted.reader, written)
    assert answer.queries == (
        written, "wcześniejsza spłata pożyczki", "spłata przed terminem",
    )  # fmt: skip


@pytest.mark.req("S1-RTE-01", "S1-RTE-02", "S1-RTE-03")
def test_a_routed_ask_goes_on_to_all_layers(corpus: Corpus, cast: Cast) -> None:
    prices = corpus.handbook.layers.get(name="prices")
    prices.routing_patterns = ["overdraft"]
    prices.save()
    answer = ask(cast.granted.reader, OVERDRAFT)
    assert answer.routing_fallback is not None
    assert answer.routing_fallback.reason in {"insufficient_results", "low_confidence"}
    assert answer.passages[0].citation.file == "account-terms.md"


@pytest.mark.req("S1-ASK-01", "S1-QRW-01")
def test_a_question_is_reworded_once_however_often_it_is_searched(
    corpus: Corpus, cast: Cast, language_model: LanguageModel
) -> None:
    prices = corpus.handbook.layers.get(name="prices")
    prices.routing_patterns = ["overdraft"]
    prices.save()
    answer = ask(cast.granted.reader, OVERDRAFT)
    assert answer.routing_fallback is not None
    assert answer.queries == (OVERDRAFT, "opening hours", "when the doors open")
    assert len(language_model.prompts) == 1


@pytest.mark.req("S1-RTE-04")
def test_named_layers_are_never_broadened(corpus: Corpus, cast: Cast) -> None:
    answer = ask(cast.granted.reader, OVERDRAFT, layers=["prices"])
    assert {passage.citation.layer for passage in answer.passages} == {"prices"}
    assert answer.routing_fallback is None


@pytest.mark.req("S1-API-06")
def test_another_mode_is_refused() -> None:
    with pytest.raises(SearchInputError) as refused:
        ask(reader_of(), "why?", mode="poetic")
    assert refused.value.field == "mode"


# --- Dates and labels ------------------------------------------------------------


@pytest.mark.req("S1-DAT-01", "S1-DAT-04", "S1-DAT-06")
def test_dates_and_labels_stand_on_the_citation_and_rank_nothing(
    corpus: Corpus, cast: Cast
) -> None:
    before = ask(cast.granted.reader, OVERDRAFT)
    first = before.passages[0].citation
    assert (first.date, first.date_source) == (date(2026, 2, 3), "front_matter")
    assert (first.replaced_by, first.archived) == (None, False)
    layer = corpus.handbook.layers.get(name="main")
    bring_in(
        layer,
        "terms-2027.md",
        "---\nsupersedes: account-terms.md\n---\n# New\n\nBicycles stay outside.\n",
    )
    layer.archived_patterns = ["account-*"]
    layer.save()
    after = ask(cast.granted.reader, OVERDRAFT)
    first = after.passages[0].citation
    assert first.file == "account-terms.md"
    assert (first.replaced_by, first.archived) == ("terms-2027.md", True)


@pytest.mark.req("S1-DAT-05")
def test_a_changed_pattern_needs_no_new_ingest(corpus: Corpus, cast: Cast) -> None:
    layer = corpus.handbook.layers.get(name="main")
    for patterns, archived in ((["account-*"], True), ([], False)):
        layer.archived_patterns = patterns
        layer.save()
        answer = ask(cast.granted.reader, OVERDRAFT)
        assert answer.passages[0].citation.archived is archived


@pytest.mark.req("S1-DAT-02", "S1-DAT-07")
def test_labels_take_their_room_and_a_document_may_have_no_date() -> None:
    layer = layer_of("sea")
    put(layer, "The harbour opens at six.", path="old/harbour.txt")
    (plain,) = ask(reader_of("sea"), "When does the harbour open?").passages
    assert (plain.citation.date, plain.citation.date_source) == (None, None)
    layer.archived_patterns = ["old/*"]
    layer.save()
    (marked,) = ask(reader_of("sea"), "When does the harbour open?").passages
    assert marked.citation.archived
    assert cost_of(marked.hit) > cost_of(plain.hit)


# --- What it leaves --------------------------------------------------------------


@pytest.mark.req("S1-CNF-05", "R16")
def test_an_answer_leaves_an_interaction(corpus: Corpus, cast: Cast) -> None:
    """Scrubbed, with the level that was told, and without a word of a passage."""
    question = f"{OVERDRAFT} My account is DE89 3704 0044 0532 0130 00."
    answer = ask(cast.granted.reader, question, occasion=API)
    row = Interaction.objects.get()
    assert str(row.public_id) == answer.interaction_id
    assert row.question == f"{OVERDRAFT} My account is [IBAN]."
    assert row.queries == [row.question]
    assert (row.owner, row.client, row.turn) == (cast.granted.user, None, None)
    assert (row.door, row.status, row.mode) == ("api", answer.status, "grounded")
    assert answer.confidence is not None
    assert (row.level, row.basis) == (answer.confidence.level, "rerank")
    assert row.knowledge_base_ids == [corpus.handbook.pk]
    assert [hit["ref"] for hit in row.hits] == [one.ref for one in answer.passages]
    assert "ninety" not in str(row.hits)
    log = SearchLog.objects.get()
    assert (log.status, log.door) == (answer.status, "api")
    assert len(log.hits) == len(answer.passages)
    assert len(log.withheld) == len(answer.hits) - len(answer.passages)


@pytest.mark.req("D2", "S3-CIT-02")
def test_what_is_cited_is_saved_as_it_was_shown(corpus: Corpus, cast: Cast) -> None:
    answer = ask(cast.granted.reader, OVERDRAFT, mode="extractive", occasion=API)
    rows = Snapshot.objects.order_by("number")
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    saved = {row.ref: row for row in rows}
    for number, passage in enumerate(answer.passages, 1):
        assert saved[passage.ref].number == number
        assert saved[passage.ref].text == passage.text
    for sentence in answer.sentences:
        row = saved[sentence.ref]
        assert row.text == sentence.text
        assert sentence.citation.url == f"/asked/{answer.interaction_id}/{row.number}/"


@pytest.mark.req("S3-BIL-01", "R24")
def test_an_ask_is_charged_to_the_askers_department(corpus: Corpus, cast: Cast) -> None:
    department = Department.objects.create(name="Front desk")
    User.objects.filter(pk=cast.granted.user.pk).update(department=department)
    ask(cast.granted.reader, OVERDRAFT, occasion=API)
    rows = {row.kind: row for row in LedgerEntry.objects.all()}
    assert set(rows) == {"ask", "embedding", "rerank"}
    assert rows["ask"].units == 1
    assert rows["embedding"].units > 5
    assert {row.department for row in rows.values()} == {department}


@pytest.mark.req("R19")
@pytest.mark.parametrize("occasion", [None, Occasion("set", leaves_trace=False)])
def test_sets_and_the_lab_leave_nothing(occasion: Occasion | None) -> None:
    put(layer_of("sea"), "The harbour opens at six.")
    answer = ask(reader_of("sea"), "When does the harbour open?", occasion=occasion)
    assert answer.passages
    assert (answer.interaction_id, answer.receipt_id) == ("", "")
    for model in (Interaction, Snapshot, SearchLog, LedgerEntry):
        assert not model.objects.exists()  # type: ignore[attr-defined]


@pytest.mark.req("D33", "S3-CIT-05")
def test_an_answer_whose_citations_cannot_be_saved_comes_without(
    corpus: Corpus, cast: Cast
) -> None:
    """A table that refuses every row costs the numbers, not the answer."""
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE retrieval_snapshot ADD CONSTRAINT none CHECK (number < 0) "
            "NOT VALID"
        )
    answer = ask(cast.granted.reader, OVERDRAFT, mode="extractive", occasion=API)
    assert answer.citations == "unsaved"
    assert answer.passages[0].citation.url.startswith("/read/")
    assert answer.receipt_id
    assert Interaction.objects.exists()


@pytest.mark.req("D2", "R16")
def test_purged_words_take_the_question_along(corpus: Corpus, cast: Cast) -> None:
    ask(cast.granted.reader, OVERDRAFT, occasion=API)
    source = corpus.handbook.sources.get(path="account-terms.md")
    purge_source(source, actor=None)
    row = Interaction.objects.get()
    assert (row.question, row.queries) == ("", [])
    gone = row.snapshots.get(number=1)
    assert (gone.text, gone.title) == ("", "")
    assert len(gone.text_sha256) == 64


@pytest.mark.req("S2-LOG-02")
def test_a_question_is_forgotten_with_the_log(settings: Settings) -> None:
    put(layer_of("sea"), "The harbour opens at six.")
    ask(reader_of("sea"), "When does the harbour open?", occasion=API)
    assert forget_queries() == 0
    settings.STRATA_KEEP_LOG_DAYS = -1
    assert forget_queries() == 1
    assert Interaction.objects.get().question == ""


@pytest.mark.req("S1-ASK-11", "S1-EXT-04")
def test_the_layers_answer_mode_decides(corpus: Corpus, cast: Cast) -> None:
    corpus.handbook.layers.update(answer_mode=AnswerMode.EXTRACTIVE)
    assert ask(cast.granted.reader, OVERDRAFT).mode is Mode.EXTRACTIVE
