"""What one search may find, as a condition that each of its queries holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from knowledge.models import Passage
from knowledge.permissions import Reader, Scope
from retrieval.sizes import Size, sizes_of

Filters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of a statement with its parameters, in order."""

    text: str
    params: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """The passages that one search may find.

    `layer_ids` None is every layer of the reader's knowledge bases; an empty one is
    none. `metadata` is matched exactly, as strings (S1-ING-04). `sizes` holds how many
    passages each knowledge base has; a hint for choosing the quickest way, no more.
    `memory` is the reader whose person and conversation decide, where what is
    remembered about them is searched.
    """

    knowledge_base_ids: frozenset[int]
    layer_ids: frozenset[int] | None
    metadata: Filters
    sizes: Mapping[int, Size]
    memory: Reader | None = None

    @classmethod
    def of(
        cls,
        reader: Reader,
        layer_ids: frozenset[int] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> "Reach":
        """Return a reader's reach within the filters."""
        bases = reader.searchable
        is_empty = not bases or layer_ids == frozenset()
        filters = tuple(sorted((metadata or {}).items()))
        sizes = {} if is_empty else sizes_of(bases)
        memory = reader if reader.recalls else None
        return cls(bases, layer_ids, filters, sizes, memory)

    def within(self, layer_ids: frozenset[int]) -> "Reach":
        """Return the part of it in some layers."""
        if self.layer_ids is not None:
            layer_ids &= self.layer_ids
        return replace(self, layer_ids=layer_ids)

    @property
    def parts(self) -> dict[int, "Reach"]:
        """The part of it in each knowledge base, by id."""
        return {
            pk: replace(
                self, knowledge_base_ids=frozenset({pk}), sizes={pk: self.sizes[pk]}
            )
            for pk in sorted(self.knowledge_base_ids)
        }

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be found, so that no query over passages may run."""
        return not self.knowledge_base_ids or self.layer_ids == frozenset()

    @property
    def rows(self) -> int:
        """About how many passages it holds; the metadata filter is not counted."""
        return sum(size.live(self.layer_ids) for size in self.sizes.values())

    @property
    def accent_free(self) -> frozenset[int]:
        """Its layers that match without accents (R14)."""
        layers = frozenset().union(*(size.accent_free for size in self.sizes.values()))
        return layers if self.layer_ids is None else layers & self.layer_ids

    @property
    def visible(self) -> Sql:
        """What stands after FROM in a query for its passages; ends in a condition.

        More conditions on `knowledge_passage` may be added to it with AND.
        """
        return visible_sql(
            self.knowledge_base_ids, self.layer_ids, self.metadata, self.memory
        )

    @property
    def hidden(self) -> Sql:
        """What stands after FROM in a query for the passages that are left out."""
        return hidden_sql(self.knowledge_base_ids, self.memory)


@lru_cache(maxsize=256)
def visible_sql(
    bases: frozenset[int],
    layer_ids: frozenset[int] | None,
    metadata: Filters,
    memory: Reader | None,
) -> Sql:
    """Return the conditions of `visible_to` and of the filters, as the ORM writes them.

    They depend on nothing but the ids and values given; writing them anew for each
    search would cost more than many a search.
    """
    passages = Passage.objects.visible_to(reader_of(bases, memory))
    if layer_ids is not None:
        passages = passages.filter(layer_id__in=layer_ids)
    if metadata:
        passages = passages.filter(metadata__contains=dict(metadata))
    return after_from(passages)


@lru_cache(maxsize=256)
def hidden_sql(bases: frozenset[int], memory: Reader | None) -> Sql:
    """Return the conditions of `hidden_from`."""
    return after_from(Passage.objects.hidden_from(reader_of(bases, memory)))


def reader_of(bases: frozenset[int], memory: Reader | None) -> Reader:
    """Return a reader whose knowledge bases are resolved already."""
    reader = Reader(user_id=None) if memory is None else replace(memory)
    vars(reader)["scope"] = Scope(listed=bases, searchable=bases)
    return reader


def after_from(rows: QuerySet[Passage]) -> Sql:
    """Return what the ORM writes after FROM for a query over one table."""
    text, params = rows.order_by().values("pk").query.sql_with_params()
    return Sql(text.partition(" FROM ")[2], tuple(params))


def rows_of(sql: Sql, *, settings_before: Iterable[str] = ()) -> list[tuple[Any, ...]]:
    """Run one statement, in the same round trip after settings that hold for it alone.

    PostgreSQL takes several statements that come at once as one transaction, at whose
    end the settings are as before.
    """
    before = "".join(f"SET LOCAL {setting};" for setting in settings_before)
    with connection.cursor() as cursor:
        cursor.execute(before + sql.text, sql.params)
        while cursor.description is None and cursor.nextset():
            pass
        return list(cursor.fetchall())
