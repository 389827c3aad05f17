"""Named clauses, looked up exactly in the structure map of what the reader may see.

A section is within reach where a passage that is within reach holds a part of it: the
knowledge base, layer, switch, expiry and metadata filter of passages hold for sections
as they stand, in the same statement.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from knowledge.naming import Call, calls_in, run_beside, words_called
from retrieval.budget import cut_at_word, room_beside
from retrieval.citations import CitedRow, address, citation_of, cite
from retrieval.clauses.finding import find_references, without_references
from retrieval.clauses.forms import FIRM, Form, forms_of, units_alike
from retrieval.clauses.references import Reference
from retrieval.passages import MOST_CHARACTERS
from retrieval.reach import Reach, Sql, rows_of
from retrieval.results import Hit, Match
from retrieval.sharing import shares

# S1-MIS-08, S1-MIS-05.
MOST_REFERENCES = 10
MOST_SECTIONS = 10
MOST_CANDIDATES = 50
# Documents that one question can call by name.
MOST_CALLED = 5_000
# A section of fewer characters besides label and title has no text of its own.
LEAST_BODY = 12


@dataclass(frozen=True, slots=True)
class SectionsFound:
    """The sections that a question names, best first, and what is to be said of them.

    `note` tells in sentences what was not returned or not looked up, or is empty.
    `unread` counts matching sections that were not read, `left_out` those that no
    longer fit the budget.
    `references` were looked up; `missing` are those of them that can be nothing but
    clauses, and that no section in reach bears, or none of the documents named (D34).
    """

    hits: tuple[Hit, ...] = ()
    note: str = ""
    references: tuple[Reference, ...] = ()
    missing: tuple[Reference, ...] = ()
    unread: int = 0
    left_out: int = 0


class Candidate(NamedTuple):
    """A section that bears a reference's number; nothing of its text is read yet."""

    reference: int
    tier: int
    section_id: int
    document_id: int
    path: str
    start: int
    end: int
    passage_id: int


@dataclass(frozen=True, slots=True)
class Named:
    """The documents that a reference names, and those that its words fit best."""

    documents: frozenset[int] = frozenset()
    closest: frozenset[int] = frozenset()


Wanted = Sequence[tuple[Reference, Named]]


@dataclass(frozen=True, slots=True)
class Called:
    """The documents that a question calls, by what of their names it holds."""

    groups: Sequence[tuple[frozenset[str], tuple[int, ...]]] = ()
    scores: Mapping[int, int] = field(default_factory=dict)


def find_sections(
    reach: Reach, text: str, *, budget: int | None = None
) -> SectionsFound:
    """Return the sections that a question or query names, verbatim, ten at most.

    Sections of a document that the question names come first, then the order of the
    references, then that of the file paths. `budget` (characters) is shared as
    S1-MIS-03 says; without one only a section longer than any ref may be is cut.
    """
    named = find_references(text)
    if not named or reach.is_empty:
        return SectionsFound()
    asked, beyond = named[:MOST_REFERENCES], named[MOST_REFERENCES:]
    called = called_documents(reach, text, asked)
    wanted: list[tuple[Reference, Named]] = []
    for reference in asked:
        documents = documents_named(reference, called)
        if not is_version(reference, called, documents):
            wanted.append((reference, documents))
    candidates = [] if not wanted else find_candidates(reach, wanted, called)
    kept, missing = choose(wanted, candidates)
    hit_limit = len(kept) > MOST_CANDIDATES
    kept = kept[:MOST_CANDIDATES]
    ordered = list({one.section_id: one for one in reversed(kept)})[::-1]
    by_id = {one.section_id: one for one in kept}
    read = [by_id[one] for one in ordered[:MOST_SECTIONS]]
    hits, left_out = make_hits(reach, read, budget)
    sentences = [
        *unread_sentences(
            len(ordered) - len(read),
            hit_limit=hit_limit,
            several=len(named) > 1,
            narrowed=reach.layer_ids is not None,
        ),
        *left_out_sentences(left_out),
        *beyond_sentences(beyond),
    ]
    return SectionsFound(
        hits=hits,
        note=" ".join(sentences),
        references=tuple(reference for reference, _named in wanted),
        missing=missing,
        unread=len(ordered) - len(read),
        left_out=len(left_out),
    )


# --- Which documents the question names -----------------------------------------


def called_documents(
    reach: Reach, text: str, references: Sequence[Reference]
) -> Called:
    """Return the current documents in reach that the question calls."""
    everywhere = [call for call in calls_in(without_references(text)) if call.is_name]
    calls = [*everywhere]
    for reference in references:
        for beside in (reference.before, reference.after, reference.lead):
            calls += calls_in(beside)
    keys = {key for call in calls for key in call.keys}
    keys |= {f"v{one.version}" for one in references if one.version}
    keys |= {f"v{one.number}" for one in references if one.attached}
    if not keys:
        return Called()
    visible = reach.visible
    rows = rows_of(
        Sql(
            f"""
            SELECT called, (array_agg(id ORDER BY id))[:%s]
            FROM (
                SELECT d.id, ARRAY(
                    SELECT name FROM unnest(d.names) name
                    WHERE name = ANY(%s::varchar[]) ORDER BY name
                ) AS called
                FROM knowledge_document d
                WHERE ARRAY[d.knowledge_base_id] && %s::bigint[]
                  AND d.names && %s::varchar[] AND d.is_current
                  AND EXISTS (
                      SELECT 1 FROM {visible.text}
                        AND knowledge_passage.document_id = d.id
                  )
            ) documents
            GROUP BY called
            """,  # noqa: S608
            (
                MOST_CALLED,
                sorted(keys),
                sorted(reach.knowledge_base_ids),
                sorted(keys),
                *visible.params,
            ),
        )
    )
    groups = [(frozenset(called), tuple(ids)) for called, ids in rows]
    scores = {
        document: words
        for called, ids in groups
        if (words := words_called(everywhere, called))
        for document in ids
    }
    return Called(groups, scores)


def documents_named(reference: Reference, called: Called) -> Named:
    """Return the documents that the words beside a reference name; none if unsure.

    "Article 112 of the GDPR" names the GDPR, "Article 5 data protection officer" no
    document of that title.
    """
    beside = Beside.of(reference)
    marks = [(beside.mark(keys), documents) for keys, documents in called.groups]
    best = max((mark for mark, _documents in marks), default=(0, 0))
    if best == (0, 0):
        return Named()
    named: set[int] = set()
    closest: set[int] = set()
    for mark, documents in marks:
        if mark == best:
            closest.update(documents)
        if mark == best or (best[0] and mark[0] == best[0]):
            named.update(documents)
    return Named(frozenset(named), frozenset(closest))


@dataclass(frozen=True, slots=True)
class Beside:
    """The words beside a reference, read once."""

    before: Sequence[Call]
    after: Sequence[Call]
    lead: Sequence[Call]
    connected: bool
    version: str

    @classmethod
    def of(cls, reference: Reference) -> "Beside":
        """Return the words beside a reference."""
        return cls(
            calls_in(reference.before),
            calls_in(reference.after),
            calls_in(reference.lead),
            reference.connected,
            reference.version,
        )

    def mark(self, keys: Collection[str]) -> tuple[int, int]:
        """Return how many words written as names, and how many at all, name a document.

        Words in small letters that nothing links to the reference count where they are
        all that stands there, and where no better ones do.
        """
        if self.version and f"v{self.version}" not in keys:
            return 0, 0
        runs = (
            (run_beside(self.before, keys, from_end=True), False),
            (run_beside(self.after, keys, from_end=False), self.connected),
            (run_beside(self.lead, keys, from_end=False), True),
        )
        sure = [run for run, linked in runs if run.words and (linked or run.names)]
        if not sure:
            sure = [run for run, _linked in runs if run.words and run.is_whole]
        extra = 1 if self.version else 0
        names = sum(run.names for run in sure) + extra
        return names, sum(run.words for run in sure) + extra


def is_version(reference: Reference, called: Called, named: Named) -> bool:
    """Tell whether a bare number beside a name is a version, of its document or not."""
    if not reference.attached:
        return False
    version = f"v{reference.number}"
    versions = (ids for keys, ids in called.groups if version in keys)
    return not named.documents or any(
        not named.documents.isdisjoint(ids) for ids in versions
    )


# --- Which sections bear the numbers --------------------------------------------


def find_candidates(
    reach: Reach,
    wanted: Wanted,
    called: Called,
) -> list[Candidate]:
    """Return the sections of each reference, named documents first, 51 each at most.

    A document gives only the sections of the best form that it has.
    """
    forms = [
        form_row(index, form, reference)
        for index, (reference, _documents) in enumerate(wanted)
        for form in forms_of(reference)
    ]
    named = [
        {
            "reference": index,
            "document": document,
            "grade": 2 if document in one.closest else 1,
        }
        for index, (_reference, one) in enumerate(wanted)
        for document in one.documents
    ]
    scores = [
        {"document": document, "score": score}
        for document, score in called.scores.items()
    ]
    visible = reach.visible
    rows = rows_of(
        Sql(
            f"""
            WITH form AS (
                SELECT * FROM jsonb_to_recordset(%s::jsonb) AS f(
                    reference int, tier int, key text, units text[], headed boolean,
                    inline text, within jsonb, only_named boolean)
            ), named AS (
                SELECT * FROM jsonb_to_recordset(%s::jsonb)
                    AS n(reference int, document bigint, grade int)
            ), score AS (
                SELECT * FROM jsonb_to_recordset(%s::jsonb)
                    AS n(document bigint, score int)
            ), bearing AS (
                SELECT f.reference, f.tier, s.id, s.document_id, s.start, s."end",
                       coalesce(n.grade, 0) AS grade,
                       dense_rank() OVER (
                           PARTITION BY f.reference, s.document_id ORDER BY f.tier
                       ) AS place,
                       s."end" - s.start - length(s.label) - length(s.title) AS body
                FROM form f
                JOIN knowledge_section s
                  ON s.key = f.key AND s.key <> ''
                 AND s.knowledge_base_id = ANY(%s::bigint[])
                JOIN knowledge_document d ON d.id = s.document_id AND d.is_current
                LEFT JOIN named n
                  ON n.reference = f.reference AND n.document = s.document_id
                WHERE (f.units IS NULL OR s.unit = ANY(f.units))
                  AND (NOT f.headed OR s.kind = 'heading' OR s.title <> '')
                  AND (NOT f.only_named OR n.document IS NOT NULL)
                  AND NOT EXISTS (
                      SELECT 1 FROM jsonb_to_recordset(f.within)
                          AS w(key text, units text[])
                      WHERE NOT EXISTS (
                          SELECT 1 FROM knowledge_section a
                          WHERE a.document_id = s.document_id AND a.key = w.key
                            AND a.unit = ANY(w.units)
                            AND a.start <= s.start AND a."end" >= s."end"))
                  AND (f.inline = '' OR substr(d.text, s.start + 1, s."end" - s.start)
                       ~* ('(^|[^[:alnum:]])' || f.inline || '[).]'))
            ), best AS (
                SELECT *, max(body) OVER (
                    PARTITION BY reference, document_id) AS longest
                FROM bearing WHERE place = 1
            ), placed AS (
                SELECT b.*, p.passage_id, o.path,
                       row_number() OVER (
                           PARTITION BY b.reference
                           ORDER BY b.grade DESC, coalesce(c.score, 0) DESC,
                                    b.tier, o.path, b.start, b.id
                       ) AS number,
                       coalesce(c.score, 0) AS score
                FROM best b
                JOIN LATERAL (
                    SELECT knowledge_passage.id AS passage_id,
                           knowledge_passage.source_id
                    FROM {visible.text}
                      AND knowledge_passage.document_id = b.document_id
                      AND knowledge_passage.start < b."end"
                      AND knowledge_passage."end" > b.start
                    ORDER BY knowledge_passage.start LIMIT 1
                ) p ON TRUE
                JOIN knowledge_source o ON o.id = p.source_id
                LEFT JOIN score c ON c.document = b.document_id
                -- A table of contents repeats the head of a section without its text.
                WHERE b.body >= {LEAST_BODY} OR b.longest < {LEAST_BODY}
            )
            SELECT reference, tier, id, document_id, path, start, "end", passage_id
            FROM placed WHERE number <= %s
            ORDER BY grade DESC, score DESC, reference, tier, path, start, id
            """,  # noqa: S608
            (
                json.dumps(forms),
                json.dumps(named),
                json.dumps(scores),
                sorted(reach.knowledge_base_ids),
                *visible.params,
                MOST_CANDIDATES + 1,
            ),
        )
    )
    return [Candidate(*row) for row in rows]


def form_row(index: int, form: Form, reference: Reference) -> dict[str, object]:
    """Return one form as the statement reads it."""
    return {
        "reference": index,
        "tier": form.tier,
        "key": form.key,
        "units": None if form.units is None else list(form.units),
        "headed": form.headed,
        "inline": form.inline,
        "within": [
            {"key": key, "units": list(units_alike(unit))} for unit, key in form.within
        ],
        "only_named": reference.attached,
    }


def choose(
    wanted: Wanted, candidates: Sequence[Candidate]
) -> tuple[list[Candidate], tuple[Reference, ...]]:
    """Return the sections to give and the references that are missing (D34).

    Where the documents named do not bear a reference, those of others say nothing
    about it: they are not given as what the question names.
    """
    chosen: set[Candidate] = set()
    missing: list[Reference] = []
    for index, (reference, named) in enumerate(wanted):
        own = [one for one in candidates if one.reference == index]
        if named.documents and named.documents.isdisjoint(
            one.document_id for one in own
        ):
            own = []
        if not own and reference.labelled:
            missing.append(reference)
        firm = any(one.tier <= FIRM for one in own)
        chosen.update(
            one
            for one in own
            if not firm or one.tier <= FIRM + 1 or one.document_id in named.documents
        )
    return [one for one in candidates if one in chosen], tuple(missing)


# --- The hits and what is said of the rest --------------------------------------


def make_hits(
    reach: Reach, read: Sequence[Candidate], budget: int | None
) -> tuple[tuple[Hit, ...], list[tuple[str, str]]]:
    """Return the hits, and (label, file) of the sections that no longer fit."""
    rows = cited_sections(reach, read)
    ordered = [rows[one.section_id] for one in read if one.section_id in rows]
    texts = [cut_at_word(row.text, MOST_CHARACTERS) for row in ordered]
    given = [len(text) for text in texts]
    whole = cite(reach, ordered)
    if budget is not None:
        beside = [room_beside(whole[row.passage_id]) for row in ordered]
        given = shares(texts, budget, beside)
    shown = [
        beginning_of(row, length) for row, length in zip(ordered, given, strict=False)
    ]
    citations = {
        row.passage_id: citation_of(row, whole[row.passage_id].replaced_by, address())
        for row in shown
    }
    hits = tuple(
        Hit(
            passage_id=None,
            ref=citations[row.passage_id].ref,
            text=row.text,
            score=1.0,
            similarity=0.0,
            branches={},
            citation=citations[row.passage_id],
            metadata=metadata_of(row),
            match=Match.EXACT,
            cut=len(row.text) < len(entire.text),
        )
        for row, entire in zip(shown, ordered, strict=False)
    )
    left_out = [
        (row.clause_path.rpartition(" > ")[2], row.path)
        for row in ordered[len(shown) :]
    ]
    return hits, left_out


def beginning_of(row: CitedRow, length: int) -> CitedRow:
    """Return a row with the first `length` characters of its text and their lines."""
    text = row.text[:length]
    return row._replace(  # noqa: SLF001 - public on named tuples
        text=text, end=row.start + length, line_end=row.line_start + text.count("\n")
    )


def metadata_of(row: CitedRow) -> dict[str, str]:
    """Return the metadata of the section's first passage, with its own page."""
    metadata: dict[str, str] = json.loads(row.metadata)
    if row.page is not None:
        metadata["page"] = str(row.page)
    return metadata


def cited_sections(reach: Reach, read: Sequence[Candidate]) -> dict[int, CitedRow]:
    """Return what is to be said of sections, by id, as far as they are in reach still.

    A row's `passage_id` is the section's id.
    """
    if not read:
        return {}
    visible = reach.visible
    rows = rows_of(
        Sql(
            f"""
            SELECT x.id, x.text, p.metadata, x.start, x.start + length(x.text),
                   x.clause_path,
                   (SELECT (held.page ->> 'number')::int
                    FROM jsonb_array_elements(d.pages) AS held(page)
                    WHERE (held.page ->> 'start')::int <= x.start
                    ORDER BY (held.page ->> 'start')::int DESC LIMIT 1),
                   x.line, x.line + length(x.text)
                     - length(replace(x.text, chr(10), '')),
                   p.text_origin, p.knowledge_base_id, b.slug, l.name,
                   l.archived_patterns, s.id, s.path, d.number, d.title, d.date,
                   d.date_source, d.created_at
            FROM (
                SELECT c.id, c.document_id, c.start,
                       substr(d.text, c.start + 1, c."end" - c.start) AS text,
                       1 + c.start - length(
                           replace(substr(d.text, 1, c.start), chr(10), '')) AS line,
                       (SELECT string_agg(part, ' > ')
                        FROM jsonb_array_elements_text(c.path) part) AS clause_path
                FROM knowledge_section c
                JOIN knowledge_document d ON d.id = c.document_id
                WHERE c.id = ANY(%s)
            ) x
            JOIN (
                SELECT * FROM {visible.text} AND knowledge_passage.id = ANY(%s)
            ) p ON p.document_id = x.document_id
            JOIN unnest(%s::bigint[], %s::bigint[]) AS pair(section, passage)
              ON pair.section = x.id AND pair.passage = p.id
            JOIN knowledge_knowledgebase b ON b.id = p.knowledge_base_id
            JOIN knowledge_layer l ON l.id = p.layer_id
            JOIN knowledge_source s ON s.id = p.source_id
            JOIN knowledge_document d ON d.id = p.document_id
            """,  # noqa: S608
            (
                [one.section_id for one in read],
                *visible.params,
                [one.passage_id for one in read],
                [one.section_id for one in read],
                [one.passage_id for one in read],
            ),
        )
    )
    return {row[0]: CitedRow(*row) for row in rows}


def unread_sentences(
    unread: int, *, hit_limit: bool, several: bool, narrowed: bool
) -> Iterator[str]:
    """Yield what is said of matching sections that were not read (S1-MIS-05 to 07)."""
    if unread > 0:
        sentence = ngettext(
            "%(count)s more section matches and was not read.",
            "%(count)s more sections match and were not read.",
            unread,
        )
        if hit_limit:
            sentence = ngettext(
                "At least %(count)s more section matches and was not read.",
                "At least %(count)s more sections match and were not read.",
                unread,
            )
        yield sentence % {"count": unread}
        if several and not narrowed:
            yield _("Ask about fewer clauses, or name a layer.")
        elif several:
            yield _("Ask about fewer clauses.")
        elif not narrowed:
            yield _("Name a layer to see the others.")
    elif hit_limit:
        yield _("More sections may match.")


def left_out_sentences(left_out: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield what is said of sections that no longer fit the budget (S1-MIS-04)."""
    if left_out:
        names = ", ".join(f"{label} ({path})" for label, path in left_out)
        yield ngettext(
            "%(count)s section no longer fits: %(names)s.",
            "%(count)s sections no longer fit: %(names)s.",
            len(left_out),
        ) % {"count": len(left_out), "names": names}


def beyond_sentences(beyond: Sequence[Reference]) -> Iterator[str]:
    """Yield what is said of references that were not looked up (S1-MIS-08)."""
    if beyond:
        yield _("Only the first %(most)s references were looked up, not %(names)s.") % {
            "most": MOST_REFERENCES,
            "names": ", ".join(one.written for one in beyond),
        }
