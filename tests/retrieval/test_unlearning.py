"""How what was learned is undone, by people, by failing, and with the words."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from knowledge.models import AuditEntry, Layer, User
from knowledge.permissions import Reader
from knowledge.purging import Erasure
from retrieval.learning import (
    LearningError,
    imported_synonym,
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
from retrieval.promoter import erase, forget_signals, promote
from retrieval.promoting import Lesson
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
from tests.retrieval.shelf import layer_of, reader_of

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
