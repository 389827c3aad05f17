"""System checks: fail at start, with the sentence that fixes it.

Every id is explained in docs/settings.md.
"""

import re
from importlib.metadata import version
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection

from retrieval.tuning import contradictions, from_environment

# Below these, a published hole or a corrupting bug is open.
FLOORS = {
    "Django": (5, 2, 19),
    "urllib3": (2, 7, 0),
    "pypdf": (7, 1, 0),
    "lxml": (6, 0, 0),
}
PGVECTOR_FLOOR = (0, 8, 4)


def numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, such as (5, 2, 19)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def check_versions(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse libraries below their floor."""
    return [
        checks.Error(
            f"{name} {version(name)} has known holes; "
            f"{'.'.join(map(str, floor))} is the least.",
            hint="Run make run again, which installs requirements.txt.",
            id="strata.E001",
        )
        for name, floor in FLOORS.items()
        if numbers(version(name)) < floor
    ]


def check_queue(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse queue settings under which a task runs twice or nowhere."""
    queue = settings.Q_CLUSTER
    found: list[checks.CheckMessage] = []
    if not queue.get("timeout"):
        found.append(
            checks.Error(
                "The queue has no timeout.",
                hint="Set Q_CLUSTER['timeout'] in seconds.",
                id="strata.E002",
            )
        )
    elif queue["retry"] < 3 * queue["timeout"]:
        found.append(
            checks.Error(
                "The queue's retry is less than three times its timeout, so that a "
                "slow task would run twice.",
                hint="Raise Q_CLUSTER['retry'].",
                id="strata.E003",
            )
        )
    if queue.get("queue_limit", 0) > queue["workers"]:
        found.append(
            checks.Error(
                "The queue hands out more tasks than it has workers; their waiting "
                "counts against retry.",
                hint="Set Q_CLUSTER['queue_limit'] to the number of workers.",
                id="strata.E004",
            )
        )
    if queue.get("orm") != "default" or queue.get("sync"):
        found.append(
            checks.Error(
                "The queue must live in the default database, so that a task commits "
                "or rolls back with its data.",
                hint="Set Q_CLUSTER['orm'] to 'default' and leave out sync.",
                id="strata.E005",
            )
        )
    return found


def check_search(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse search settings that contradict each other."""
    found: list[checks.CheckMessage] = [
        checks.Error(
            sentence,
            hint="These are the environment's settings; see docs/settings.md, Search.",
            id="strata.E006",
        )
        for sentence in contradictions(from_environment())
    ]
    if settings.STRATA_INDEX_FROM > settings.STRATA_EXACT_LIMIT > 0:
        found.append(
            checks.Warning(
                "STRATA_INDEX_FROM is above STRATA_EXACT_LIMIT: a reader of a large "
                "knowledge base may wait for an exact scan beyond the limit.",
                hint="Lower STRATA_INDEX_FROM.",
                id="strata.W001",
            )
        )
    return found


def check_database(
    *, databases: Any = None, **_kwargs: Any
) -> list[checks.CheckMessage]:
    """Refuse a pgvector with known index bugs; say where there is none."""
    if not databases:
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
            )
            row = cursor.fetchone()
    except DatabaseError as error:
        return [
            checks.Error(
                f"The database does not answer: {error}",
                hint="Start it, or correct DATABASE_URL.",
                id="strata.E007",
            )
        ]
    if row is None:
        return [
            checks.Info(
                "The database has no pgvector: likeness of letters takes the place of "
                "meaning where it has pg_trgm, and only words and codes count "
                "elsewhere. Vectors in JSON that the application compares are no way "
                "out: they do not scale to hundreds of thousands of passages.",
                hint="Install pgvector 0.8.4 or newer and migrate again.",
                id="strata.I001",
            )
        ]
    if numbers(row[0]) < PGVECTOR_FLOOR:
        return [
            checks.Error(
                f"pgvector {row[0]} corrupts its indexes; 0.8.4 is the least.",
                hint="Install a newer one and run ALTER EXTENSION vector UPDATE.",
                id="strata.E008",
            )
        ]
    return []


def register_all() -> None:
    """Register every check."""
    checks.register(check_versions)
    checks.register(check_queue)
    checks.register(check_search)
    checks.register(check_database, checks.Tags.database)
