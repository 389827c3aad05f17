"""Results of recent searches, in this process's own memory (S1-IDX-02).

A result is kept under everything that made it: the query, the resolved list of
knowledge bases with the version of each, the layers, filters, counts and settings. So a
changed grant, switch, setting or document leads to another key at the next request,
and nobody has to remember what to throw away. Passage text that a reader may no longer
see is never asked for again and goes within minutes.
"""

import hashlib
import threading
from dataclasses import dataclass, replace
from datetime import timedelta
from time import time

from cachetools import TLRUCache
from django.db import connection
from django.utils import timezone
from django.utils.translation import get_language

from retrieval.embedding import QueryVector
from retrieval.engine import Found
from retrieval.reach import Reach
from retrieval.results import Label, SearchResult
from retrieval.tuning import Tuning

LIFE = timedelta(minutes=10)
MOST_KEPT = 1000
# A result that came about for want of something is not kept beyond the want.
PASSING = frozenset({Label.DEGRADED, Label.KEYWORD_ONLY})


@dataclass(frozen=True, slots=True)
class Kept:
    """A result and the way to it, and when it has to be made anew (seconds, UTC)."""

    result: SearchResult
    found: Found
    until: float = 0.0


def end_of(key: str, kept: Kept, now: float) -> float:
    """Return until when a result is kept."""
    return kept.until


kept_results: TLRUCache[str, Kept] = TLRUCache(MOST_KEPT, end_of, timer=time)
kept_lock = threading.Lock()


def key_of(
    reach: Reach,
    text: str,
    *,
    count: int,
    tuning: Tuning,
    given: QueryVector | None,
    space_id: int | None,
    routes: bool,
    calibration: int,
    part: str = "",
) -> str:
    """Return the key of a search, a SHA-256 in hex; sentences are in one language.

    `part` names what is kept where it is not the whole result.
    """
    versions = sorted((pk, size.version) for pk, size in reach.sizes.items())
    parts = (
        text,
        versions,
        # Whatever else narrows it.
        replace(reach, sizes={}),
        count,
        tuning,
        None if given is None else given.vector,
        space_id,
        routes,
        calibration,
        part,
        get_language(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def recall(key: str) -> Kept | None:
    """Return what is kept under a key.

    Within a transaction nothing is kept or recalled: its changes are not yet anybody
    else's, and may never be.
    """
    if connection.in_atomic_block:
        return None
    with kept_lock:
        kept: Kept | None = kept_results.get(key)
    return kept


def keep(key: str, reach: Reach, kept: Kept, *, keeps_vector: bool = False) -> None:
    """Keep a result until ten minutes have gone or a source in reach expires.

    The query's vector is as large as everything else; it is kept where it is needed.
    """
    if connection.in_atomic_block or PASSING.intersection(kept.result.labels):
        return
    ends = [size.valid_until for size in reach.sizes.values() if size.valid_until]
    until = min([timezone.now() + LIFE, *ends])
    vector = kept.found.vector if keeps_vector else None
    plain = replace(
        kept, found=replace(kept.found, vector=vector), until=until.timestamp()
    )
    with kept_lock:
        kept_results[key] = plain


def forget_all() -> None:
    """Keep nothing."""
    with kept_lock:
        kept_results.clear()
