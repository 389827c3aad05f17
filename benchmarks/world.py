"""A synthetic corpus of any size, loaded by COPY, for measuring search.

Twenty knowledge bases, each half as large as the one before, at least one passage each.
Each has topics of its own. A vector lies around its topic with the spread of a few
latent directions, as embeddings of real texts do, and a little noise in all. Texts are
words of a Zipf vocabulary, most of them from the whole and some from the topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from pgvector.psycopg import register_vector

from knowledge.codes import stored_codes
from knowledge.models import EmbeddingSpace, KnowledgeBase, Layer, Passage
from knowledge.models.vectors import SpaceState
from knowledge.terms import TERMS_VERSION, index_terms, stem_lexeme

Floats = NDArray[np.float32]

KNOWLEDGE_BASES = 20
DIMENSION = 384
LATENT = 24
VOCABULARY = 50_000
WORDS_EACH = 130
PASSAGES_EACH_SOURCE = 50
BATCH = 2_000
MODEL = "synthetic"

# Loading is quicker without these; they are made again at the end.
INDEXES = ("passage_search_vector", "passage_codes", "passage_meta")


@dataclass(frozen=True, slots=True)
class World:
    """One loaded corpus, and what queries are drawn from."""

    passages: int
    first_passage: int
    space: EmbeddingSpace
    knowledge_bases: tuple[int, ...]
    sizes: tuple[int, ...]

    def subset(self, share: float) -> tuple[int, ...]:
        """Return the knowledge bases that hold `share` of all rows, as near as can be.

        The largest that still fits is taken first, so that few are needed.
        """
        left = round(self.passages * share)
        chosen = []
        for pk, size in zip(self.knowledge_bases, self.sizes, strict=True):
            if size <= left:
                chosen.append(pk)
                left -= size
        return tuple(chosen)

    def passages_of(self, knowledge_base: int) -> tuple[int, int]:
        """Return the first and the last passage id of a knowledge base."""
        place = self.knowledge_bases.index(knowledge_base)
        first = self.first_passage + sum(self.sizes[:place])
        return first, first + self.sizes[place] - 1


def sizes_of(passages: int) -> tuple[int, ...]:
    """Return how many passages each knowledge base holds."""
    sizes = [max(1, passages >> (step + 1)) for step in range(KNOWLEDGE_BASES)]
    sizes[0] += passages - sum(sizes)
    return tuple(sizes)


def unit(vectors: Floats) -> Floats:
    """Return the rows at unit length."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / lengths).astype(np.float32)


class Topics:
    """The topics of the world: where their vectors lie and which words they prefer."""

    def __init__(self, sizes: Sequence[int], seed: int) -> None:
        random = np.random.default_rng(seed)
        counts = [max(1, min(100, size // 100)) for size in sizes]
        self.first = np.concatenate([[0], np.cumsum(counts)])
        total = int(self.first[-1])
        # Topics of one knowledge base lie nearer to each other than to the others'.
        themes = unit(random.normal(size=(len(sizes), DIMENSION)).astype(np.float32))
        owners = np.repeat(np.arange(len(sizes)), counts)
        own = unit(random.normal(size=(total, DIMENSION)).astype(np.float32))
        self.centres = unit(themes[owners] + own)
        self.directions = random.normal(size=(LATENT, DIMENSION)).astype(np.float32)
        self.directions /= np.sqrt(DIMENSION * LATENT)
        self.words = random.integers(200, VOCABULARY, size=(total, 60))
        self.vocabulary = make_vocabulary(random)
        shares = 1 / np.arange(1, VOCABULARY + 1)
        self.cumulated = np.cumsum(shares / shares.sum())

    def draw(self, random: np.random.Generator, owner: int, count: int) -> NDArray[Any]:
        """Return topics of one knowledge base for `count` passages."""
        return random.integers(self.first[owner], self.first[owner + 1], size=count)

    def vectors(self, random: np.random.Generator, topics: NDArray[Any]) -> Floats:
        """Return a unit vector around each topic."""
        latent = random.normal(size=(len(topics), LATENT)).astype(np.float32)
        noise = random.normal(size=(len(topics), DIMENSION)).astype(np.float32)
        spread = 0.9 * latent @ self.directions + 0.15 * noise / np.sqrt(DIMENSION)
        return unit(self.centres[topics] + spread)

    def zipf(self, random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return word numbers; the lower, the more frequent."""
        return np.searchsorted(self.cumulated, random.random(size=shape))

    def texts(self, random: np.random.Generator, topics: NDArray[Any]) -> list[str]:
        """Return a text for each topic given."""
        shape = (len(topics), WORDS_EACH)
        common = self.zipf(random, shape)
        columns = random.integers(0, self.words.shape[1], size=shape)
        topical = self.words[topics[:, None], columns]
        chosen = np.where(random.random(size=shape) < 0.2, topical, common)
        return [" ".join(self.vocabulary[row]) for row in chosen]


def make_vocabulary(random: np.random.Generator) -> NDArray[Any]:
    """Return distinct words of syllables, the short ones first as in a language."""
    syllables = [c + v for c in "bcdfghklmnprstvz" for v in "aeiouy"]
    made: dict[str, None] = {}
    length = 1
    while len(made) < VOCABULARY:
        draws = random.integers(0, len(syllables), size=(VOCABULARY, length))
        for draw in draws[: len(syllables) ** length]:
            made.setdefault("".join(syllables[number] for number in draw))
        length += 1
    return np.array(list(made)[:VOCABULARY])


def load(passages: int, seed: int) -> World:
    """Fill an empty, migrated database with a world of `passages` passages."""
    sizes = sizes_of(passages)
    topics = Topics(sizes, seed)
    space = EmbeddingSpace.objects.create(
        fingerprint=sha256(f"{MODEL} {seed}".encode()).hexdigest(),
        model_id=MODEL,
        dimension=DIMENSION,
        chunker_version="1",
        context_version="1",
        state=SpaceState.ACTIVE,
    )
    bases = [
        KnowledgeBase.objects.create(name=f"Base {number:02}", slug=f"base-{number:02}")
        for number in range(len(sizes))
    ]
    layers = [Layer.objects.create(knowledge_base=base, name="main") for base in bases]
    with connection.cursor() as cursor:
        for name in INDEXES:
            cursor.execute(f"DROP INDEX {name}")
    rows = Rows(space, topics, np.random.default_rng(seed + 1))
    first_passage = rows.passage_id + 1
    for owner, (base, layer, size) in enumerate(zip(bases, layers, sizes, strict=True)):
        rows.load(owner, base.pk, layer.pk, size)
    rows.finish()
    return World(
        passages=passages,
        first_passage=first_passage,
        space=space,
        knowledge_bases=tuple(base.pk for base in bases),
        sizes=sizes,
    )


def next_id(table: str) -> int:
    """Take the next id of a table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [f"knowledge_{table}"]
        )
        return int(cursor.fetchone()[0])


class Rows:
    """Writes sources, documents, passages and vectors by COPY, with ids of its own."""

    def __init__(
        self, space: EmbeddingSpace, topics: Topics, random: np.random.Generator
    ) -> None:
        self.space = space
        self.topics = topics
        self.random = random
        # A document has the id of its source.
        self.source_id = max(next_id("source"), next_id("document"))
        self.passage_id = next_id("passage")
        self.now = datetime.now(UTC)

    def load(self, owner: int, base: int, layer: int, size: int) -> None:
        """Write one knowledge base of `size` passages."""
        for first in range(0, size, BATCH):
            count = min(BATCH, size - first)
            topics = self.topics.draw(self.random, owner, count)
            spans = [
                (at, min(at + PASSAGES_EACH_SOURCE, count))
                for at in range(0, count, PASSAGES_EACH_SOURCE)
            ]
            sources = [self.source_id + 1 + n for n in range(len(spans))]
            self.copy_sources(base, layer, list(zip(sources, spans, strict=True)))
            holder = np.repeat(sources, [end - start for start, end in spans])
            self.copy_passages(base, layer, holder, topics)
            self.source_id += len(spans)
            self.passage_id += count

    def copy_sources(
        self, base: int, layer: int, rows: Sequence[tuple[int, tuple[int, int]]]
    ) -> None:
        """Write sources, each with its one document of the same id."""
        copy(
            "COPY knowledge_source (id, public_id, knowledge_base_id, layer_id, kind, "
            "purpose, title, path, content_sha256, state, state_reason, enabled, "
            "generation, passage_count, terms_version, created_at) FROM STDIN",
            (
                (
                    pk,
                    f"00000000-0000-4000-8000-{pk:012x}",
                    base,
                    layer,
                    "document",
                    "documentation",
                    f"Source {pk}",
                    f"folder/source-{pk}.md",
                    f"{pk:064x}",
                    "ready",
                    "",
                    True,
                    1,
                    end - start,
                    TERMS_VERSION,
                    self.now,
                )
                for pk, (start, end) in rows
            ),
        )
        copy(
            "COPY knowledge_document (id, number, source_id, knowledge_base_id, title, "
            "kind, text, text_sha256, pages, blocks, ocr_spans, front_matter, "
            "properties, report, names, date_source, supersedes, is_current, "
            "generation, created_at) FROM STDIN",
            (
                (
                    pk, 10**9 + pk, pk, base, f"Source {pk}", "markdown", "",
                    f"{pk:064x}", "[]", "[]", "[]", "{}", "{}", "[]", [], "", "", True, 1,
                    self.now,
                )
                for pk, _span in rows
            ),
        )  # fmt: skip

    def copy_passages(
        self, base: int, layer: int, holder: NDArray[Any], topics: NDArray[Any]
    ) -> None:
        """Write passages, and then their vectors."""
        texts = self.topics.texts(self.random, topics)
        numbers = self.random.integers(0, 1000, size=len(texts))
        first = self.passage_id + 1
        copy(
            "COPY knowledge_passage (id, knowledge_base_id, layer_id, source_id, "
            'document_id, ordinal, start, "end", text, context, clause_path, '
            "line_start, line_end, text_origin, cut_start, cut_end, metadata, "
            "embedded_sha256, terms, codes) FROM STDIN",
            self.passage_rows(base, layer, holder, texts, numbers),
        )
        vectors = self.topics.vectors(self.random, topics)
        copy(
            "COPY knowledge_passagevector (space_id, passage_id, knowledge_base_id, "
            "dimension, embedded_sha256, embedding) FROM STDIN (FORMAT BINARY)",
            (
                (self.space.pk, first + n, base, DIMENSION, f"{first + n:064x}", vector)
                for n, vector in enumerate(vectors)
            ),
            types=("int8", "int8", "int8", "int4", "varchar", "vector"),
        )

    def passage_rows(
        self,
        base: int,
        layer: int,
        holder: NDArray[Any],
        texts: Sequence[str],
        numbers: NDArray[Any],
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows; one in ten names a code.

        The words themselves already have the form in which ingest indexes them.
        """
        stem_of = partial(stem_lexeme, "en")
        for n, (source, words, number) in enumerate(
            zip(holder, texts, numbers, strict=True)
        ):
            pk = self.passage_id + 1 + n
            code = f"QT-{number:03}" if n % 10 == 0 else ""
            text = f"{words} {code}".strip()
            stems = " ".join(map(stem_of, words.split()))
            terms = f"{words} {stems} {index_terms('', code)}"
            yield (
                pk, base, layer, int(source), int(source), n, 0, len(text), text, "",
                "", 1, 1, "text", False, False, json.dumps({"page": str(n % 7)}),
                f"{pk:064x}", terms, stored_codes(code),
            )  # fmt: skip

    def finish(self) -> None:
        """Make the indexes again, move the sequences on and tell the planner."""
        with connection.schema_editor() as editor:
            for index in Passage._meta.indexes:
                if index.name in INDEXES:
                    editor.add_index(Passage, index)
        last = {
            "source": self.source_id,
            "document": self.source_id,
            "passage": self.passage_id,
        }
        with connection.cursor() as cursor:
            for table, number in last.items():
                cursor.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)",
                    [f"knowledge_{table}", number],
                )
            cursor.execute("VACUUM ANALYZE")


def copy(
    statement: str, rows: Iterator[Any], *, types: Sequence[str] | None = None
) -> None:
    """Send rows to one COPY."""
    connection.ensure_connection()
    if types is not None:
        # A cursor takes over what its connection knows when it is made.
        register_vector(connection.connection)
    with connection.cursor() as cursor, cursor.copy(statement) as sink:
        if types is not None:
            sink.set_types(types)
        for row in rows:
            sink.write_row(row)
