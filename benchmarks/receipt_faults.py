"""Receipts under faults: each must hold over two changes of the key, and no flipped bit
may pass (row F12 of the reliability list)."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from retrieval.proof import check_file, read_keys

# Whose files have every bit flipped, one at a time.
FLIPPED = 100
ROTATIONS = 2
# Of so many receipts, one has words that were removed.
PURGED = 10


def receipts(draw: random.Random, number: int) -> dict[str, int]:
    """Issue receipts, check them all, and flip the bits of some."""
    from retrieval.models import Receipt
    from retrieval.opening import check, check_chain, export
    from retrieval.signing import published_keys

    last = issue(draw, number)
    issued = Receipt.objects.filter(number__gt=last)
    broken = sum(not check(row).is_intact for row in issued.iterator())
    broken += len(list(check_chain()))
    chosen = draw.sample(range(last + 1, last + number + 1), min(FLIPPED, number))
    files = [export(row) for row in issued.filter(number__in=chosen)]
    flips, missed = flip_all(files, published_keys())
    return {
        "receipts": number,
        "rotations": ROTATIONS,
        "broken": broken,
        "flips": flips,
        "missed": missed,
    }


def issue(draw: random.Random, number: int) -> int:
    """Issue receipts, and return the number of the one before the first of them."""
    from knowledge.permissions import Access, Reader, grant
    from knowledge.purging import purge_source
    from retrieval.models import Receipt
    from retrieval.receipts import issue_receipt
    from retrieval.signing import rotate_key
    from tests.factories import (
        KnowledgeBaseFactory,
        LayerFactory,
        UserFactory,
        ready_source,
    )
    from tests.retrieval.receipts import span_of

    newest = Receipt.objects.order_by("-number").first()
    layer = LayerFactory(knowledge_base=KnowledgeBaseFactory())
    person = UserFactory(username=f"reader of receipts {draw.random()}")
    grant(layer.knowledge_base, [Access.SEARCH], to=person, actor=None)
    kept, gone = (
        ready_source(f"{word} costs {draw.randrange(900)} € a day. 🚢", layer=layer)
        for word in ("A berth", "A room")
    )
    passages = [source.passages.get() for source in (kept, gone)]
    reader = Reader(person.pk)
    changes = {number * part // (ROTATIONS + 1) for part in range(1, ROTATIONS + 1)}
    for index in range(number):
        passage = passages[index % PURGED == 0]
        issue_receipt(
            reader,
            kind="draft",
            read=[span_of(passage, quotes=((0, 7),))],
            draft=f'"{passage.text[:7]}" [S1], said for the {index}th time.',
        )
        if index in changes:
            rotate_key()
    purge_source(gone, actor=None)
    return newest.number if newest is not None else 0


def flip_all(files: list[bytes], keys: bytes) -> tuple[int, int]:
    """Flip every bit of each file; return how many that were, and how many passed."""
    # A copy of this process would share its connection to the database.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        missed = pool.map(passing_flips, files, [keys] * len(files))
        return sum(8 * len(file) for file in files), sum(missed)


def passing_flips(file: bytes, keys: bytes) -> int:
    """Return how many of a file's flipped bits leave a receipt that holds."""
    trusted = read_keys(keys)
    return sum(check_file(each, trusted).is_intact for each in flips_of(file))


def flips_of(file: bytes) -> Iterator[bytes]:
    """Yield a file once for each of its bits, with that bit flipped."""
    for bit in range(8 * len(file)):
        flipped = bytearray(file)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)
