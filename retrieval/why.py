"""Why a search said what it said: the four usual causes, in their order (S2-CHK-07).

Each is checked on the data of one logged search and answered in a sentence with the
passages that show it. Only what the viewer may read is looked at.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Final

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from knowledge.models import Document, Passage, Section
from knowledge.models.knowledge_base import Language
from knowledge.permissions import Reader
from knowledge.terms import content_words, words
from retrieval.budget import CHARACTERS_A_TOKEN
from retrieval.citations import REF, resolve_ref
from retrieval.models import SearchLog
from retrieval.replay import Logged, Shown, branch_names, places_of
from retrieval.results import Branch, Citation

# So many parts make a passage a mixture, if the question is about a third of them.
MANY_PARTS: Final = 3
SHARE_ASKED: Final = 1 / 3
# Longer than the layer allows now by this share: it was cut by other rules.
TOO_LONG: Final = 1.1
# So high in one branch, and not returned all the same.
HIGH_RANK: Final = 3
# Share of words in common from which two passages say the same thing.
SAME_FACT: Final = 0.5
LEAST_LETTERS: Final = 3
MOST_EVIDENCE: Final = 6
REF_INSIDE = re.compile(rf"(?<![\w]){REF.pattern}(?!\d)")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that shows a cause: what about it, and where it is read."""

    note: str
    citation: Citation


@dataclass(frozen=True, slots=True)
class Cause:
    """One of the four causes: how it stands, in a sentence, with what shows it.

    `applies` is None where the data do not tell.
    """

    title: str
    applies: bool | None
    sentence: str
    evidence: Sequence[Evidence] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the passages that came back, for all checks, read at once.

    `passages` by id; `parts` holds, for each, the texts between the starts of sections
    inside it; `repeated` tells of a passage cut inside a sentence whether its
    neighbours hold the cut words.
    """

    passages: Mapping[int, Passage]
    parts: Mapping[int, Sequence[str]]
    repeated: Mapping[int, bool]

    @classmethod
    def of(cls, logged: Logged, viewer: Reader) -> "Facts":
        """Read them, within the viewer's visibility."""
        ids = [each.passage_id for each in logged.readable if each.passage_id]
        rows = (
            Passage.objects.visible_to(viewer)
            .filter(pk__in=ids)
            .select_related("layer")
            .defer("search_vector", "terms", "codes", "metadata")
        )
        passages = {row.pk: row for row in rows}
        return cls(passages, parts_of(passages), repeats_of(passages, viewer))


def parts_of(passages: Mapping[int, Passage]) -> dict[int, list[str]]:
    """Return the text of each passage, parted where a section begins inside it."""
    if not passages:
        return {}
    within = Q()
    for row in passages.values():
        within |= Q(document_id=row.document_id, start__gt=row.start, start__lt=row.end)
    starts: dict[int, list[int]] = {}
    for document_id, start in (
        Section.objects.filter(within)
        .order_by("start")
        .values_list("document_id", "start")
        .distinct()
    ):
        starts.setdefault(document_id, []).append(start)
    found = {}
    for pk, row in passages.items():
        inside = [
            start - row.start
            for start in starts.get(row.document_id, ())
            if row.start < start < row.end
        ]
        bounds = pairwise([0, *inside, len(row.text)])
        found[pk] = [row.text[first:last] for first, last in bounds]
    return found


def repeats_of(passages: Mapping[int, Passage], viewer: Reader) -> dict[int, bool]:
    """Return, for each passage that is cut, whether a neighbour overlaps the cut."""
    cut = {pk: row for pk, row in passages.items() if row.cut_start or row.cut_end}
    if not cut:
        return {}
    near = Q()
    for row in cut.values():
        near |= Q(
            document_id=row.document_id, ordinal__in=[row.ordinal - 1, row.ordinal + 1]
        )
    spans = {
        (document_id, ordinal): (start, end)
        for document_id, ordinal, start, end in Passage.objects.visible_to(viewer)
        .filter(near)
        .values_list("document_id", "ordinal", "start", "end")
    }
    found = {}
    for pk, row in cut.items():
        before = spans.get((row.document_id, row.ordinal - 1))
        after = spans.get((row.document_id, row.ordinal + 1))
        start_is_safe = not row.cut_start or (
            before is not None and before[1] > row.start
        )
        end_is_safe = not row.cut_end or (after is not None and after[0] < row.end)
        found[pk] = start_is_safe and end_is_safe
    return found


def causes_of(logged: Logged, viewer: Reader) -> list[Cause]:
    """Return the four causes in the order in which they are to be checked."""
    facts = Facts.of(logged, viewer)
    return [
        too_large(logged, facts),
        cut_inside(logged, facts),
        too_few(logged),
        several_versions(logged),
    ]


def nothing_to_read(title: str, logged: Logged) -> Cause:
    """Return the answer where no passage can be looked at."""
    if logged.readable:
        sections = _(
            "Only sections that the question names came back, each as a whole."
        )
        return Cause(title, applies=False, sentence=sections)
    sentence = (
        _("None of the passages that came back may be read by you, or they are gone.")
        if logged.hits
        else _("No passage came back.")
    )
    return Cause(title, None, sentence)


# --- 1: passages too large --------------------------------------------------------


def too_large(logged: Logged, facts: Facts) -> Cause:
    """Check whether passages are longer than they should be, or mix several matters."""
    title = _("Passages too large")
    if not facts.passages:
        return nothing_to_read(title, logged)
    asked = content_words(logged.row.query, list(Language.values))
    evidence = []
    for each in logged.readable:
        row = facts.passages.get(each.passage_id or 0)
        note = size_note(row, facts.parts[row.pk], asked) if row is not None else ""
        if note and each.citation is not None:
            evidence.append(Evidence(note, each.citation))
    longest = max(len(row.text) for row in facts.passages.values())
    if not evidence:
        return Cause(
            title,
            applies=False,
            sentence=_(
                "The longest of them has %(longest)s characters, which its layer "
                "allows, and none is mostly about other things than the question."
            )
            % {"longest": longest},
        )
    sentence = ngettext(
        "%(count)s passage is too large to be about one thing.",
        "%(count)s passages are too large to be about one thing.",
        len(evidence),
    ) % {"count": len(evidence)}
    return Cause(title, applies=True, sentence=sentence, evidence=evidence)


def size_note(row: Passage, parts: Sequence[str], asked: Sequence[str]) -> str:
    """Return what is too large about a passage, or an empty text.

    `parts` are the texts of the sections in it, `asked` the question's words.
    """
    preset = row.layer.preset
    most = preset.size * (CHARACTERS_A_TOKEN if preset.unit == "tokens" else 1)
    if len(row.text) > most * TOO_LONG:
        return _(
            "%(length)s characters; its layer now allows about %(most)s. Index the "
            "source again."
        ) % {"length": len(row.text), "most": most}
    wanted = set(asked)
    about = sum(1 for part in parts if wanted.intersection(words(part)))
    if len(parts) >= MANY_PARTS and 0 < about <= SHARE_ASKED * len(parts):
        return _(
            "The question's words stand in %(about)s of its %(count)s sections."
        ) % {"count": len(parts), "about": about}
    return ""


# --- 2: cut inside a sentence -----------------------------------------------------


def cut_inside(logged: Logged, facts: Facts) -> Cause:
    """Check whether a passage is cut inside a sentence that no neighbour repeats."""
    title = _("Cut inside a sentence, without overlap")
    if not facts.passages:
        return nothing_to_read(title, logged)
    cut = [each for each in logged.readable if each.passage_id in facts.repeated]
    lost = [
        Evidence(cut_note(facts.passages[pk]), each.citation)
        for each in cut
        if (pk := each.passage_id) is not None
        and not facts.repeated[pk]
        and each.citation is not None
    ]
    if lost:
        sentence = ngettext(
            "%(count)s passage is cut inside a sentence, and its neighbour does not "
            "repeat it.",
            "%(count)s passages are cut inside a sentence, and their neighbours do not "
            "repeat it.",
            len(lost),
        ) % {"count": len(lost)}
        return Cause(title, applies=True, sentence=sentence, evidence=lost)
    if cut:
        sentence = _("Where a passage is cut inside a sentence, its neighbour has it.")
    else:
        sentence = _("Each passage begins and stops between sentences.")
    return Cause(title, applies=False, sentence=sentence)


def cut_note(row: Passage) -> str:
    """Say where a passage is cut."""
    if row.cut_start and row.cut_end:
        return _("It begins and stops inside a sentence.")
    if row.cut_start:
        return _("It begins inside a sentence.")
    return _("It stops inside a sentence.")


# --- 3: too few passages -----------------------------------------------------------


def too_few(logged: Logged) -> Cause:
    """Check whether something good was found and not passed on."""
    title = _("Too few passages in the context")
    row = logged.row
    left = [each for each in logged.rest if each.citation is not None]
    if row.withheld:
        sentence = ngettext(
            "The turn's budget withheld %(count)s passage that was found.",
            "The turn's budget withheld %(count)s passages that were found.",
            len(row.withheld),
        ) % {"count": len(row.withheld)}
        shown = [each for each in left if each.passage_id in row.withheld]
        return Cause(title, True, sentence, list(notes_of(shown)))  # noqa: FBT003
    if not row.rankings:
        return Cause(
            title, None, _("Its candidates were not kept; run it again to see them.")
        )
    high = [
        each
        for each in left
        if any(
            place.rank <= HIGH_RANK and not place.relaxed
            for place in each.places.values()
        )
    ]
    if high:
        sentence = ngettext(
            "%(asked)s were asked for; %(count)s more was among a branch's best three.",
            "%(asked)s were asked for; %(count)s more were among a branch's best three.",
            len(high),
        ) % {"asked": row.count, "count": len(high)}
        return Cause(title, True, sentence, list(notes_of(high)))  # noqa: FBT003
    sentence = _(
        "%(returned)s of %(candidates)s candidates came back, among them the best three "
        "of each branch, as far as you may read them."
    ) % {"returned": row.returned, "candidates": max(len(row.fused), row.returned)}
    return Cause(title, applies=False, sentence=sentence)


def notes_of(shown: Sequence[Shown]) -> Iterator[Evidence]:
    """Yield passages with the places that the branches gave them."""
    for each in shown[:MOST_EVIDENCE]:
        if each.citation is not None:
            yield Evidence(places_note(each), each.citation)


def places_note(shown: Shown) -> str:
    """Return where the branches put a passage, in words."""
    names = branch_names()
    parts = [
        _("%(branch)s no. %(rank)s") % {"branch": names[branch], "rank": place.rank}
        for branch, place in shown.places.items()
        if branch in names
    ]
    if shown.fused_rank is not None:
        parts.append(_("together no. %(rank)s") % {"rank": shown.fused_rank})
    return ", ".join(parts)


# --- 4: several versions of one fact ------------------------------------------------


def several_versions(logged: Logged) -> Cause:
    """Check whether an old version of the same fact stands above a newer one."""
    title = _("The same fact in several versions, the old one first")
    if not logged.readable:
        return nothing_to_read(title, logged)
    evidence = list(outdated(logged.readable))
    shown = [each for each in (*logged.hits, *logged.rest) if each.citation is not None]
    evidence += [
        each
        for each in older_first(shown)
        if each.citation.ref not in {known.citation.ref for known in evidence}
    ]
    if evidence:
        sentence = ngettext(
            "%(count)s passage is an older version of what the corpus says elsewhere.",
            "%(count)s passages are older versions of what the corpus says elsewhere.",
            len(evidence),
        ) % {"count": len(evidence)}
        return Cause(title, True, sentence, evidence[:MOST_EVIDENCE])  # noqa: FBT003
    return Cause(
        title,
        applies=False,
        sentence=_(
            "No passage is marked as replaced or archived, and no two say the same with "
            "the older one first."
        ),
    )


def outdated(hits: Sequence[Shown]) -> Iterator[Evidence]:
    """Yield what came back although its document says that it is not the newest."""
    for each in hits:
        if each.citation is None:
            continue
        if each.citation.replaced_by:
            note = _("No. %(rank)s; replaced by %(path)s.") % {
                "rank": each.rank,
                "path": each.citation.replaced_by,
            }
            yield Evidence(note, each.citation)
        elif each.citation.archived:
            yield Evidence(
                _("No. %(rank)s; archived.") % {"rank": each.rank}, each.citation
            )


def older_first(shown: Sequence[Shown]) -> Iterator[Evidence]:
    """Yield passages above a newer one, of another document, that says the same."""
    bags = [frozenset(_long_words(each.text)) for each in shown]
    for first, second in combinations(range(len(shown)), 2):
        above, below = shown[first], shown[second]
        old, new = above.citation, below.citation
        if above.rank is None or old is None or new is None:
            continue
        if old.revision == new.revision or old.date is None or new.date is None:
            continue
        common = len(bags[first] & bags[second])
        everything = len(bags[first] | bags[second])
        if old.date < new.date and common >= SAME_FACT * max(everything, 1):
            note = _(
                "No. %(rank)s, of %(old)s; %(title)s of %(new)s says nearly the same."
            ) % {
                "rank": above.rank,
                "old": old.date.isoformat(),
                "title": new.title,
                "new": new.date.isoformat(),
            }
            yield Evidence(note, old)


def _long_words(text: str) -> Iterator[str]:
    """Yield the words that say something."""
    for word in words(text):
        if len(word) >= LEAST_LETTERS:
            yield word


# --- The passage that somebody expected ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """What became of a passage that somebody expected: sentences, in order."""

    ref: str
    citation: Citation | None = None
    sentences: Sequence[str] = field(default_factory=list)


def expected(logged: Logged, written: str, viewer: Reader) -> Expected:
    """Return what became of the passages of a ref, or of an address that holds one."""
    named = REF_INSIDE.search(written)
    found = resolve_ref(viewer, named[0]) if named is not None else None
    if named is None or found is None:
        return Expected(
            written,
            sentences=[_("There is no such passage, or you may not read it.")],
        )
    document, start, end = found
    return Expected(
        named[0], sentences=list(fate(logged.row, viewer, document, start, end))
    )


def fate(
    row: SearchLog, viewer: Reader, document: Document, start: int, end: int
) -> Iterator[str]:
    """Yield what became of the passages of a span, in the order of the search."""
    if document.knowledge_base_id not in row.knowledge_bases:
        yield _(
            "Its knowledge base was closed to whoever asked, so it was not searched."
        )
        return
    layer_id = document.source.layer_id
    if row.layers is not None and layer_id not in row.layers:
        yield _("Its layer was not searched: the search was about other layers.")
        return
    ids = list(
        Passage.objects.visible_to(viewer)
        .filter(document=document, start__lt=end, end__gt=start)
        .values_list("pk", flat=True)
    )
    if not ids:
        yield _("It is not the current text any more, so no search finds it.")
        return
    hits = {hit["passage"]: rank for rank, hit in enumerate(row.hits, start=1)}
    returned = [hits[pk] for pk in ids if pk in hits]
    if returned:
        yield _("It came back as no. %(rank)s.") % {"rank": min(returned)}
    places = places_of(row)
    names = branch_names()
    for branch in (str(branch) for branch in Branch if branch in row.rankings):
        ranks = [places[pk][branch].rank for pk in ids if branch in places.get(pk, {})]
        yield (
            _("In %(branch)s it was no. %(rank)s.")
            % {"branch": names.get(branch, branch), "rank": min(ranks)}
            if ranks
            else _("In %(branch)s it was not among the candidates.")
            % {"branch": names.get(branch, branch)}
        )
    together = [row.fused.index(pk) + 1 for pk in ids if pk in row.fused]
    if together and not returned:
        yield _("Together it was no. %(rank)s, and %(count)s were asked for.") % {
            "rank": min(together),
            "count": row.count,
        }
