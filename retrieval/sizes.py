"""How large each knowledge base is, and what its layers and documents declare.

Asking for it anew for each search would cost more than many a search. It is kept until
the knowledge base's version rises, which every change that a search could see does, or
until a source expires. What a transaction sees of its own changes is not kept: they may
never be anybody else's.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection
from django.db.models import Min, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from knowledge.models import Document, Layer, Source
from retrieval.models import LearnedItem
from retrieval.promoting import Leads, Lesson

# Name as written -> (place in time, path) of each document that declares it.
Replacing = Mapping[str, Sequence[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class Size:
    """Passages of one knowledge base: by layer (all, visible), and when that ends.

    `accent_free` are its layers that match without accents, `routing` the patterns of
    all its layers, `leads` how often people chose which layer for a word, by the word's
    key. `replacing` holds, by each name that a document of it declares as
    replaced, the paths of those documents as (place in time, path).
    """

    version: int
    by_layer: Mapping[int, tuple[int, int]]
    valid_until: datetime | None
    accent_free: frozenset[int] = frozenset()
    routing: Mapping[int, Sequence[str]] = field(default_factory=dict)
    replacing: Replacing = field(default_factory=dict)
    leads: Leads = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All passages, hidden ones too."""
        return sum(total for total, _live in self.by_layer.values())

    def live(self, layer_ids: Collection[int] | None = None) -> int:
        """Passages of sources that are on and not expired, of all or some layers."""
        return sum(
            live
            for layer_id, (_total, live) in self.by_layer.items()
            if layer_ids is None or layer_id in layer_ids
        )


known: dict[int, Size] = {}
known_lock = threading.Lock()


def sizes_of(knowledge_base_ids: Collection[int]) -> dict[int, Size]:
    """Return the size of each knowledge base that exists."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, version FROM knowledge_knowledgebase WHERE id = ANY(%s)",
            [list(knowledge_base_ids)],
        )
        versions = dict(cursor.fetchall())
    now = timezone.now()
    with known_lock:
        sizes = {
            pk: size
            for pk, version in versions.items()
            if (size := known.get(pk)) is not None
            and size.version == version
            and (size.valid_until is None or now < size.valid_until)
        }
    missing = {pk: version for pk, version in versions.items() if pk not in sizes}
    if missing:
        counted = count(missing)
        sizes |= counted
        if not connection.in_atomic_block:
            with known_lock:
                known.update(counted)
    return sizes


def forget_sizes() -> None:
    """Keep nothing."""
    with known_lock:
        known.clear()


def count(versions: Mapping[int, int]) -> dict[int, Size]:
    """Count the passages of some knowledge bases, by their sources."""
    sources = Source.objects.filter(knowledge_base_id__in=versions)
    is_live = Q(pk__in=sources.live())
    rows = (
        sources.order_by()
        .values_list("knowledge_base_id", "layer_id")
        .annotate(
            total=Sum("passage_count"),
            live=Coalesce(Sum("passage_count", filter=is_live), 0),
            ends=Min("expires_at", filter=is_live),
        )
    )
    by_layer: dict[int, dict[int, tuple[int, int]]] = {pk: {} for pk in versions}
    ends: dict[int, list[datetime]] = {pk: [] for pk in versions}
    for pk, layer_id, total, live, end in rows:
        by_layer[pk][layer_id] = (total, live)
        if end is not None:
            ends[pk].append(end)
    accent_free: dict[int, set[int]] = {pk: set() for pk in versions}
    routing: dict[int, dict[int, Sequence[str]]] = {pk: {} for pk in versions}
    layers = Layer.objects.filter(knowledge_base_id__in=versions).values_list(
        "knowledge_base_id", "pk", "matches_without_accents", "routing_patterns"
    )
    for pk, layer_id, is_accent_free, patterns in layers:
        routing[pk][layer_id] = patterns
        if is_accent_free:
            accent_free[pk].add(layer_id)
    replacing, leads = declared_in(versions), learned_in(versions)
    return {
        pk: Size(
            version,
            by_layer[pk],
            min(ends[pk], default=None),
            frozenset(accent_free[pk]),
            routing[pk],
            replacing.get(pk, {}),
            leads.get(pk, {}),
        )
        for pk, version in versions.items()
    }


def declared_in(knowledge_base_ids: Collection[int]) -> dict[int, Replacing]:
    """Return, by knowledge base, what its live documents declare to replace.

    Declared by `supersedes` in front matter; in order of time, the newest last.
    """
    rows = (
        Document.objects.filter(
            knowledge_base_id__in=knowledge_base_ids,
            is_current=True,
            source__in=Source.objects.live(),
        )
        .exclude(supersedes="")
        .order_by("created_at", "pk")
        .values_list("knowledge_base_id", "source__path", "supersedes")
    )
    found: dict[int, dict[str, list[tuple[int, str]]]] = {}
    for place, (pk, path, written) in enumerate(rows):
        for name in written.split("\n"):
            found.setdefault(pk, {}).setdefault(name, []).append((place, path))
    return {
        pk: {name: tuple(by) for name, by in names.items()}
        for pk, names in found.items()
    }


def learned_in(knowledge_base_ids: Collection[int]) -> dict[int, Leads]:
    """Return, by knowledge base, the affinities to its layers that hold (S1-RTE-01)."""
    rows = (
        LearnedItem.objects.applied()
        .filter(kind=Lesson.AFFINITY, layer__knowledge_base_id__in=knowledge_base_ids)
        .order_by()
        .values_list("layer__knowledge_base_id", "layer_id", "key", "seen")
    )
    found: dict[int, dict[str, dict[int, int]]] = {}
    for pk, layer_id, key, seen in rows:
        if layer_id is not None:
            chosen = found.setdefault(pk, {}).setdefault(key, {})
            chosen[layer_id] = chosen.get(layer_id, 0) + seen
    return dict(found)
