"""What is learned from searches, and whom it reaches."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge.models import KnowledgeBase, Layer, User
from knowledge.permissions import Reader
from retrieval import promoter
from retrieval.learning import (
    count_use,
    imported_synonym,
    learned_queries,
    learning_stats,
    remove_item,
    switch_item,
)
from retrieval.models import (
    Feedback,
    LearnedItem,
    LearningSignal,
    LearningState,
    SearchLog,
)
from retrieval.promoter import is_due, promote, queue_if_due
from retrieval.promoting import Lesson
from retrieval.reach import Reach
from retrieval.results import Occasion
from retrieval.routing import route
from retrieval.search import search
from tests.factories import StaffFactory
from tests.retrieval.asked_again import (
    FIRST,
    SECOND,
    log,
    queries,
    reword,
    run_anew,
    synonym,
)
from tests.retrieval.shelf import layer_of, open_space, put, reader_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def rules() -> Layer:
    """The layer whose passages the searches find."""
    return layer_of("cards", "rules")


@pytest.fixture
def reader(rules: Layer) -> Reader:
    """Whoever searches it."""
    return reader_of("cards")


@pytest.fixture
def staff(rules: Layer) -> User:
    """Who decides."""
    person: User = StaffFactory()
    return person


# --- Learning it -------------------------------------------------------------------


@pytest.mark.req("S1-LRN-02", "S1-LRN-04", "S1-QRW-02")
def test_synonym_is_learned_from_two_rewordings_and_appended(
    reader: Reader, rules: Layer
) -> None:
    """Once is not enough; then it is added to other questions with the word."""
    reword(reader, rules, times=1)
    promote()
    assert not LearnedItem.objects.exists()
    reword(reader, rules, times=1, before=1000)
    run_anew()
    item = synonym(rules)
    assert (item.term, item.value, item.seen) == ("block", ["freeze"], 2)
    assert item.evidence.count() == 2
    asked = "Who may block the account?"
    assert queries(reader, asked) == (f"{asked} freeze",)
    assert queries(reader, "Who may freeze the account?") == ()


@pytest.mark.req("S1-LRN-02")
def test_two_runs_over_one_history_give_the_same(reader: Reader, rules: Layer) -> None:
    """A run repeated, and all of it read anew, change nothing."""
    reword(reader, rules, times=3)
    now = timezone.now()
    promote(now=now)

    def held() -> list[tuple[Any, ...]]:
        return sorted(
            LearnedItem.objects.values_list("digest", "seen", "term", "last_seen_at")
        )

    first, signals = held(), LearningSignal.objects.count()
    assert first
    promote(now=now)
    assert held() == first
    LearningState.objects.update(read_to=0)
    promote(now=now)
    assert (held(), LearningSignal.objects.count()) == (first, signals)
    LearnedItem.objects.all().delete()
    LearningSignal.objects.all().delete()
    LearningState.objects.all().delete()
    promote(now=now)
    assert held() == first


@pytest.mark.req("S1-QRW-03")
def test_rewrite_that_found_more_is_searched_for(reader: Reader, rules: Layer) -> None:
    """The same question in whatever order gets the words that found something."""
    reword(reader, rules)
    promote()
    assert queries(reader, "block a card: how?") == (SECOND,)
    item = LearnedItem.objects.get(kind=Lesson.REWRITE)
    count_use([item.pk])
    count_use([])
    item.refresh_from_db()
    assert item.usage_count == 1
    assert item.last_used_at is not None


@pytest.mark.req("S1-RTE-01")
def test_chosen_layer_leads_other_questions_there(reader: Reader, rules: Layer) -> None:
    """At once, though sizes and results are kept."""
    prices = layer_of("cards", "prices")
    sizes = Reach.of(reader).sizes
    assert route("block a card", sizes) is None
    for minutes in (300, 100):
        log(reader, FIRST, minutes + 1, rules)
        log(
            reader, FIRST, minutes, prices, chose_layers=True, layers=[prices.pk]
        )  # fmt: skip
    version = prices.knowledge_base.version
    promote()
    base = KnowledgeBase.objects.get(pk=prices.knowledge_base_id)
    assert base.version > version
    sizes = Reach.of(reader).sizes
    assert route("Can I block two cards?", sizes) == {prices.pk}
    assert route("opening hours of the branch at the card desk", sizes) is None
    assert route("block", Reach.of(reader_of("other")).sizes) is None


@pytest.mark.req("S1-RTE-01", "S1-IDX-02")
def test_results_stay_kept_where_no_affinity_changes(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """The version rises with what routing would do otherwise, and with nothing else."""

    def version() -> int:
        return KnowledgeBase.objects.get(pk=rules.knowledge_base_id).version

    for minutes in (300, 100):
        log(reader, FIRST, minutes + 1, None)
        log(reader, FIRST, minutes, rules, chose_layers=True, layers=[rules.pk])
    promote()
    item = LearnedItem.objects.get(kind=Lesson.AFFINITY, term="card")
    before = version()
    run_anew()
    assert version() == before
    switch_item(item, actor=staff, on=False)
    assert version() == before + 1
    # What is not in use may be seen more often, be removed, or go.
    log(reader, FIRST, 21, None)
    log(reader, FIRST, 20, rules, chose_layers=True, layers=[rules.pk])
    LearnedItem.objects.exclude(pk=item.pk).delete()
    before = version()
    run_anew()
    item.refresh_from_db()
    assert item.seen == 3
    remove_item(item, actor=staff)
    item.delete()
    assert version() == before + len(LearnedItem.objects.all())


@pytest.mark.req("S1-LRN-02")
def test_a_run_asks_the_database_no_more_for_more_items(
    reader: Reader, rules: Layer
) -> None:
    """Neither to learn them nor to see them again."""

    def statements(words: Sequence[str]) -> int:
        for number, word in enumerate(words):
            pair = (f"{word} card", f"{word} purse")
            reword(reader, rules, words=pair, before=500 * number)
        with CaptureQueriesContext(connection) as asked:
            run_anew()
        return len(asked)

    few = statements(["heron"])
    assert LearnedItem.objects.count() == 2
    SearchLog.objects.update(at=timezone.now() - timedelta(days=20))
    assert statements(["ladder", "copper", "window", "garden"]) <= few
    assert LearnedItem.objects.filter(kind=Lesson.REWRITE).count() == 5


@pytest.mark.req("S1-LRN-01", "S1-FBK-01", "S1-CNF-05")
def test_each_search_is_recorded_with_its_level(
    reader: Reader, rules: Layer, settings: Settings
) -> None:
    """By the log's own row, which is all that it costs."""
    open_space()
    put(rules, "A card is blocked by phone.")
    found = search(reader, "card", layers=["rules"], occasion=Occasion("portal"))
    row = SearchLog.objects.get()
    assert found.interaction_id == str(row.interaction_id)
    assert row.chose_layers
    assert row.level == ("" if found.confidence is None else found.confidence.level)
    settings.LEARNING_ENABLED = False
    quiet = search(reader, "card", occasion=Occasion("portal"))
    assert quiet.interaction_id == ""
    assert SearchLog.objects.filter(interaction_id=None).count() == 1


@pytest.mark.req("R16", "S1-PRV-01")
def test_what_is_learned_holds_no_bank_details(
    reader: Reader, rules: Layer, settings: Settings
) -> None:
    """Others see it, so that it is scrubbed even where the log is kept raw."""
    settings.LEARNING_STORE_RAW_QUERIES = True
    iban = "DE89 3704 0044 0532 0130 00"
    reword(reader, rules, words=(f"block card {iban}", f"freeze card {iban}"))
    rated = log(reader, "lost purse", 30, rules)
    Feedback.objects.create(
        interaction_id=rated.interaction_id,
        is_helpful=False,
        better_query=f"lost wallet {iban}",
    )
    promote()
    held = LearnedItem.objects.values_list("kind", "term", "value")
    assert (Lesson.REWRITE, "block card [IBAN]", ["freeze card [IBAN]"]) in held
    assert "3704" not in str(list(held))
    pair = imported_synonym(
        f"{iban}",
        "account 12345678",
        language="en",
        layer=rules,
        knowledge_base=rules.knowledge_base,
    )
    assert (pair.term, pair.value) == ("[IBAN]", ["account [account number]"])


@pytest.mark.req("R19")
def test_nothing_is_learned_or_applied_while_it_is_off(
    reader: Reader, rules: Layer, settings: Settings
) -> None:
    """Nor from what was asked meanwhile, once it is on again."""
    reword(reader, rules)
    promote()
    settings.LEARNING_ENABLED = False
    assert queries(reader, FIRST) == ()
    assert promote() == {}
    assert not learning_stats(reader).is_on
    settings.LEARNING_ENABLED = True
    assert queries(reader, FIRST)
    LearnedItem.objects.all().delete()
    SearchLog.objects.update(interaction_id=None)
    LearningSignal.objects.all().delete()
    LearningState.objects.update(read_to=0)
    promote()
    assert not LearnedItem.objects.exists()


@pytest.mark.req("S1-LRN-02")
def test_promoter_is_due_after_fifty_interactions(reader: Reader, rules: Layer) -> None:
    """And is queued once, until it has run."""
    from django_q.models import OrmQ

    SearchLog.objects.bulk_create(
        SearchLog(
            person_id=reader.user_id, door="portal", count=5, query="card",
            status="found", interaction_id=uuid4(),
        )
        for _each in range(promoter.EVERY - 1)
    )  # fmt: skip
    queue_if_due()
    assert not OrmQ.objects.exists()
    log(reader, "card", 0, rules)
    for _each in range(2):
        queue_if_due()
        assert OrmQ.objects.count() == 1
    promote()
    assert not is_due()


def test_who_tries_things_out_teaches_nothing(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """Staff who see the portal as the person, and agents that may be anybody."""
    reword(reader, rules)
    SearchLog.objects.update(acting=staff)
    reword(reader, rules, before=2000)
    SearchLog.objects.filter(acting=None).update(by_agent=True)
    promote()
    assert not LearnedItem.objects.exists()
    # The same of a person's own teaches.
    SearchLog.objects.filter(by_agent=True).update(by_agent=False)
    run_anew()
    assert LearnedItem.objects.exists()


# --- Whom it reaches -----------------------------------------------------------------


@pytest.mark.req("S3-VIS-01", "S1-LRN-07")
def test_item_reaches_only_who_could_have_taught_it(
    reader: Reader, rules: Layer
) -> None:
    """By all that the questions were asked over, with a layer or without one."""
    layer_of("secret")
    wide = reader_of("cards", "secret")
    reword(wide, None)
    promote()
    assert synonym().layer is None
    reword(wide, rules, before=1000)
    run_anew()
    assert synonym(rules)
    for asked in ("block it now", FIRST):
        assert queries(wide, asked)
        assert queries(reader, asked) == ()
    stats = learning_stats(reader)
    assert (stats.items, stats.counts, stats.signals) == ((), {}, {})
    assert learning_stats(wide).counts == {"synonym": 2, "rewrite": 1}
    reword(reader, rules, before=2000)
    run_anew()
    assert queries(reader, FIRST) == (SECOND,)
    stats = learning_stats(reader)
    assert {each.layer for each in stats.items} == {rules}
    assert {each.usage_count for each in stats.items} == {0}
    assert stats.counts == {"synonym": 1, "rewrite": 1}
    assert stats.signals["reworded"] == 2
    assert queries(reader_of("secret"), "block it now") == ()
    other = layer_of("cards", "other")
    within = Reach.of(reader).within(frozenset({other.pk}))
    assert learned_queries(within, "block it now").widened == ""


@pytest.mark.req("S3-VIS-01", "S1-LRN-07")
def test_word_of_an_affinity_is_told_to_who_could_have_used_it(
    reader: Reader, rules: Layer
) -> None:
    """It leads whoever types it; a word that nobody typed over less is not shown."""
    layer_of("secret")
    wide = reader_of("cards", "secret")

    def choose(person: Reader, before: float) -> None:
        for minutes in (before, before + 100):
            log(person, "zephyr", minutes + 1, None)
            log(
                person, "zephyr", minutes, rules, chose_layers=True, layers=[rules.pk]
            )  # fmt: skip

    choose(wide, 10)
    promote()
    assert [each.term for each in learning_stats(wide).items] == ["zephyr"]
    assert learning_stats(reader).items == ()
    assert route("where is zephyr", Reach.of(reader).sizes) == {rules.pk}
    choose(reader, 1000)
    run_anew()
    assert [each.seen for each in learning_stats(reader).items] == [4]
