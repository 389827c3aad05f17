"""The promoter: reads what was asked since it last ran, and learns from it (S1-LRN-02).

The worker looks every few seconds whether 50 more interactions have come, and then
queues a run. A run is one transaction, one at a time, and may be repeated: signals and
items are found again, not made twice.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone
from django_q.tasks import async_task

from knowledge.models import Layer
from knowledge.models.audit import record
from knowledge.purging import Erasure
from knowledge.scrubbing import scrub
from retrieval.learning import delete_held, last_active, learning_state
from retrieval.models import (
    Feedback,
    Interaction,
    LearnedItem,
    LearningSignal,
    LearningState,
    SearchLog,
)
from retrieval.models.learning import RULE, ItemState
from retrieval.models.log import Status
from retrieval.promoting import (
    LOOKBACK,
    SOON,
    Asked,
    History,
    Kind,
    Lesson,
    Noticed,
    Rating,
    Taught,
    has_failed,
    is_stale,
    lessons,
    noticed,
)
from retrieval.reach import Sql, rows_of
from retrieval.results import Level

logger = logging.getLogger(__name__)

# Interactions after which the promoter runs.
EVERY: Final = 50
# Between two looks at how many have come (seconds).
LOOK_SECONDS: Final = 10.0
# A queued run that has not come about after so long is queued again.
LOST: Final = timedelta(minutes=10)
# A row of the log may become visible a little after a later one.
LATE: Final = timedelta(minutes=1)
TASK: Final = "retrieval.tasks.promote"
# What the promoter reads of a row of the log; the way to a result is far larger.
READ: Final = (
    "at",
    "by_agent",
    "chose_layers",
    "conversation_id",
    "door",
    "interaction_id",
    "knowledge_bases",
    "layer",
    "layers",
    "level",
    "person",
    "query",
    "status",
    "token",
)


# --- When ----------------------------------------------------------------------


def queue_if_due() -> None:
    """Queue a run where 50 interactions have come since the last one."""
    if not settings.LEARNING_ENABLED or not is_due():
        return
    learning_state()
    waiting = LearningState.objects.filter(
        Q(queued_at__isnull=True) | Q(queued_at__lt=timezone.now() - LOST)
    )
    with transaction.atomic():
        if waiting.update(queued_at=timezone.now()):
            async_task(TASK, save=False)


def is_due() -> bool:
    """Tell whether enough has come since the last run."""
    state = LearningState.objects.first()
    read_to = 0 if state is None else state.read_to
    new = SearchLog.objects.filter(pk__gt=read_to, interaction_id__isnull=False)
    return len(new.order_by("pk").values_list("pk")[:EVERY]) == EVERY


# --- One run -------------------------------------------------------------------


def promote(*, now: datetime | None = None) -> Mapping[str, int]:
    """Run once and return what was done, by its name; nothing where learning is off."""
    if not settings.LEARNING_ENABLED:
        return {}
    moment = timezone.now() if now is None else now
    learning_state()
    with transaction.atomic():
        # One run at a time; a reset waits for it too.
        state = LearningState.objects.select_for_update().get(pk=1)
        done: Counter[str] = Counter()
        done["older rule"] = forget_older_rules()
        done["signals"] = take_signals(state, moment)
        done += learn(state, moment)
        done["failed"] = switch_off_failed(moment)
        done["stale"] = forget_stale(moment)
        state.run_at, state.queued_at = moment, None
        state.outcome = {name: count for name, count in done.items() if count}
        state.save()
    logger.info("The promoter has run: %s.", dict(state.outcome) or "nothing new")
    return done


def forget_older_rules() -> int:
    """Delete what an older rule taught and nobody has pinned (S1-LRN-06)."""
    return delete_held(LearnedItem.objects.exclude(rule=RULE).forgettable())


# --- Signals -------------------------------------------------------------------


def take_signals(state: LearningState, now: datetime) -> int:
    """Store the signals of what has come since the last run; returns how many."""
    start = max(
        each
        for each in (state.since, now - LOOKBACK, read_from(state))
        if each is not None
    )
    rows = taught_rows().filter(at__gte=start, at__lte=now)
    if state.since is not None:
        rows = rows.filter(at__gt=state.since)
    asked = asked_in(rows.order_by("at", "pk"))
    found = noticed(asked)
    found += rated(state, now)
    before = LearningSignal.objects.count()
    LearningSignal.objects.bulk_create(
        (
            LearningSignal(
                kind=str(each.kind),
                first=each.first,
                second=each.second,
                layer_id=each.layer,
                knowledge_base_ids=sorted(each.bases),
                at=each.at,
            )
            for each in existing_layers(found)
        ),
        ignore_conflicts=True,
        batch_size=1000,
    )
    last = SearchLog.objects.filter(at__lte=now).aggregate(last=Max("pk"))["last"]
    state.read_to = max(state.read_to, last or 0)
    return LearningSignal.objects.count() - before


def read_from(state: LearningState) -> datetime | None:
    """Return from when the log is read: what the last row read may be answered by."""
    last = SearchLog.objects.filter(pk__lte=state.read_to).order_by("-pk").first()
    return None if last is None else last.at - SOON - LATE


def taught_rows() -> QuerySet[SearchLog]:
    """Return the rows of the log that may teach: people's own, while learning is on.

    Who sees the portal as another person tries it out, and teaches nothing.
    """
    return SearchLog.objects.filter(
        interaction_id__isnull=False, person__isnull=False, acting__isnull=True
    ).exclude(query="")


def asked_in(rows: QuerySet[SearchLog]) -> list[Asked]:
    """Return rows of the log as the promoter reads them."""
    found = list(rows.only(*READ))
    ids = [row.interaction_id for row in found if row.interaction_id is not None]
    reworded = {
        row.public_id: tuple(map(scrub, row.queries[1:]))
        for row in Interaction.objects.filter(public_id__in=ids, rewritten_by="model")
    }
    return [asked_of(row, reworded) for row in found]


def asked_of(row: SearchLog, reworded: Mapping[UUID, tuple[str, ...]]) -> Asked:
    """Return one row as the promoter reads it.

    Without bank details even where the log keeps them (R16): what is learned of it is
    shown to others.
    """
    if row.interaction_id is None:
        raise ValueError(row.pk)
    return Asked(
        id=row.interaction_id,
        chain=chain_of(row),
        at=row.at,
        text=scrub(row.query),
        bases=frozenset(row.knowledge_bases),
        chosen=frozenset(row.layers or ()) if row.chose_layers else frozenset(),
        layer=row.layer_id,
        is_weak=row.status == Status.NOT_FOUND or row.level == Level.LOW,
        searches=reworded.get(row.interaction_id, ()),
    )


def chain_of(row: SearchLog) -> tuple[object, ...] | None:
    """Return what a search is part of: its conversation, or the person's own searches.

    Behind an agent client without a conversation may be anybody.
    """
    if row.conversation_id is not None:
        return (row.conversation_id, row.person_id)
    if row.by_agent:
        return None
    return (row.person_id, row.door, row.token_id)


def rated(state: LearningState, now: datetime) -> list[Noticed]:
    """Return a signal for each rating of the lookback."""
    rows = Feedback.objects.filter(changed_at__gt=now - LOOKBACK, changed_at__lte=now)
    if state.since is not None:
        rows = rows.filter(changed_at__gt=state.since)
    of_teaching = taught_rows().filter(interaction_id__in=rows.values("interaction_id"))
    if state.since is not None:
        of_teaching = of_teaching.filter(at__gt=state.since)
    bases = dict(of_teaching.values_list("interaction_id", "knowledge_bases"))
    return [
        Noticed(
            row.changed_at,
            Kind.FEEDBACK,
            row.interaction_id,
            None,
            row.correct_layer_id,
            frozenset(bases[row.interaction_id]),
        )
        for row in rows
        if bases.get(row.interaction_id)
    ]


def existing_layers(found: Sequence[Noticed]) -> list[Noticed]:
    """Return the signals that rest on some knowledge base, layers still being there."""
    named = {each.layer for each in found if each.layer is not None}
    known = set(Layer.objects.filter(pk__in=named).values_list("pk", flat=True))
    return [
        each
        for each in found
        if each.bases and (each.layer is None or each.layer in known)
    ]


# --- Lessons -------------------------------------------------------------------


def learn(state: LearningState, now: datetime) -> Counter[str]:
    """Learn what the signals of the lookback teach; returns how many new of each."""
    stored = LearningSignal.objects.filter(at__gte=now - LOOKBACK, at__lte=now)
    if state.since is not None:
        stored = stored.filter(at__gt=state.since)
    rows = list(stored)
    ids = {row.first for row in rows} | {row.second for row in rows if row.second}
    history = History(
        asked={
            each.id: each
            for each in asked_in(SearchLog.objects.filter(interaction_id__in=ids))
        },
        ratings={
            row.interaction_id: Rating(
                row.is_helpful, row.correct_layer_id, scrub(row.better_query)
            )
            for row in Feedback.objects.filter(interaction_id__in=ids)
        },
        base_of=dict(Layer.objects.values_list("pk", "knowledge_base")),
    )
    by_signal = {signal_of(row): row for row in rows}
    taught = lessons(by_signal, history, now=now)
    return apply_lessons(taught, by_signal)


def signal_of(row: LearningSignal) -> Noticed:
    """Return a stored signal as the promoter reads it."""
    return Noticed(
        row.at,
        Kind(row.kind),
        row.first,
        row.second,
        row.layer_id,
        frozenset(row.knowledge_base_ids),
    )


def apply_lessons(
    taught: Sequence[Taught], rows: Mapping[Noticed, LearningSignal]
) -> Counter[str]:
    """Make or strengthen the items of lessons; returns how many are new, by kind."""
    known = {
        item.digest: item
        for item in LearnedItem.objects.filter(digest__in=[t.digest for t in taught])
    }
    removed = [
        item.subject for item in LearnedItem.objects.filter(state=ItemState.REMOVED)
    ]
    new = [
        each
        for each in taught
        if each.digest not in known
        and each.is_enough
        and not any(subject.covers(each.subject) for subject in removed)
    ]
    made = LearnedItem.objects.bulk_create(
        (
            LearnedItem(
                kind=str(each.lesson),
                key=each.key,
                term=each.term,
                value=list(each.value),
                layer_id=each.scope.layer,
                knowledge_base_ids=sorted(each.scope.bases),
                origin=str(each.source),
                seen=len(each.evidence),
                last_seen_at=each.evidence[-1].at,
                digest=each.digest,
            )
            for each in new
        ),
        batch_size=1000,
    )
    known |= {item.digest: item for item in made}
    strengthen(
        {
            known[each.digest]: each
            for each in taught
            if each.digest in known and known[each.digest].state != ItemState.REMOVED
        },
        rows,
    )
    return Counter(item.kind for item in made)


def strengthen(
    taught: Mapping[LearnedItem, Taught], rows: Mapping[Noticed, LearningSignal]
) -> None:
    """Add what was seen of items to their evidence; what is as it was is not written."""
    evidence = LearnedItem.evidence.through.objects
    evidence.bulk_create(
        (
            LearnedItem.evidence.through(
                learneditem_id=item.pk, learningsignal_id=rows[signal].pk
            )
            for item, each in taught.items()
            for signal in each.evidence
        ),
        ignore_conflicts=True,
        batch_size=1000,
    )
    counts = dict(
        evidence.filter(learneditem__in=[item.pk for item in taught])
        .values_list("learneditem")
        .annotate(Count("pk"))
    )
    changed = []
    for item, each in taught.items():
        before = (item.seen, item.last_seen_at)
        item.seen = max(counts[item.pk], item.seen)
        item.last_seen_at = each.evidence[-1].at
        if (item.seen, item.last_seen_at) != before:
            changed.append(item)
        if each.is_model and list(each.value) != item.value:
            # What somebody vouched for stays in the words that they saw.
            LearnedItem.objects.filter(
                pk=item.pk, is_pinned=False, decided_at__isnull=True
            ).update(value=list(each.value))
    LearnedItem.objects.bulk_update(changed, ["seen", "last_seen_at"], batch_size=1000)


# --- What did not help, and what is stale ----------------------------------------


def switch_off_failed(now: datetime) -> int:
    """Switch off what failed more often than not within the lookback; returns how many.

    An answer failed that was rated so, or asked again in other words. What a person
    decided about stays as decided.
    """
    used = Interaction.objects.filter(at__gt=now - LOOKBACK, at__lte=now)
    by_answer = dict(
        used.exclude(learned_ids=[]).values_list("public_id", "learned_ids")
    )
    reworded = LearningSignal.objects.filter(
        kind=Kind.REWORDED, first__in=by_answer
    ).values_list("first", flat=True)
    unhelpful = Feedback.objects.filter(
        interaction_id__in=by_answer, is_helpful=False
    ).values_list("interaction_id", flat=True)
    uses = Counter(pk for ids in by_answer.values() for pk in ids)
    failures = Counter(
        pk for answer in {*reworded, *unhelpful} for pk in by_answer[answer]
    )
    counted = LearnedItem.objects.filter(Q(pk__in=failures) | Q(failures__gt=0))
    changed = [item for item in counted if item.failures != failures[item.pk]]
    for item in changed:
        item.failures = failures[item.pk]
    LearnedItem.objects.bulk_update(changed, ["failures"], batch_size=1000)
    failed = LearnedItem.objects.select_for_update().filter(
        pk__in=[pk for pk, count in failures.items() if has_failed(count, uses[pk])],
        state=ItemState.ON,
        is_pinned=False,
        decided_at__isnull=True,
    )
    switched = list(failed.order_by("pk"))
    for item in switched:
        item.state = ItemState.OFF
        record(None, "switched off", item, why="did not help")
    LearnedItem.objects.bulk_update(switched, ["state"])
    return len(switched)


def forget_stale(now: datetime) -> int:
    """Delete rewrites that nobody has used for long; returns how many.

    What is pinned stays, and so does what a person has switched off: it would be
    learned again, and be in use.
    """
    items = (
        LearnedItem.objects.forgettable()
        .filter(kind=Lesson.REWRITE)
        .exclude(state=ItemState.OFF, decided_at__isnull=False)
    )
    stale = [item.pk for item in items if is_stale(last_active(item), now=now)]
    return delete_held(items.filter(pk__in=stale))


# --- What goes in the end --------------------------------------------------------


def forget_signals() -> int:
    """Delete signals as old as the log, and old people's words from ratings.

    Those that an item rests on stay as long as the item.
    """
    old = timezone.now() - timedelta(days=settings.STRATA_KEEP_LOG_DAYS)
    Feedback.objects.filter(changed_at__lt=old).exclude(
        comment="", better_query=""
    ).update(comment="", better_query="")
    unused = (
        LearningSignal.objects.filter(at__lt=old)
        .annotate(held=Count("items"))
        .filter(held=0)
    )
    count, _by_model = LearningSignal.objects.filter(
        pk__in=unused.values("pk")
    ).delete()
    return count


# The answers that handed out words of some revisions. An ask's own record holds them
# too: the log of searches may have none, and goes earlier.
ANSWERS_WITH: Final = """
SELECT interaction_id FROM retrieval_searchlog
WHERE interaction_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM jsonb_array_elements(hits) AS hit WHERE hit ->> 'ref' LIKE ANY(%s)
)
UNION
SELECT public_id FROM retrieval_interaction
WHERE EXISTS (
    SELECT 1 FROM jsonb_array_elements(hits) AS hit WHERE hit ->> 'ref' LIKE ANY(%s)
)
"""


def erase(erasure: Erasure) -> None:
    """Take out what was learned from, and said of, answers with erased words."""
    # A run that reads them is done before, or finds them gone.
    LearningState.objects.select_for_update().filter(pk=1).first()
    refs = [f"d{number}:%" for number in erasure.revisions]
    answers = [row[0] for row in rows_of(Sql(ANSWERS_WITH, (refs, refs)))]
    Feedback.objects.filter(interaction_id__in=answers).update(
        comment="", better_query=""
    )
    signals = LearningSignal.objects.filter(
        Q(first__in=answers) | Q(second__in=answers)
    )
    LearnedItem.objects.filter(evidence__in=signals).delete()
    signals.delete()
