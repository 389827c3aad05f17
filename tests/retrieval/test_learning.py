"""What is learned from searches, whom it reaches, and how it is undone."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
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
from retrieval.models.learning import ItemKind, ItemState
from retrieval.promoter import erase, forget_signals, is_due, promote, queue_if_due
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
    **fields: Any,
) -> None:
    """Have a person ask again in other words so many times."""
    for each in range(times):
        minutes = before + 100 * (times - each)
        log(reader, FIRST, minutes + 1, None)
        log(reader, SECOND, minutes, layer, **fields)


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
    found = LearnedItem.objects.filter(kind=ItemKind.SYNONYM)
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
    item = LearnedItem.objects.get(kind=ItemKind.REWRITE)
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
    reword(reader, rules, acting=staff)
    SearchLog.objects.update(acting=staff)
    reword(reader, rules, before=2000)
    SearchLog.objects.filter(acting=None).update(by_agent=True)
    promote()
    assert not LearnedItem.objects.exists()


# --- Whom it reaches -----------------------------------------------------------------


@pytest.mark.req("S3-VIS-01", "S1-LRN-07")
def test_item_reaches_only_who_could_have_taught_it(
    reader: Reader, rules: Layer
) -> None:
    """By its layer, or, without one, by all that the questions were asked over."""
    layer_of("secret")
    wide = reader_of("cards", "secret")
    reword(wide, None)
    promote()
    assert synonym().layer is None
    assert queries(wide, "block it now")
    assert queries(reader, "block it now") == ()
    assert learning_stats(reader).items == ()
    reword(wide, rules, before=1000)
    run_anew()
    assert queries(reader, "block it now")
    told = learning_stats(reader).items
    assert {each.layer for each in told} == {rules}
    assert {each.usage_count for each in told} == {0}
    assert queries(reader_of("secret"), "block it now") == ()
    other = layer_of("cards", "other")
    within = Reach.of(reader).within(frozenset({other.pk}))
    assert learned_queries(within, "block it now").widened == ""


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
    LearnedItem.objects.filter(kind=ItemKind.REWRITE).delete()
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
    remove_item(LearnedItem.objects.get(kind=ItemKind.REWRITE), actor=staff)
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
    pin_item(LearnedItem.objects.get(kind=ItemKind.REWRITE), actor=staff, pinned=True)
    promote(now=late)
    assert LearnedItem.objects.count() == 2
    pin_item(LearnedItem.objects.get(kind=ItemKind.REWRITE), actor=staff, pinned=False)
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
    for minutes in (9, 3):
        row = log(reader, "block it", minutes, rules, door="api")
        asked_with(reader, item, row)
        count_use([item.pk])
        Feedback.objects.create(interaction_id=row.interaction_id, is_helpful=False)
    promote()
    item.refresh_from_db()
    assert (item.failures, item.state) == (2, ItemState.OFF)
    assert AuditEntry.objects.filter(verb="switched off", actor=None).count() == 1
    switch_item(item, actor=staff, on=True)
    promote()
    item.refresh_from_db()
    assert item.state == ItemState.ON


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


def test_id_of_an_answer_is_that_of_its_row(reader: Reader, rules: Layer) -> None:
    """So that whoever holds one finds the other."""
    row = log(reader, FIRST, 1, rules)
    assert isinstance(row.interaction_id, UUID)
    assert isinstance(row.at, datetime)
