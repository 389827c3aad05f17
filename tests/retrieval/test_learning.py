"""What is learned from searches, whom it reaches, and how it is undone."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge.models import AuditEntry, KnowledgeBase, Layer, User
from knowledge.permissions import Reader
from knowledge.purging import Erasure
from retrieval import promoter
from retrieval.learning import (
    LearningError,
    count_use,
    imported_synonym,
    learned_queries,
    learning_stats,
    pin_item,
    remove_item,
    reset_learning,
    restore_item,
    switch_item,
)
from retrieval.models import (
    Feedback,
    Interaction,
    LearnedItem,
    LearningSignal,
    LearningState,
    SearchLog,
)
from retrieval.models.learning import ItemState
from retrieval.promoter import erase, forget_signals, is_due, promote, queue_if_due
from retrieval.promoting import Lesson
from retrieval.reach import Reach
from retrieval.results import Occasion
from retrieval.routing import route
from retrieval.search import search
from tests.factories import StaffFactory
from tests.retrieval.shelf import layer_of, open_space, put, reader_of

pytestmark = pytest.mark.django_db

FIRST, SECOND = "How do I block a card?", "How do I freeze a card?"


@pytest.fixture
def rules() -> Layer:
    """The layer whose passages the searches find."""
    return layer_of("cards", "rules")


@pytest.fixture
def reader(rules: Layer) -> Reader:
    """Whoever searches it."""
    return reader_of("cards")


def log(
    reader: Reader, text: str, minutes: float, layer: Layer | None, **fields: Any
) -> SearchLog:
    """Log a search so many minutes ago."""
    values = {
        "person_id": reader.user_id,
        "door": "portal",
        "count": 5,
        "knowledge_bases": sorted(reader.searchable),
        "status": "found" if layer is not None else "not_found",
        "layer": layer,
        "interaction_id": uuid4(),
        **fields,
    }
    row = SearchLog.objects.create(query=text, **values)
    row.at = timezone.now() - timedelta(minutes=minutes)
    row.save(update_fields=["at"])
    return row


def reword(
    reader: Reader,
    layer: Layer | None,
    *,
    times: int = 2,
    before: float = 0,
    words: tuple[str, str] = (FIRST, SECOND),
    **fields: Any,
) -> None:
    """Have a person ask again in other words so many times."""
    for each in range(times):
        minutes = before + 100 * (times - each)
        log(reader, words[0], minutes + 1, None)
        log(reader, words[1], minutes, layer, **fields)


def run_anew() -> None:
    """Run over all of the log: what a test logs lies before what was read."""
    LearningState.objects.update(read_to=0)
    promote()


def queries(reader: Reader, text: str) -> tuple[str, ...]:
    """Return what is searched for besides a question."""
    found = learned_queries(Reach.of(reader), text)
    return found.rewrites or ((found.widened,) if found.widened else ())


def synonym(layer: Layer | None = None) -> LearnedItem:
    """Return the one synonym."""
    found = LearnedItem.objects.filter(kind=Lesson.SYNONYM)
    return found.get(layer=layer) if layer is not None else found.get()


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


# --- Undoing it ------------------------------------------------------------------------


@pytest.mark.req("S1-LRN-08")
def test_removed_item_is_never_learned_again(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """However often it is seen from then on, with a layer or over other lists."""
    for layer in (rules, None):
        reword(reader, layer)
        promote()
        remove_item(synonym(), actor=staff)
        reword(reader, layer, times=4, before=5000)
        run_anew()
        assert queries(reader, "block it now") == ()
        assert synonym().state == ItemState.REMOVED
        if layer is None:
            layer_of("new")
            wide = reader_of("cards", "new")
            reword(wide, None, times=3, before=9000)
            run_anew()
            assert queries(wide, "block it now") == ()
        with pytest.raises(LearningError):
            switch_item(synonym(), actor=staff, on=True)
        restore_item(synonym(), actor=staff)
        assert queries(reader, "block it now") == ()
        switch_item(synonym(), actor=staff, on=True)
        assert queries(reader, "block it now")
        LearnedItem.objects.all().delete()
        LearningSignal.objects.all().delete()
        SearchLog.objects.all().delete()
    verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert {"removed", "restored", "switched on"} <= verbs


@pytest.mark.req("S1-LRN-08")
def test_removed_item_does_not_come_back_in_other_words(
    reader: Reader, rules: Layer
) -> None:
    """Nor over another list; what was learned of it so already goes along."""
    boss: User = StaffFactory(is_superuser=True)
    layer_of("new")
    wide = reader_of("cards", "new")
    reword(reader, rules)
    reword(wide, rules, before=1000)
    reword(wide, None, before=2000)
    promote()
    rewrites = LearnedItem.objects.filter(kind=Lesson.REWRITE)
    assert rewrites.count() == 2
    remove_item(rewrites[0], actor=boss)
    assert rewrites.get().state == ItemState.REMOVED
    again = ("a card, how do I block it?", "How do I freeze the cards?")
    reword(reader, rules, words=again, times=3, before=3000)
    reword(wide, None, words=again, times=3, before=4000)
    run_anew()
    assert rewrites.get().state == ItemState.REMOVED
    assert queries(wide, FIRST) == (f"{FIRST} freeze",)


@pytest.mark.req("S1-LRN-08")
def test_reset_of_a_layer_keeps_the_history(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """What there is evidence enough for comes back; what has no layer never went."""
    reword(reader, rules)
    log(reader, "lost purse", 20, None)
    log(reader, "lost wallet", 19, None)
    log(reader, "lost purse", 8, None)
    log(reader, "lost wallet", 7, None)
    promote()
    assert reset_learning(actor=staff, layer=rules) == 2
    assert [each.term for each in LearnedItem.objects.all()] == ["purse"]
    promote()
    assert synonym(rules).term == "block"


@pytest.mark.req("S1-LRN-08")
def test_reset_of_everything_is_for_good(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """Nothing seen before teaches again; what people ask afterwards may."""
    reword(reader, rules)
    promote()
    LearnedItem.objects.filter(kind=Lesson.REWRITE).delete()
    assert reset_learning(actor=staff) == 1
    assert not LearningSignal.objects.exists()
    run_anew()
    assert not LearnedItem.objects.exists()
    LearningState.objects.update(since=timezone.now() - timedelta(days=20))
    run_anew()
    assert LearnedItem.objects.exists()


@pytest.mark.req("S1-LRN-08")
def test_pinned_item_stays_and_so_does_what_was_removed(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """Both are what a person decided."""
    reword(reader, rules)
    promote()
    pin_item(synonym(), actor=staff, pinned=True)
    remove_item(LearnedItem.objects.get(kind=Lesson.REWRITE), actor=staff)
    reset_learning(actor=staff, layer=rules)
    reset_learning(actor=staff)
    assert LearnedItem.objects.count() == 2
    assert queries(reader, "block it now")
    pin_item(synonym(), actor=staff, pinned=False)
    assert reset_learning(actor=staff) == 1
    with pytest.raises(LearningError):
        pin_item(LearnedItem(pk=1), actor=staff, pinned=True)


@pytest.mark.req("S1-LRN-06", "D26")
def test_what_an_older_rule_taught_is_not_applied_and_goes(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """At the next run, unless somebody vouches for it."""
    base = rules.knowledge_base
    for word in ("block", "lost"):
        imported_synonym(
            word,
            "stolen",
            language="en",
            layer=rules,
            knowledge_base=base,
            usage_count=7,
        ).save()
    assert queries(reader, "block a lost card") == ()
    told = learning_stats(reader).items
    assert [(each.usage_count, each.is_applied) for each in told] == [(7, False)] * 2
    pin_item(LearnedItem.objects.get(term="lost"), actor=staff, pinned=True)
    promote()
    assert [each.term for each in LearnedItem.objects.all()] == ["lost"]
    assert queries(reader, "a lost card") == ("a lost card stolen",)


@pytest.mark.req("S1-LRN-02")
def test_rewrite_that_nobody_uses_is_forgotten(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """After 180 days; a pinned one is not, nor a synonym."""
    reword(reader, rules)
    promote()
    late = timezone.now() + timedelta(days=181)
    rewrite = LearnedItem.objects.get(kind=Lesson.REWRITE)
    pin_item(rewrite, actor=staff, pinned=True)
    promote(now=late)
    assert LearnedItem.objects.count() == 2
    # Nor what somebody has switched off: learned again it would be on.
    pin_item(rewrite, actor=staff, pinned=False)
    switch_item(rewrite, actor=staff, on=False)
    promote(now=late)
    assert LearnedItem.objects.count() == 2
    switch_item(rewrite, actor=staff, on=True)
    promote(now=late)
    assert synonym().term == "block"
    assert LearnedItem.objects.count() == 1


def asked_with(reader: Reader, item: LearnedItem, row: SearchLog) -> None:
    """Have an item been used for a logged question."""
    Interaction.objects.create(
        public_id=row.interaction_id,
        owner_id=reader.user_id,
        door="portal",
        status="found",
        mode="grounded",
        learned_ids=[item.pk],
    )


def test_item_that_does_not_help_switches_itself_off(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """After two failures that are most of its uses; a person may switch it on again."""
    reword(reader, rules)
    promote()
    item = synonym()
    # Many uses of long ago do not make up for it.
    LearnedItem.objects.filter(pk=item.pk).update(usage_count=500)
    for minutes in (9, 3):
        row = log(reader, "block it", minutes, rules, door="api")
        asked_with(reader, item, row)
        Feedback.objects.create(interaction_id=row.interaction_id, is_helpful=False)
    for minutes in (30, 20):
        asked_with(reader, item, log(reader, "block it", minutes, rules, door="api"))
    promote()
    item.refresh_from_db()
    assert (item.failures, item.state) == (2, ItemState.ON)
    used = Interaction.objects.filter(learned_ids=[item.pk]).order_by("pk")
    Interaction.objects.filter(pk=used[3].pk).update(
        at=timezone.now() - timedelta(days=31)
    )
    promote()
    item.refresh_from_db()
    assert (item.failures, item.state) == (2, ItemState.OFF)
    assert AuditEntry.objects.filter(verb="switched off", actor=None).count() == 1
    switch_item(item, actor=staff, on=True)
    promote()
    item.refresh_from_db()
    assert item.state == ItemState.ON
    # Failures of long ago are none of the last 30 days.
    used.update(at=timezone.now() - timedelta(days=31))
    promote()
    item.refresh_from_db()
    assert item.failures == 0


def failed(reader: Reader, item: LearnedItem) -> None:
    """Have an item fail twice."""
    for minutes in (9, 3):
        row = log(reader, "block it", minutes, None, door="api")
        asked_with(reader, item, row)
        Feedback.objects.create(interaction_id=row.interaction_id, is_helpful=False)


def long_unused(reader: Reader, item: LearnedItem) -> None:
    """Have nobody used an item for long."""
    old = timezone.now() - timedelta(days=200)
    LearnedItem.objects.filter(pk=item.pk).update(learned_at=old)


def of_an_older_rule(reader: Reader, item: LearnedItem) -> None:
    """Have an older rule taught an item."""
    LearnedItem.objects.filter(pk=item.pk).update(rule=0)


@pytest.mark.req("S1-LRN-08", "REL-K4")
@pytest.mark.django_db(transaction=True)
def test_a_persons_decision_wins_over_a_run_at_that_moment(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """Whatever the run was about to do with what somebody pins."""

    def run() -> None:
        try:
            promote()
        finally:
            connection.close()

    for number, spoil in enumerate((failed, long_unused, of_an_older_rule)):
        item = LearnedItem.objects.create(
            kind=Lesson.REWRITE, key=str(number), term="block it", value=["freeze it"],
            knowledge_base_ids=[rules.knowledge_base_id], origin="reworded",
            digest=str(number) * 64,
        )  # fmt: skip
        spoil(reader, item)
        with transaction.atomic():
            pin_item(item, actor=staff, pinned=True)
            other = threading.Thread(target=run)
            other.start()
            other.join(0.3)
            assert other.is_alive()
        other.join()
        item.refresh_from_db()
        assert (item.state, item.is_pinned) == (ItemState.ON, True)
        pin_item(item, actor=staff, pinned=False)
        LearnedItem.objects.filter(pk=item.pk).update(decided_at=None)
        promote()
        left = LearnedItem.objects.filter(pk=item.pk, state=ItemState.ON)
        assert not left.exists()


@pytest.mark.req("S1-QRW-03")
def test_searches_that_a_person_pinned_stay_as_they_saw_them(
    reader: Reader, rules: Layer, staff: User
) -> None:
    """A model words them anew each time; what nobody decided about takes the newest."""

    def reworded(minutes: float, query: str) -> None:
        row = log(reader, FIRST, minutes, rules)
        Interaction.objects.create(
            public_id=row.interaction_id, owner_id=reader.user_id, door="portal",
            status="found", mode="grounded", rewritten_by="model",
            queries=[FIRST, query],
        )  # fmt: skip

    for minutes, query in ((90, "stop card"), (60, "halt card")):
        reworded(minutes, query)
    promote()
    assert queries(reader, FIRST) == ("halt card",)
    pin_item(LearnedItem.objects.get(), actor=staff, pinned=True)
    reworded(30, "end card")
    run_anew()
    assert queries(reader, FIRST) == ("halt card",)
    assert LearnedItem.objects.get().seen == 3
    LearnedItem.objects.update(is_pinned=False, decided_at=None)
    run_anew()
    assert queries(reader, FIRST) == ("end card",)


# --- What goes with the words ------------------------------------------------------------


@pytest.mark.req("S1-LRN-08")
def test_erased_words_teach_nothing_any_more(reader: Reader, rules: Layer) -> None:
    """What was learned from answers that handed them out goes with them."""
    reword(reader, rules, hits=[{"ref": "d77:0-5", "passage": 1}])
    row = SearchLog.objects.filter(query=SECOND).first()
    assert row is not None
    Feedback.objects.create(
        interaction_id=row.interaction_id, is_helpful=False, comment="Says 77."
    )
    promote()
    erase(Erasure(frozenset({7})))
    assert LearnedItem.objects.exists()
    erase(Erasure(frozenset({77})))
    assert not LearnedItem.objects.exists()
    assert not LearningSignal.objects.filter(kind="reworded").exists()
    assert Feedback.objects.get().comment == ""


@pytest.mark.req("S1-LRN-08")
def test_erased_words_are_found_by_the_asks_own_record_too(
    reader: Reader, rules: Layer
) -> None:
    """Of an ask whose row in the log says nothing of them."""
    reword(reader, rules)
    row = SearchLog.objects.filter(query=SECOND).earliest("pk")
    asked = {"id": "S1", "ref": "d77:0-5", "revision": "d77", "passage": 1}
    Interaction.objects.create(
        public_id=row.interaction_id, owner_id=reader.user_id, door="portal",
        status="found", mode="grounded", hits=[asked],
    )  # fmt: skip
    promote()
    erase(Erasure(frozenset({7})))
    assert LearnedItem.objects.exists()
    erase(Erasure(frozenset({77})))
    assert not LearnedItem.objects.exists()


def test_old_signals_and_words_go_with_the_log(reader: Reader, rules: Layer) -> None:
    """Those that an item rests on stay with it."""
    reword(reader, rules)
    log(reader, "block", 30, rules)
    log(reader, "opening hours", 29, rules)
    promote()
    old = timezone.now() - timedelta(days=200)
    LearningSignal.objects.update(at=old)
    Feedback.objects.create(
        interaction_id=uuid4(), is_helpful=False, comment="x", changed_at=old
    )
    assert forget_signals() == 1
    assert Feedback.objects.get().comment == ""
