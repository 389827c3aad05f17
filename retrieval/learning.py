"""What was learned, applied to a reader's searches, told, and undone (S1-LRN).

An item is applied only where all knowledge bases that its evidence comes from are
searched, so that it never reaches a reader who could not have taught it. It adds a
search or leads one to a layer; the weights of ranking are never touched.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Count, F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from knowledge.models import KnowledgeBase, Layer, User
from knowledge.models.audit import record
from knowledge.permissions import Reader
from knowledge.scrubbing import scrub
from retrieval.models import LearnedItem, LearningSignal, LearningState
from retrieval.models.learning import ItemState, LearnedItemQuerySet, SignalQuerySet
from retrieval.promoting import Lesson, Scope, Source, identity, shares, strength
from retrieval.reach import Reach
from retrieval.sizes import Size
from retrieval.wordings import key_of, read, widened

logger = logging.getLogger(__name__)

# Searches that learned items add to the question as written.
MOST_ADDED: Final = 3
MOST_SYNONYMS: Final = 6
MOST_TOLD: Final = 500


class LearningError(Exception):
    """An act on learned items that cannot be done; the message says why."""


# --- Applying it ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned for one question: proven rewrites, and the question widened.

    `widened` is the question with learned synonyms appended, or "". The ids are of the
    items behind each.
    """

    rewrites: tuple[str, ...] = ()
    rewrite_ids: frozenset[int] = frozenset()
    widened: str = ""
    synonym_ids: frozenset[int] = frozenset()


def learned_queries(reach: Reach, question: str) -> Learned:
    """Return what was learned for a cleaned question within a reach; one statement."""
    if not settings.LEARNING_ENABLED or reach.is_empty:
        return Learned()
    wording = read(question)
    if not wording.keys:
        return Learned()
    items = (
        LearnedItem.objects.applied()
        .within(reach.knowledge_base_ids)
        .filter(
            Q(kind=Lesson.REWRITE, key=wording.digest)
            | Q(kind=Lesson.SYNONYM, key__in=wording.all_forms)
        )
        .order_by("-seen", "pk")
    )
    if reach.layer_ids is not None:
        items = items.filter(Q(layer__isnull=True) | Q(layer__in=reach.layer_ids))
    found = list(items)
    return together(
        question,
        [each for each in found if each.kind == Lesson.REWRITE],
        [each for each in found if each.kind == Lesson.SYNONYM],
    )


def together(
    question: str, rewrites: Sequence[LearnedItem], synonyms: Sequence[LearnedItem]
) -> Learned:
    """Return what items come to for a question, the strongest rewrites first."""
    now = timezone.now()
    ranked = sorted(
        rewrites,
        key=lambda item: (
            -strength(last_active(item), now=now) if not item.is_pinned else -1.0,
            -item.seen,
            item.pk,
        ),
    )
    queries: dict[str, int] = {}
    for item in ranked:
        for query in item.value:
            if query.casefold() != question.casefold():
                queries.setdefault(query, item.pk)
    kept = dict(list(queries.items())[:MOST_ADDED])
    words = synonyms[:MOST_SYNONYMS]
    text = widened(question, [word for item in words for word in item.value])
    return Learned(
        rewrites=tuple(kept),
        rewrite_ids=frozenset(kept.values()),
        widened=text if len(text) <= settings.STRATA_QUERY_MAX_CHARACTERS else "",
        synonym_ids=frozenset(item.pk for item in words),
    )


def affinity(sizes: Mapping[int, Size], question: str) -> Mapping[int, float]:
    """Return how far earlier choices lead a question to layers, 0 to 1 by id.

    `sizes` are those of the knowledge bases that the reader may search, and only
    choices of their layers count, for and against.
    """
    leads = [size.leads for size in sizes.values() if size.leads]
    if not settings.LEARNING_ENABLED or not leads:
        return {}
    return shares(leads, read(question).forms)


def last_active(item: LearnedItem) -> datetime:
    """Return when an item was last used, seen or learned."""
    moments = (item.last_used_at, item.last_seen_at, item.learned_at)
    return max(each for each in moments if each is not None)


def count_use(ids: Collection[int]) -> None:
    """Count the use of items; one statement, none where there are none.

    A count that cannot be written costs nobody the answer.
    """
    if not ids:
        return
    try:
        with transaction.atomic():
            # In the order of their ids, so that two answers never wait for each other.
            held = LearnedItem.objects.filter(pk__in=ids).order_by("pk")
            list(held.select_for_update(no_key=True).values_list("pk"))
            held.update(usage_count=F("usage_count") + 1, last_used_at=Now())
    except DatabaseError:
        logger.exception("the use of what was learned could not be counted")


# --- Telling it ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LearningStats:
    """What was learned within what somebody may search (S1-LRN-07).

    `items` are those in use or switched off, the most used first; `counts` says how
    many there are by kind, `signals` how many signals are at hand. `run_at` is when the
    promoter last ran.
    """

    is_on: bool
    items: tuple[LearnedItem, ...]
    counts: Mapping[str, int]
    signals: Mapping[str, int]
    run_at: datetime | None


def learning_stats(reader: Reader) -> LearningStats:
    """Return what was learned and is applied to a reader's searches."""
    bases = reader.searchable
    items = (
        LearnedItem.objects.told_within(bases)
        .exclude(state=ItemState.REMOVED)
        .select_related("layer__knowledge_base")
        if bases
        else LearnedItem.objects.none()
    )
    signals = (
        LearningSignal.objects.filter(knowledge_base_ids__contained_by=list(bases))
        if bases
        else LearningSignal.objects.none()
    )
    return LearningStats(
        is_on=settings.LEARNING_ENABLED,
        items=tuple(items[:MOST_TOLD]),
        counts=counted(items),
        signals=counted(signals),
        run_at=learning_state().run_at,
    )


def counted(rows: LearnedItemQuerySet | SignalQuerySet) -> dict[str, int]:
    """Return how many rows there are of each kind."""
    kinds = rows.order_by().values("kind").annotate(count=Count("pk"))
    return dict(kinds.values_list("kind", "count"))


def learning_state() -> LearningState:
    """Return how far the promoter has read."""
    state, _made = LearningState.objects.get_or_create(pk=1)
    return state


# --- Undoing it ----------------------------------------------------------------


def switch_item(item: LearnedItem, *, actor: User, on: bool) -> None:
    """Apply an item again, or no longer."""
    decide(item, actor, "switched on" if on else "switched off", state=on_or_off(on=on))


def on_or_off(*, on: bool) -> ItemState:
    """Return the state of an item that is on, or not."""
    return ItemState.ON if on else ItemState.OFF


def pin_item(item: LearnedItem, *, actor: User, pinned: bool) -> None:
    """Keep an item whatever the promoter finds and whatever is reset, or no longer.

    What is pinned is applied: a person vouches for it.
    """
    changes: dict[str, object] = {"is_pinned": pinned}
    if pinned:
        changes["state"] = ItemState.ON
    decide(item, actor, "pinned" if pinned else "unpinned", **changes)


@transaction.atomic
def remove_item(item: LearnedItem, *, actor: User) -> None:
    """Remove an item for good: it is not applied and never learned again.

    The same that was learned in other words, or over other lists, goes with it, as far
    as the person works on it and nobody has decided about it.
    """
    decide(item, actor, "removed", state=ItemState.REMOVED, is_pinned=False)
    others = LearnedItem.objects.administered_by(actor).forgettable()
    others = others.filter(kind=item.kind, decided_at__isnull=True)
    removed = item.subject
    same = [each.pk for each in others if removed.covers(each.subject)]
    delete_held(others.filter(pk__in=same))


def delete_held(items: LearnedItemQuerySet) -> int:
    """Delete items; returns how many.

    The rows are locked first, which asks the condition again: what somebody decided
    meanwhile stays, since a person's decision wins.
    """
    held = items.order_by("pk").select_for_update().values_list("pk", flat=True)
    went = list(held)
    LearnedItem.objects.filter(pk__in=went).delete()
    return len(went)


def restore_item(item: LearnedItem, *, actor: User) -> None:
    """Take back that an item was removed; it is switched off until somebody wants it."""
    decide(item, actor, "restored", state=ItemState.OFF)


@transaction.atomic
def decide(item: LearnedItem, actor: User, verb: str, **changes: object) -> None:
    """Write what a person decided about an item, with its audit entry."""
    held = LearnedItem.objects.select_for_update().filter(pk=item.pk).first()
    if held is None:
        raise LearningError(
            _("This is not there any more: the promoter or a reset has taken it away.")
        )
    is_removed = held.state == ItemState.REMOVED
    if is_removed and verb != "restored":
        raise LearningError(_("This was removed for good. Take it back first."))
    for name, value in changes.items():
        setattr(held, name, value)
    held.decided_by, held.decided_at = actor, timezone.now()
    held.save(update_fields=[*changes, "decided_by", "decided_at"])
    record(actor, verb, held, kind=held.kind, origin=held.origin)
    item.refresh_from_db()


@transaction.atomic
def reset_learning(*, actor: User, layer: Layer | None = None) -> int:
    """Clear what was learned, of one layer or all of it; returns how many items went.

    A layer's reset keeps the history and does not reach what is stored without a layer:
    what there is evidence enough for is learned again at the next run. A reset of
    everything takes the history too, so that nothing seen before it teaches any more
    (S1-LRN-08). What a person pinned or removed for good stays as decided in both.
    """
    state = LearningState.objects.select_for_update().get(pk=learning_state().pk)
    items = LearnedItem.objects.forgettable()
    if layer is not None:
        items = items.filter(layer=layer)
    went = delete_held(items)
    if layer is not None:
        record(actor, "reset learning", layer, items=went)
        return went
    LearningSignal.objects.all().delete()
    state.since = timezone.now()
    state.outcome = {}
    state.save()
    record(actor, "reset learning", state, items=went)
    return went


# --- What comes from elsewhere -------------------------------------------------


def imported_synonym(
    word: str,
    synonym: str,
    *,
    language: str,
    layer: Layer | None,
    knowledge_base: KnowledgeBase,
    usage_count: int = 0,
) -> LearnedItem:
    """Return an unsaved synonym that an earlier product learned.

    Its rule was a looser one: it is told, not applied, and the next run of the promoter
    deletes it unless a person pins it (S1-LRN-06).
    """
    word, synonym = scrub(word), scrub(synonym)
    key = key_of(word.casefold(), language)
    scope = Scope(
        layer.pk if layer is not None else None, frozenset({knowledge_base.pk})
    )
    return LearnedItem(
        kind=Lesson.SYNONYM,
        key=key,
        term=word,
        value=[synonym],
        layer=layer,
        knowledge_base_ids=[knowledge_base.pk],
        origin=Source.IMPORTED,
        rule=0,
        usage_count=usage_count,
        digest=identity(Lesson.SYNONYM, key, [synonym], scope),
    )
