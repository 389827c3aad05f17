"""`make bench-visibility`: pages of access in a small and in a large installation.

Each page is asked for in a world of 100 readers and 10 knowledge bases and in one of
10,000 and 1,000, on a database of this run's own. A page that stays fast costs in the
large world what it costs in the small one, or little more.

Prints milliseconds (medians) and their ratio for each page, and one JSON line last.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.throwaway import installation

if TYPE_CHECKING:
    from django.test import Client

# Readers and knowledge bases.
SMALL, LARGE = (100, 10), (10_000, 1000)
IN_A_GROUP, GROUPS_OF_ONE = 50, 3
# Rows of each knowledge base: groups and people granted, people denied; and on how many
# of a hundred everyone is.
GRANTED_GROUPS, GRANTED_PEOPLE, DENIED_PEOPLE, OPEN_TO_ALL = 20, 50, 5, 2
ROUNDS = 9
# What the bulk page is asked to do in both worlds.
CHOSEN_PEOPLE, CHOSEN_BASES = 50, 10
SEED = 11
ADMIN = "/admin/knowledge"
HOST = "127.0.0.1"


def main() -> None:
    """Measure both worlds and print what they cost."""
    from django.core.management import call_command

    with installation(durable=False):
        call_command("collectstatic", interactive=False, verbosity=0)
        figures = [measured(*size) for size in (SMALL, LARGE)]
        most = apply_most()
    small, large = figures
    print(f"{'':20} {'small ms':>9} {'large ms':>9} {'ratio':>6}")
    rows = {}
    for name, cost in small.items():
        ratio = round(large[name] / cost, 2)
        rows[name] = {"small_ms": cost, "large_ms": large[name], "ratio": ratio}
        print(f"{name:20} {cost:9.1f} {large[name]:9.1f} {ratio:6.2f}")
    print(f"{most['pairs']} pairs granted in one act: {most['seconds']} s")
    print(json.dumps({"pages": rows, "most": most}))


def say(sentence: str) -> None:
    """Print one line of progress."""
    print(sentence, file=sys.stderr, flush=True)


# --- The worlds ----------------------------------------------------------------


def measured(readers: int, bases: int) -> dict[str, float]:
    """Build one world beside what is there, and time each page in it."""
    say(f"{readers} readers and {bases} knowledge bases")
    build(readers, bases)
    return {name: median(ask) for name, ask in pages().items()}


def build(readers: int, bases: int) -> None:
    """Replace the world by one of this size."""
    from django.contrib.auth.models import Group, Permission
    from django.db import connection

    from knowledge.models import (
        KnowledgeBase,
        KnowledgeBaseGroupAccess,
        KnowledgeBaseUserAccess,
        User,
    )
    from knowledge.permissions import Access, everyone
    from tests.factories import ready_source

    draw = random.Random(SEED)
    KnowledgeBase.objects.all().delete()
    User.objects.all().delete()
    User.objects.create_superuser("root")
    people = User.objects.bulk_create(
        User(username=f"reader{number:05}", first_name="An", last_name=f"Bui {number}")
        for number in range(readers)
    )
    groups = Group.objects.bulk_create(
        Group(name=f"{readers} readers, group {number}")
        for number in range(max(GRANTED_GROUPS, readers // IN_A_GROUP))
    )
    User.groups.through.objects.bulk_create(
        User.groups.through(user=person, group=group)
        for person in people
        for group in draw.sample(groups, GROUPS_OF_ONE)
    )
    shelves = KnowledgeBase.objects.bulk_create(
        KnowledgeBase(name=f"Shelf {number:04}", slug=f"shelf-{number:04}")
        for number in range(bases)
    )
    right = {
        Access(each.codename): each
        for each in Permission.objects.filter(codename__in=Access.values)
    }
    reading = (right[Access.LIST], right[Access.SEARCH])
    all_people = everyone()
    KnowledgeBaseGroupAccess.objects.bulk_create(
        KnowledgeBaseGroupAccess(group=group, content_object=shelf, permission=each)
        for number, shelf in enumerate(shelves)
        for group in [
            *draw.sample(groups, GRANTED_GROUPS),
            *([all_people] if number % 100 < OPEN_TO_ALL else []),
        ]
        for each in reading
    )
    chosen = {
        shelf.pk: draw.sample(people, GRANTED_PEOPLE + DENIED_PEOPLE)
        for shelf in shelves
    }
    KnowledgeBaseUserAccess.objects.bulk_create(
        KnowledgeBaseUserAccess(user=person, content_object=shelf, permission=each)
        for shelf in shelves
        for place, person in enumerate(chosen[shelf.pk])
        for each in (reading if place < GRANTED_PEOPLE else (right[Access.DENY],))
    )
    # The first is open to all: the longest list of people there is.
    layer = shelves[0].layers.create(name="main")
    ready_source("The fee is due on Monday.", layer=layer)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


# --- The pages -----------------------------------------------------------------


def pages() -> dict[str, Callable[[], Any]]:
    """Return each page by name, as a call that asks for it."""
    from knowledge.models import KnowledgeBase, Source, User
    from knowledge.permissions import Reader

    client = signed_in()
    # The first ones are open to everyone.
    open_base = KnowledgeBase.objects.get(name="Shelf 0000")
    base = KnowledgeBase.objects.get(name=f"Shelf {OPEN_TO_ALL:04}")
    source = Source.objects.get()
    people = list(User.objects.order_by("pk").values_list("pk", flat=True)[1:])
    bulk = f"{ADMIN}/knowledgebase/bulk-access/"
    choice = {
        "kind": "people",
        "act": "search",
        "people-chosen": ",".join(map(str, people[:CHOSEN_PEOPLE])),
        "bases-chosen": ",".join(
            str(pk)
            for pk in KnowledgeBase.objects.order_by("pk").values_list("pk", flat=True)[
                :CHOSEN_BASES
            ]
        ),
    }

    def get(address: str) -> Callable[[], Any]:
        return lambda: expect(client.get(address), 200)

    def post(**fields: str) -> Callable[[], Any]:
        return lambda: expect(client.post(bulk, fields), 200)

    def done() -> None:
        with undone():
            expect(client.post(bulk, {**choice, "do": "apply"}), 302)

    finders = f"{ADMIN}/knowledgebase/{open_base.pk}/finders/"
    return {
        "bulk": get(bulk),
        "bulk search": post(**{"do": "search", "people-q": "bui 9", "bases-q": "9"}),
        "bulk last page": post(do="people-page-1000000"),
        "bulk preview": post(do="preview", **choice),
        "bulk act": done,
        "finders, everyone": get(finders),
        "finders, last page": get(f"{finders}?page=1000000"),
        "finders, by groups": get(f"{ADMIN}/knowledgebase/{base.pk}/finders/"),
        "finders, denied": get(
            f"{ADMIN}/knowledgebase/{base.pk}/finders/?show=denied&person=reader00007"
        ),
        "finders of a source": get(f"{ADMIN}/source/{source.pk}/finders/"),
        "access": get(f"{ADMIN}/knowledgebase/{base.pk}/access/"),
        "a reader's list": lambda: Reader(people[7]).searchable,
    }


def signed_in() -> Client:
    """Return the superuser's browser."""
    from django.test import Client

    from knowledge.models import User

    client = Client(headers={"host": HOST})
    client.force_login(User.objects.get(username="root"))
    return client


def expect(response: Any, status: int) -> None:
    """End where a page answers something else than it should."""
    if response.status_code != status:
        raise SystemExit(
            f"{response.wsgi_request.path} answers {response.status_code}."
        )


@contextmanager
def undone() -> Iterator[None]:
    """Take back what is done inside."""
    from django.db import transaction

    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def median(ask: Callable[[], Any]) -> float:
    """Return the median of some rounds, in milliseconds; the first is not counted."""
    ask()
    costs = []
    for _ in range(ROUNDS):
        started = perf_counter()
        ask()
        costs.append(1000 * (perf_counter() - started))
    return round(statistics.median(costs), 1)


def apply_most() -> dict[str, float]:
    """Grant as many pairs as go at once, in the large world."""
    from knowledge.granting import MOST_PAIRS, Act, Choice, apply, preview
    from knowledge.models import KnowledgeBase, User

    bases = list(KnowledgeBase.objects.order_by("pk")[:100])
    people = list(User.objects.order_by("-pk")[: MOST_PAIRS // len(bases)])
    choice = Choice(Act.SEARCH, bases, people=people)
    with undone():
        started = perf_counter()
        effect = preview(choice)
        seen = perf_counter()
        apply(choice, actor=User.objects.get(username="root"))
        ended = perf_counter()
    return {
        "pairs": effect.pairs,
        "rows": effect.written,
        "preview_seconds": round(seen - started, 2),
        "seconds": round(ended - seen, 2),
    }


if __name__ == "__main__":
    main()
