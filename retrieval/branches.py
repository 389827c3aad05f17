"""The three branches: each one query over what the reader may see, and over that only.

Every query here holds the conditions of `Passage.objects.visible_to(reader)`; knowledge
bases, switch, expiry, layers and metadata are never a step after the ranking. Nothing
is weighed by statistics that count a row which the reader may not see.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from django.conf import settings

from knowledge.codes import PART
from knowledge.indexes import compared_as, indexed, lists_of
from knowledge.models import EmbeddingSpace
from knowledge.terms import KeywordQuery
from retrieval.fusion import Candidate
from retrieval.reach import Reach, Sql, rows_of
from retrieval.standing import standing

# Of the passages that hold every word, or a code, of a query, so many are put in order.
MOST_EXACT = 500
MOST_CODED = 2000
MOST_PARTS = 20
# In the relaxed pass so many words are looked up, so many passages for each, and so
# many of those are looked at for all words.
MOST_WORDS = 32
MOST_POSTINGS = 1000
MOST_RELAXED = 200
# What another form of a word is worth beside the word itself, and what two syllables of
# a Vietnamese word, or two words side by side, are worth beside a word of their rarity.
OTHER_FORM = 0.7
COMPOUND = 0.5
NEIGHBOURS = 0.3
# Where all words are held and none is weighed by its rarity, the same is worth so often
# as much: what stands together is rarer than its words.
TOGETHER = 4
# How far a long passage is held back, 0 to 1.
BY_LENGTH = 0.5
PI_SQUARED_SIXTH = 1.6449340668482264
# A reach of less than this share of all passages is looked up by knowledge base and word
# together; in a larger one the words alone narrow enough. Measured on a million passages
# (ms, both ways): 369 and 202 for all, 240 and 304 for three quarters, 110 and 246 for a
# half, 59 and 331 for a tenth, 25 and 243 for a hundredth.
KEYED_SHARE = 0.9
# Candidates that an index search holds ready: at least EF_SEARCH, and one for so many
# rows of the largest index. Measured where the nearest lie no nearer than much else
# (recall at ten, by 200, 400, 800 candidates): .973, .988, .998 with 62,500 rows in the
# largest index, .91, .943, .973 with 500,000; by 800 and 1,000 there, of the largest
# index alone in its denser graph, .905 and .945. The extension allows no more.
# Where an index holds rows that must not be returned, these can all lie nearer to the
# query than any other, so the most are held. Beyond so many such
# rows it loses others, measured on topics that are hidden as a whole: recall 0.7 to 1.0
# for 300 to 2,000 of 50,000. The knowledge base is then compared row by row.
EF_SEARCH, EF_SEARCH_MOST = 200, 1000
ROWS_A_CANDIDATE = 100
MOST_UNSEEN = 300
# Of the lists of an ivfflat index so many are read.
LEAST_PROBES, LISTS_A_PROBE = 10, 5


@dataclass(frozen=True, slots=True)
class KeywordRanking:
    """The keyword branch's ranking; partial where too many hold all words to rank.

    `unknown` are words of the query that no passage within reach holds.
    """

    candidates: list[Candidate]
    is_partial: bool = False
    unknown: tuple[str, ...] = ()


# --- Meaning -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeaningPlan:
    """How the nearest vectors are found: the knowledge bases by the way they are read.

    `by_index` have an index of their own. Of `by_row` each vector is compared but those
    of hidden passages; of `by_passage` those of visible passages, found first. `sees_all`
    tells whether those indexes hold nothing but visible passages.
    """

    by_index: tuple[int, ...] = ()
    by_row: tuple[int, ...] = ()
    by_passage: tuple[int, ...] = ()
    sees_all: bool = True


def plan_meaning(reach: Reach, space: EmbeddingSpace) -> MeaningPlan:
    """Choose how to find the nearest vectors of a reach (D21).

    Filter first and compare exactly, as long as few passages are in reach. Beyond, a
    knowledge base is read through its index, unless a part of it is out of reach: then
    an index would lose rows.
    """
    limit = settings.STRATA_EXACT_LIMIT
    is_large = reach.rows > limit and not reach.metadata
    usable = indexed(reach.sizes, space) if is_large else set()
    by_index, by_row, by_passage = [], [], []
    sees_all = True
    for pk, size in sorted(reach.sizes.items()):
        live = size.live(reach.layer_ids)
        unseen = size.total - live
        if pk in usable and (unseen == 0 or (unseen <= MOST_UNSEEN and live > limit)):
            by_index.append(pk)
            sees_all = sees_all and unseen == 0
        elif reach.metadata or reach.layer_ids is not None or 2 * live < size.total:
            by_passage.append(pk)
        else:
            by_row.append(pk)
    return MeaningPlan(tuple(by_index), tuple(by_row), tuple(by_passage), sees_all)


def by_meaning(
    reach: Reach, space: EmbeddingSpace, vector: Sequence[float], *, count: int
) -> list[Candidate]:
    """Return the passages nearest to a unit vector, with their cosine, nearest first.

    Ties go by the passage's id. Only ids and vectors are read on the way.
    """
    plan = plan_meaning(reach, space)
    query = literal(vector)
    parts = [nearest_by_index(reach, space, pk, query, count) for pk in plan.by_index]
    if plan.by_row:
        parts.append(nearest_by_row(reach, space, plan.by_row, query, count))
    if plan.by_passage:
        parts.append(nearest_by_passage(reach, space, plan.by_passage, query, count))
    if not parts:
        return []
    nearest = Sql(
        "SELECT passage_id, distance FROM ("  # noqa: S608
        + " UNION ALL ".join(f"({part.text})" for part in parts)
        + ") nearest ORDER BY distance, passage_id LIMIT %s",
        (*(param for part in parts for param in part.params), count),
    )
    before = ["max_parallel_workers_per_gather = 0"]
    if plan.by_index:
        before += [*reading_of_indexes(reach, plan, count), "enable_seqscan = off"]
    rows = rows_of(nearest, settings_before=before)
    return [Candidate(pk, 1 - distance) for pk, distance in rows]


def reading_of_indexes(reach: Reach, plan: MeaningPlan, count: int) -> list[str]:
    """Return the settings under which a plan's indexes are read."""
    if settings.STRATA_VECTOR_INDEX == "ivfflat":
        largest = max(reach.sizes[pk].total for pk in plan.by_index)
        probes = max(LEAST_PROBES, lists_of(largest) // LISTS_A_PROBE)
        return [f"ivfflat.probes = {probes}", "ivfflat.iterative_scan = relaxed_order"]
    held = max(held_ready(reach, plan), 2 * count)
    return [f"hnsw.ef_search = {held}", "hnsw.iterative_scan = relaxed_order"]


def held_ready(reach: Reach, plan: MeaningPlan) -> int:
    """Return how many candidates the searches of a plan's indexes hold ready."""
    if not plan.sees_all:
        return EF_SEARCH_MOST
    largest = max((reach.sizes[pk].total for pk in plan.by_index), default=0)
    return min(max(EF_SEARCH, largest // ROWS_A_CANDIDATE), EF_SEARCH_MOST)


def nearest_by_index(
    reach: Reach, space: EmbeddingSpace, pk: int, query: str, count: int
) -> Sql:
    """Return the query of one knowledge base through its own index."""
    kind = compared_as(space.dimension)
    visible = reach.visible
    # The ids stand in the text: the planner must see that the index covers them.
    return Sql(
        f"""
        SELECT v.passage_id, v.embedding::{kind} <=> %s::{kind} AS distance
        FROM knowledge_passagevector v
        JOIN (SELECT id FROM {visible.text}) visible ON visible.id = v.passage_id
        WHERE v.knowledge_base_id = {int(pk)} AND v.space_id = {int(space.pk)}
        ORDER BY distance LIMIT %s
        """,  # noqa: S608
        (query, *visible.params, count),
    )


def nearest_by_row(
    reach: Reach, space: EmbeddingSpace, pks: Sequence[int], query: str, count: int
) -> Sql:
    """Return the query that compares each vector of some knowledge bases.

    The hidden passages are left out by their ids before the order is made; the best are
    then held against the visible ones themselves.
    """
    visible, hidden = reach.visible, reach.hidden
    return Sql(
        f"""
        SELECT passage_id, distance FROM (
            SELECT v.passage_id, v.embedding <=> %s::vector AS distance
            FROM knowledge_passagevector v
            WHERE v.knowledge_base_id = ANY(%s::bigint[]) AND v.space_id = %s
              AND v.passage_id NOT IN (SELECT id FROM {hidden.text})
            ORDER BY distance LIMIT %s
        ) nearest WHERE passage_id IN (SELECT id FROM {visible.text})
        """,  # noqa: S608
        (query, list(pks), space.pk, *hidden.params, count, *visible.params),
    )


def nearest_by_passage(
    reach: Reach, space: EmbeddingSpace, pks: Sequence[int], query: str, count: int
) -> Sql:
    """Return the query that finds the visible passages first, then compares each."""
    visible = reach.visible
    return Sql(
        f"""
        SELECT v.passage_id, v.embedding <=> %s::vector AS distance
        FROM knowledge_passagevector v
        WHERE v.passage_id IN (SELECT id FROM {visible.text})
          AND v.knowledge_base_id = ANY(%s::bigint[]) AND v.space_id = %s
        ORDER BY distance LIMIT %s
        """,  # noqa: S608
        (query, *visible.params, list(pks), space.pk, count),
    )


def literal(vector: Sequence[float]) -> str:
    """Return a vector as PostgreSQL reads it, with the digits that it keeps."""
    return "[" + ",".join(map("{:.9g}".format, vector)) + "]"


def cosines(
    space: EmbeddingSpace, passage_ids: Collection[int], vector: Sequence[float]
) -> dict[int, float]:
    """Return the cosine of passages that are already found; absent without a vector."""
    rows = rows_of(
        Sql(
            "SELECT passage_id, 1 - (embedding <=> %s::vector) "
            "FROM knowledge_passagevector WHERE space_id = %s AND passage_id = ANY(%s)",
            (literal(vector), space.pk, list(passage_ids)),
        )
    )
    return dict(rows)


# --- Keywords ------------------------------------------------------------------

# A frequent word tempts the planner to read passages in turn until enough hold it, and
# each would have to be unpacked for that.
INDEX_ONLY = ("enable_seqscan = off", "max_parallel_workers_per_gather = 0")


def by_keywords(reach: Reach, query: KeywordQuery, *, count: int) -> KeywordRanking:
    """Return the passages that hold every word; where none does, those that hold some.

    The latter are marked `relaxed` (R15). A word is held where the passage has it, or
    has another form of it, which counts less.
    """
    if not query.words:
        return KeywordRanking([])
    rows = rows_of(exact_query(reach, query, count), settings_before=INDEX_ONLY)
    if rows:
        found = [
            Candidate(pk, score, without_accents=not marked)
            for pk, score, marked, _matches in rows
        ]
        return KeywordRanking(found, is_partial=rows[0][3] >= MOST_EXACT)
    if len(query.words) == 1:
        return KeywordRanking([], unknown=(query.words[0].word,))
    rows = rows_of(relaxed_query(reach, query, count), settings_before=INDEX_ONLY)
    return KeywordRanking(
        [
            Candidate(pk, score, relaxed=True, share=share, without_accents=not marked)
            for pk, score, marked, share, _unknown in rows
        ],
        unknown=tuple(rows[0][4])
        if rows
        else tuple(wanted.word for wanted in query.words),
    )


@dataclass(frozen=True, slots=True)
class Units:
    """What one query looks for, as columns: words, then what lifts who holds them.

    `wanted` is the condition that a passage holds the unit. The word itself counts by
    `exact`, in its other forms by `forms`, of which there are `sizes`, and without
    accents by `bare`; `marked` is `wanted` less that. `factors` are what a unit is
    worth beside a word.
    """

    wanted: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    bare: list[str | None] = field(default_factory=list)
    exact: list[str] = field(default_factory=list)
    forms: list[str | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def add(
        self,
        kind: str,
        exact: str,
        forms: Sequence[str] = (),
        *,
        bare: str | None = None,
        factor: float = 1.0,
    ) -> None:
        """Add one unit, given as the lexemes of a text search query."""
        marked = " | ".join([exact, *forms])
        self.marked.append(marked)
        self.wanted.append(marked if bare is None else f"{marked} | {bare}")
        self.bare.append(bare)
        self.exact.append(exact)
        self.forms.append(" | ".join(forms) or None)
        self.sizes.append(len(forms))
        self.factors.append(factor)
        self.kinds.append(kind)

    @property
    def sql(self) -> Sql:
        """The units as rows, numbered."""
        return Sql(
            """
            SELECT number, wanted::tsquery AS wanted, marked::tsquery AS marked,
                   bare::tsquery AS bare, exact::tsquery AS exact, exact AS exact_text,
                   forms::tsquery AS forms, size, factor, kind
            FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                        %s::int[], %s::float8[], %s::text[])
                 WITH ORDINALITY
                 AS given (wanted, marked, bare, exact, forms, size, factor, kind,
                           number)
            """,
            (
                self.wanted,
                self.marked,
                self.bare,
                self.exact,
                self.forms,
                self.sizes,
                self.factors,
                self.kinds,
            ),
        )


def units_of(reach: Reach, query: KeywordQuery, *, most: int | None = None) -> Units:
    """Return the units of a query; of more than `most` words the long ones tell most."""
    words = sorted(query.words, key=lambda wanted: -len(wanted.word))[:most]
    units = Units()
    for wanted in words:
        bare = wanted.bare if reach.accent_free else None
        units.add("word", wanted.word, wanted.stems, bare=bare)
    for compound in query.compounds[:most]:
        units.add("compound", compound, factor=COMPOUND)
    for first, second in query.neighbours[:most]:
        units.add("neighbours", f"{first} <-> {second}", factor=NEIGHBOURS)
    return units


def holding(reach: Reach, columns: str, query: str, marked: str) -> Sql:
    """Return the query for the passages within reach that a text search finds.

    `query` is the SQL of a tsquery: a column, or a placeholder whose parameter follows.
    Outside of the layers that match without accents it is `marked` that finds.
    """
    visible = reach.visible
    text = f"SELECT {columns} FROM {visible.text} AND search_vector @@ {query}"  # noqa: S608
    if reach.accent_free:
        free = ",".join(map(str, sorted(reach.accent_free)))
        text += f" AND (layer_id IN ({free}) OR search_vector @@ {marked})"
    if reach.rows >= KEYED_SHARE * max(standing().passages, 0) > 0:
        return Sql(text, visible.params)
    bases = ",".join(map(str, sorted(reach.knowledge_base_ids)))
    return Sql(
        f"{text} AND ARRAY[knowledge_base_id] && '{{{bases}}}'::bigint[]",
        visible.params,
    )


def times(query: str, size: str) -> str:
    """Return the SQL of how often one of `size` lexemes stands in a passage.

    For lexemes of weight A, of which a passage holds one, ts_rank is the sum of 1/n²
    over its places, divided by that of all numbers and by `size`; the sum is very
    nearly pi²/6 less 1/(n + 1/2).
    """
    return (
        f"round(1 / ({PI_SQUARED_SIXTH} * (1 - least(0.99, "
        f"{size} * coalesce(ts_rank(terms, {query}), 0)::float8))) - 0.5)"
    )


def saturated(reach: Reach) -> str:
    """Return the SQL of a word's BM25 score before its rarity, in a passage's `terms`.

    `longer` is the passage's length by that of the others.
    """
    exact = times("exact", "1")
    forms = times("forms", "size")
    if reach.accent_free:
        forms = f"greatest({forms}, {times('bare', '1')})"
    # OFFSET keeps each count from being made again wherever it is named.
    return f"""(
        SELECT 2.2 * times / (times + 1.2 * ({1 - BY_LENGTH} + {BY_LENGTH} * longer))
        FROM (
            SELECT exact + {OTHER_FORM} * greatest(forms - exact, 0) AS times
            FROM (SELECT {exact} AS exact, {forms} AS forms OFFSET 0) counted OFFSET 0
        ) weighed
    )"""  # noqa: S608


def exact_query(reach: Reach, query: KeywordQuery, count: int) -> Sql:
    """Return the query for the passages that hold every word, the best first.

    All hold all words, so what tells is how often, and which stand together. Its rows
    are id, score, whether it holds them in their own accents, and how many passages
    were put in order.
    """
    units = units_of(reach, query)
    every, every_marked = (
        " & ".join(
            f"({unit})"
            for unit, kind in zip(column, units.kinds, strict=True)
            if kind == "word"
        )
        for column in (units.wanted, units.marked)
    )
    rows = units.sql
    matches = holding(reach, "id, search_vector", "%s::tsquery", "%s::tsquery")
    conditions = (every, every_marked) if reach.accent_free else (every,)
    return Sql(
        f"""
        WITH unit AS MATERIALIZED ({rows.text}
        ), terms AS MATERIALIZED (
            SELECT id, setweight(search_vector, 'A') AS terms,
                   length(search_vector) / avg(length(search_vector)) OVER () AS longer
            FROM ({matches.text} LIMIT {MOST_EXACT}) matches
        )
        SELECT id, (
            SELECT sum(CASE WHEN kind = 'word' THEN {saturated(reach)}
                            WHEN terms @@ wanted THEN {TOGETHER} * factor ELSE 0 END)
            FROM unit) AS score, terms @@ %s::tsquery, count(*) OVER ()
        FROM terms
        ORDER BY score DESC, id LIMIT %s
        """,  # noqa: S608
        (*rows.params, *matches.params, *conditions, every_marked, count),
    )


def relaxed_query(reach: Reach, query: KeywordQuery, count: int) -> Sql:
    """Return the query for the passages that hold some words: BM25 over those in reach.

    A word weighs by its rarity among the visible passages, and one that none of them
    holds weighs most. The share is the weight of the words that a passage holds by that
    of all: a hit for one common word of many counts as little as it says.

    A word that very many passages hold is looked up only in the passages that rarer
    ones led to, and its rarity is estimated there; so are the neighbours.
    """
    rows = units_of(reach, query, most=MOST_WORDS).sql
    matches = holding(reach, "id", "unit.wanted", "unit.marked")
    marked = "terms @@ marked" if reach.accent_free else "true"
    return Sql(
        f"""
        WITH unit AS MATERIALIZED ({rows.text}
        ), posting AS MATERIALIZED (
            SELECT unit.number, found.id
            FROM unit CROSS JOIN LATERAL ({matches.text} LIMIT {MOST_POSTINGS}) found
            WHERE kind <> 'neighbours'
        ), counted AS MATERIALIZED (
            SELECT unit.number, count(posting.id)::float8 AS holders,
                   kind = 'neighbours' OR count(posting.id) >= {MOST_POSTINGS}
                   AS is_looked_up_late
            FROM unit LEFT JOIN posting USING (number)
            GROUP BY unit.number, kind
        ), reach AS MATERIALIZED (
            SELECT greatest({int(reach.rows)}, max(holders)) AS passages FROM counted
        ), rough AS MATERIALIZED (
            SELECT number, is_looked_up_late, factor
                * CASE WHEN is_looked_up_late THEN 0.01::float8 ELSE 1 END
                * ln(1 + (passages - holders + 0.5) / (holders + 0.5)) AS weight
            FROM counted JOIN unit USING (number) CROSS JOIN reach
        ), candidate AS MATERIALIZED (
            SELECT posting.id
            FROM posting JOIN rough USING (number)
            GROUP BY posting.id
            ORDER BY sum(weight) DESC, posting.id
            LIMIT {MOST_RELAXED}
        ), unpacked AS MATERIALIZED (
            SELECT id, setweight(search_vector, 'A') AS terms,
                   length(search_vector) / avg(length(search_vector)) OVER () AS longer
            FROM candidate JOIN knowledge_passage USING (id)
        ), held AS MATERIALIZED (
            SELECT id, number
            FROM posting JOIN rough USING (number) JOIN candidate USING (id)
            WHERE NOT is_looked_up_late
            UNION ALL
            SELECT id, number
            FROM unpacked CROSS JOIN counted JOIN unit USING (number)
            WHERE is_looked_up_late AND terms @@ wanted
        ), estimated AS MATERIALIZED (
            SELECT number, passages, CASE WHEN NOT is_looked_up_late THEN holders
                ELSE least(passages, greatest(holders, passages
                    * (SELECT count(*) FROM held WHERE held.number = counted.number)
                    / greatest((SELECT count(*) FROM candidate), 1))) END AS holders
            FROM counted CROSS JOIN reach
        ), rarity AS MATERIALIZED (
            SELECT number, ln(1 + (passages - holders + 0.5) / (holders + 0.5)) AS weight
            FROM estimated
        )
        SELECT id,
               sum(factor * weight * CASE WHEN kind = 'word'
                   THEN {saturated(reach)} ELSE 1 END) AS score,
               bool_and({marked}) AS is_marked,
               -- A passage may hold no more than two words' neighbourhood.
               coalesce(sum(weight) FILTER (WHERE kind = 'word'), 0)
                   / (SELECT sum(weight) FROM rarity JOIN unit USING (number)
                      WHERE kind = 'word') AS share,
               ARRAY(SELECT exact_text FROM counted JOIN unit USING (number)
                     WHERE kind = 'word' AND holders = 0) AS unknown
        FROM held JOIN rarity USING (number) JOIN unit USING (number)
             JOIN unpacked USING (id)
        GROUP BY id ORDER BY score DESC, id LIMIT %s
        """,  # noqa: S608
        (*rows.params, *matches.params, count),
    )


# --- Codes ---------------------------------------------------------------------


def by_codes(reach: Reach, codes: Sequence[str], *, count: int) -> list[Candidate]:
    """Return the passages that hold the query's codes, those with most of them first.

    `codes` are those of `knowledge.codes.code_keys`; without one the branch is silent.
    Among equals, passages that name few other codes come first. A code that none holds
    is looked for as a part of longer codes, which count half; where many passages hold
    such, that tells nothing.
    """
    if not codes:
        return []
    rows = coded(reach, codes, count)
    found = {code for _pk, held in rows for code in held}
    candidates = [Candidate(pk, len(held)) for pk, held in rows]
    missing = [PART + code for code in codes if code not in found]
    if missing:
        known = {pk for pk, _held in rows}
        parts = coded(reach, missing, MOST_PARTS + 1)
        if len(parts) <= MOST_PARTS:
            candidates += [
                Candidate(pk, len(held) / 2) for pk, held in parts if pk not in known
            ]
    return candidates[:count]


def coded(reach: Reach, keys: Sequence[str], count: int) -> list[tuple[int, list[str]]]:
    """Return the passages that hold some keys, with those; most of them first."""
    visible = reach.visible
    wanted = list(keys)
    rows = rows_of(
        Sql(
            f"""
            SELECT id, held FROM (
                SELECT id, cardinality(codes) AS named, ARRAY(
                    SELECT code FROM unnest(codes) code WHERE code = ANY(%s::text[])
                ) AS held
                FROM (
                    SELECT id, codes FROM {visible.text} AND codes && %s::varchar[]
                    LIMIT {MOST_CODED}
                ) matches
            ) counted
            ORDER BY cardinality(held) DESC, named, id LIMIT %s
            """,  # noqa: S608
            (wanted, *visible.params, wanted, count),
        )
    )
    return [(pk, held) for pk, held in rows]
