"""How large each knowledge base is: what a search plans by, and nothing it answers by.

Counting anew for each search would cost more than many a search. A count is kept until
the knowledge base's version rises, which every change that a search could see does, or
until a source expires. A count that is out of date makes a search slower, not wrong.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Min, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from knowledge.models import Layer, Source


@dataclass(frozen=True, slots=True)
class Size:
    """Passages of one knowledge base: by layer (all, visible), and when that ends.

    `accent_free` are its layers that match without accents.
    """

    version: int
    by_layer: Mapping[int, tuple[int, int]]
    valid_until: datetime | None
    accent_free: frozenset[int] = frozenset()

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
        with known_lock:
            known.update(counted)
    return sizes


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
    layers = Layer.objects.filter(
        knowledge_base_id__in=versions, matches_without_accents=True
    )
    accent_free: dict[int, set[int]] = {pk: set() for pk in versions}
    for pk, layer_id in layers.values_list("knowledge_base_id", "pk"):
        accent_free[pk].add(layer_id)
    return {
        pk: Size(
            version,
            by_layer[pk],
            min(ends[pk], default=None),
            frozenset(accent_free[pk]),
        )
        for pk, version in versions.items()
    }
