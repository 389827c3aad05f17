"""The whole search: what it takes, whom it shows what, and what it says when it cannot."""

import math
import socket
import unicodedata
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from knowledge.models import EmbeddingSpace, Source
from knowledge.permissions import Access, Reader, deny, grant
from retrieval.results import Branch, Label, SearchResult
from retrieval.search import SearchInputError, search
from tests.cast import Cast
from tests.factories import UserFactory
from tests.retrieval.shelf import (
    MODEL,
    layer_of,
    open_space,
    put,
    reader_of,
    reads_passages,
)
from tests.stored_corpus import CANARY, Corpus, bring_in

pytestmark = pytest.mark.django_db

EAST = (1.0, 0.0, 0.0, 0.0)


@pytest.fixture
def no_model(settings: Settings) -> Iterator[None]:
    """The model server's address is one where nothing answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings.STRATA_MODEL_URL = f"http://127.0.0.1:{taken.getsockname()[1]}"
        yield


def with_vector(reader: Reader, query: str, **arguments: object) -> SearchResult:
    """Search with a vector of the test's own space."""
    return search(
        reader,
        query,
        query_vector=EAST,
        query_model=MODEL,
        **arguments,  # type: ignore[arg-type]
    )


def shown(result: SearchResult) -> list[int]:
    """Return the passages of a result."""
    return [hit.passage_id for hit in result.hits]


# --- On the real model ---------------------------------------------------------


@pytest.mark.req("S3-HYB-02", "S1-HYB-02", "S1-HYB-04")
def test_finds_the_same_thing_said_in_another_language(
    corpus: Corpus, cast: Cast
) -> None:
    """A Vietnamese question finds the English rule, with its cosine and its ranks."""
    bring_in(
        corpus.handbook.layers.get(name="main"),
        "parking.md",
        "# Parking\n\nMembers may leave their bicycle in the courtyard overnight.\n",
    )
    result = search(cast.granted.reader, "tôi có thể để xe đạp qua đêm ở sân không?")
    first = result.hits[0]
    assert first.citation.file == "parking.md"
    assert 0.7 < first.similarity <= 1
    assert first.similarity == pytest.approx(first.branches[Branch.MEANING].score)
    assert first.branches[Branch.MEANING].rank == 1
    assert result.labels == () or result.labels == (Label.RELAXED,)
    assert result.model


@pytest.mark.req("S1-HYB-08", "D8")
def test_hits_are_the_documents_own_text(corpus: Corpus, cast: Cast) -> None:
    """What is quoted is the revision's text between the ref's offsets, and no context."""
    result = search(cast.granted.reader, "complaint", top_k=20)
    assert result.hits
    for hit in result.hits:
        passage = corpus.handbook.passages.get(pk=hit.passage_id)
        assert hit.text == passage.document.text[passage.start : passage.end]
        assert hit.ref == passage.document.ref(passage.start, passage.end)


@pytest.mark.req("REL-X2")
def test_both_unicode_forms_of_a_query_give_the_same_result(
    corpus: Corpus, cast: Cast
) -> None:
    """Same hits, same ranks, same scores."""
    query = "quy trình mở thẻ thành viên"
    composed, decomposed = (
        search(cast.granted.reader, unicodedata.normalize(form, query))
        for form in ("NFC", "NFD")
    )
    assert composed.hits == decomposed.hits
    assert composed.hits


@pytest.mark.req("REL-A3", "S3-VIS-02", "S3-VIS-03")
def test_nobody_meets_a_word_of_what_they_may_not_search(
    corpus: Corpus, cast: Cast
) -> None:
    """Of the whole cast only the insider finds the vault, also when it is named."""
    for actor in cast:
        for layers in (None, ["quillback-vault/main"], ["main"]):
            result = search(actor.reader, CANARY, layers=layers, top_k=50)
            met = CANARY in repr(result.hits).casefold()
            assert met == (actor.name == "insider"), actor.name


# --- Who sees what -------------------------------------------------------------


@pytest.mark.req("REL-A15", "S3-VIS-01")
def test_empty_reach_asks_nothing_of_passages() -> None:
    """Nobody, nothing granted, and only ignored layers: no hit and no such query."""
    open_space()
    put(layer_of("rules"), "Fee QT-07", EAST)
    put(layer_of("other"), "Fee QT-07", EAST)
    granted = reader_of("rules")
    cases: list[tuple[Reader, list[str] | None]] = [
        (Reader(user_id=None), None),
        (reader_of(), None),
        (granted, ["other/main", "nowhere"]),
    ]
    for reader, layers in cases:
        with CaptureQueriesContext(connection) as queries:
            result = with_vector(reader, "fee QT-07", layers=layers)
        assert result.hits == ()
        assert isinstance(result.stage_ms["total"], float)
        touched = [query["sql"] for query in queries if reads_passages(query["sql"])]
        assert touched == []


@pytest.mark.req("R5", "R6", "REL-A4")
def test_layers_narrow_and_tell_nothing_of_others() -> None:
    """Unknown and forbidden names count alike; what is left is the allowed ones'."""
    open_space()
    mine = put(layer_of("rules"), "Fee of the rules", EAST)
    old = put(layer_of("rules", "archive"), "Fee of old", EAST)
    put(layer_of("secret"), "Fee in secret", EAST)
    put(layer_of("secret", "hidden"), "Fee hidden", EAST)
    reader = reader_of("rules")

    def found(*layers: str) -> tuple[set[int], int]:
        result = with_vector(reader, "fee", layers=layers)
        return set(shown(result)), result.layers_ignored

    assert found() == ({mine.pk, old.pk}, 0)
    assert found("main") == ({mine.pk}, 0)
    assert found("rules/archive") == ({old.pk}, 0)
    assert found("main", "secret/main", "hidden", "absent") == ({mine.pk}, 3)
    assert found("hidden") == found("absent") == (set(), 1)
    alone = with_vector(reader, "fee", layers=["main"])
    mixed = with_vector(reader, "fee", layers=["main", "secret/main"])
    assert mixed.hits == alone.hits


@pytest.mark.req("REL-A11", "S3-VIS-02")
def test_grant_and_deny_hold_from_the_next_search() -> None:
    """A deny beats the grant at once."""
    open_space()
    layer = layer_of("rules")
    passage = put(layer, "Fee", EAST)
    person = UserFactory()

    def found() -> list[int]:
        return shown(with_vector(Reader(user_id=person.pk), "fee"))

    assert found() == []
    grant(layer.knowledge_base, [Access.SEARCH], to=person, actor=None)
    assert found() == [passage.pk]
    deny(layer.knowledge_base, to=person, actor=None)
    assert found() == []


@pytest.mark.req("S2-ING-10")
def test_switched_off_source_is_gone_from_the_next_search() -> None:
    """Also from the citations' labels."""
    open_space()
    passage = put(layer_of("rules"), "Fee", EAST)
    reader = reader_of("rules")
    assert shown(with_vector(reader, "fee")) == [passage.pk]
    Source.objects.update(enabled=False)
    assert shown(with_vector(reader, "fee")) == []


# --- What is found -------------------------------------------------------------


@pytest.mark.req("S1-HYB-03", "R4")
def test_words_alone_keep_a_place_and_have_their_cosine(settings: Settings) -> None:
    """The slot goes to the best full match; its similarity is compared all the same."""
    open_space()
    layer = layer_of("rules")
    for number in range(60):
        put(layer, f"Near {number}", (1.0, number / 1000, 0.0, 0.0))
    worded = put(layer, "The zeppelin lands.", (0.6, 0.8, 0.0, 0.0))
    reader = reader_of("rules")
    result = with_vector(reader, "zeppelin")
    assert len(result.hits) == 5
    last = result.hits[-1]
    assert last.passage_id == worded.pk
    assert Branch.MEANING not in last.branches
    assert last.similarity == pytest.approx(0.6)
    settings.HYBRID_KEYWORD_SLOTS = 0
    assert worded.pk not in shown(with_vector(reader, "zeppelin"))


def test_relaxed_hits_are_said() -> None:
    """Where no passage holds all words, the result says so."""
    open_space()
    put(layer_of("rules"), "The fee for members", EAST)
    result = with_vector(reader_of("rules"), "fee zeppelin")
    assert result.labels == (Label.RELAXED,)
    assert result.hits[0].branches[Branch.KEYWORDS].relaxed
    assert len(result.notices) == 1


@pytest.mark.req("S1-ING-04")
def test_metadata_filter_compares_strings() -> None:
    """{"page": "3"} finds page 3 and not page 30."""
    open_space()
    layer = layer_of("rules")
    third, thirtieth = put(layer, "Fee one", EAST), put(layer, "Fee two", EAST)
    for passage, page in ((third, "3"), (thirtieth, "30")):
        passage.metadata = {"page": page, "total_pages": "40"}
        passage.save(update_fields=["metadata"])
    result = with_vector(
        reader_of("rules"), "fee", metadata_filter={"page": "3", "total_pages": "40"}
    )
    assert shown(result) == [third.pk]
    assert result.hits[0].metadata == {"page": "3", "total_pages": "40"}


@pytest.mark.req("S2-HYB-03", "R2")
def test_similarity_floor_holds_for_meaning_alone(settings: Settings) -> None:
    """Below it a passage is no neighbour; by its words it is still found."""
    open_space()
    layer = layer_of("rules")
    near = put(layer, "near", EAST)
    worded = put(layer, "zeppelin", (0.0, 1.0, 0.0, 0.0))
    put(layer, "far", (0.0, 1.0, 0.0, 0.0))
    settings.STRATA_SIMILARITY_FLOOR = 0.35
    result = with_vector(reader_of("rules"), "zeppelin")
    assert set(shown(result)) == {near.pk, worded.pk}


# --- Without a vector ----------------------------------------------------------


@pytest.mark.req("S2-EMB-05", "R7")
def test_model_server_down_leaves_words_and_codes(no_model: None) -> None:
    """The result says keyword-only, in a sentence too; similarity counts as 0."""
    open_space()
    passage = put(layer_of("rules"), "The fee of form QT-07", EAST)
    result = search(reader_of("rules"), "fee QT-07")
    assert shown(result) == [passage.pk]
    assert set(result.hits[0].branches) == {Branch.KEYWORDS, Branch.CODES}
    assert result.hits[0].similarity == 0.0
    assert result.labels == (Label.KEYWORD_ONLY,)
    assert result.model is None
    assert "words and codes" in result.notices[0]


@pytest.mark.req("S3-EMB-01", "R7")
def test_portal_that_never_embeds(settings: Settings, no_model: None) -> None:
    """Without a vector it is keyword-only; with the sender's own it is hybrid."""
    settings.PORTAL_EMBEDS = False
    open_space()
    passage = put(layer_of("rules"), "The fee", EAST)
    reader = reader_of("rules")
    plain = search(reader, "fee")
    assert plain.labels == (Label.KEYWORD_ONLY,)
    hybrid = with_vector(reader, "fee")
    assert hybrid.labels == ()
    assert hybrid.hits[0].similarity == pytest.approx(1.0)
    assert shown(plain) == shown(hybrid) == [passage.pk]


def test_nothing_indexed_by_meaning_yet() -> None:
    """Before the first ingest a sender's vector has nothing to be compared with."""
    passage = put(layer_of("rules"), "The fee")
    result = with_vector(reader_of("rules"), "fee")
    assert shown(result) == [passage.pk]
    assert result.labels == (Label.KEYWORD_ONLY,)


@pytest.mark.req("D5", "S2-EMB-04")
def test_another_model_at_the_address_is_not_compared(model: str) -> None:
    """The running model is not that of the corpus: two spaces never mix."""
    open_space()
    put(layer_of("rules"), "The fee", EAST)
    result = search(reader_of("rules"), "fee")
    assert result.labels == (Label.KEYWORD_ONLY,)
    assert "another model" in result.notices[0]


@pytest.mark.req("REL-X7")
def test_branch_that_fails_costs_its_own_hits_only() -> None:
    """The others answer, and the result is marked."""
    space = open_space()
    passage = put(layer_of("rules"), "The fee", EAST)
    # The space claims a dimension that no stored vector has, so comparing them fails.
    EmbeddingSpace.objects.filter(pk=space.pk).update(state="retired")
    EmbeddingSpace.objects.create(
        fingerprint="5" * 64,
        model_id="five",
        dimension=5,
        chunker_version="1",
        context_version="1",
        state="active",
    )
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE knowledge_passagevector RENAME TO elsewhere")
    result = search(
        reader_of("rules"), "fee", query_vector=[1, 0, 0, 0, 0], query_model="five"
    )
    assert shown(result) == [passage.pk]
    assert Label.DEGRADED in result.labels


# --- What is taken -------------------------------------------------------------


@pytest.mark.req("R7", "D5")
@pytest.mark.parametrize(
    ("vector", "model", "field"),
    [
        (EAST, None, "query_model"),
        (EAST, "another model", "query_model"),
        ((1.0, 0.0), MODEL, "query_vector"),
        ((0.0, 0.0, 0.0, 0.0), MODEL, "query_vector"),
        ((math.nan, 0.0, 0.0, 1.0), MODEL, "query_vector"),
        ((math.inf, 0.0, 0.0, 1.0), MODEL, "query_vector"),
        ((1e200, 1e200, 0.0, 1.0), MODEL, "query_vector"),
        ((1e-200, 0.0, 0.0, 0.0), MODEL, "query_vector"),
    ],
)
def test_vector_that_cannot_be_compared_is_refused(
    vector: tuple[float, ...], model: str | None, field: str
) -> None:
    """Another model, another dimension, no direction: a sentence says which."""
    open_space()
    with pytest.raises(SearchInputError) as refused:
        search(reader_of(), "fee", query_vector=vector, query_model=model)
    assert refused.value.field == field
    assert refused.value.message.endswith(".")


def test_vector_is_brought_to_unit_length() -> None:
    """A cosine does not depend on how long the sender's vector is."""
    open_space()
    put(layer_of("rules"), "fee", EAST)
    result = search(
        reader_of("rules"), "fee", query_vector=[3, 4, 0, 0], query_model=MODEL
    )
    assert result.hits[0].similarity == pytest.approx(0.6)


@pytest.mark.req("REL-X6", "R4")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": " \u200b\n"}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "x" * 1001}, "query"),
        ({"query": "x " * 200_000}, "query"),
        ({"query": "fee", "top_k": 0}, "top_k"),
        ({"query": "fee", "top_k": 51}, "top_k"),
        ({"query": "fee", "layers": ["x"] * 201}, "layers"),
        ({"query": "fee", "metadata_filter": {"page": "\x00"}}, "metadata_filter"),
        (
            {"query": "fee", "metadata_filter": {str(n): "1" for n in range(21)}},
            "metadata_filter",
        ),
    ],
)
def test_arguments_out_of_bounds_are_refused_with_a_sentence(
    arguments: dict[str, object], field: str
) -> None:
    """The error names the argument."""
    with pytest.raises(SearchInputError) as refused:
        search(reader_of(), **arguments)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert refused.value.message


@pytest.mark.req("REL-X6", "REL-X5")
@pytest.mark.parametrize(
    "query", ["x", "x" * 1000, "ab " * 333, "the of and", "'" * 1000, "(((&|!:*", "🦊"]
)
def test_queries_within_bounds_are_answered(query: str, no_model: None) -> None:
    """From one character to a thousand, words or none."""
    put(layer_of("rules"), "The fee")
    assert search(reader_of("rules"), query).query
