"""The evidence for one question: the sections that it names, then what ranks best."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings

from retrieval.budget import CHARACTERS_A_TOKEN
from retrieval.citations import parse_ref
from retrieval.embedding import VectorSource, no_vector
from retrieval.engine import Found, find
from retrieval.journal import Journal
from retrieval.reach import Reach
from retrieval.results import Hit
from retrieval.sections import SectionsFound, find_sections
from retrieval.tuning import Tuning


@dataclass(frozen=True, slots=True)
class Evidence:
    """What answers a question, best first, and how it was found.

    `hits` are the named sections, word for word, and then ranked passages that do not
    only repeat them.
    """

    hits: tuple[Hit, ...] = ()
    found: Found = field(default_factory=Found)
    sections: SectionsFound = field(default_factory=SectionsFound)


def gather(
    reach: Reach,
    text: str,
    *,
    tuning: Tuning,
    count: int,
    journal: Journal,
    vector: VectorSource = no_vector,
    reranks: bool = False,
) -> Evidence:
    """Return the evidence within reach, `count` hits or more.

    Every named section that was read comes back (S1-HYB-09), as much of it as the
    answer's budget gives (S1-MIS-03); ranked passages fill the result up to `count`.
    """
    budget = settings.ANSWER_TOKEN_BUDGET * CHARACTERS_A_TOKEN
    sections = SectionsFound()
    with journal.part("sections"):
        sections = find_sections(reach, text, budget=budget)
    found = find(
        reach,
        text,
        tuning=tuning,
        count=count,
        journal=journal,
        vector=vector,
        reranks=reranks,
    )
    return Evidence(with_sections(sections, found.hits, count), found, sections)


def with_sections(
    sections: SectionsFound, ranked: Sequence[Hit], count: int
) -> tuple[Hit, ...]:
    """Return named sections, then ranked passages that do not only repeat them."""
    others = [hit for hit in ranked if not repeats(hit, sections.hits)]
    left = max(count - len(sections.hits), 0)
    return (*sections.hits, *others[:left])


def repeats(hit: Hit, sections: Sequence[Hit]) -> bool:
    """Tell whether a passage's text is given already, inside a named section."""
    place = parse_ref(hit.ref)
    return place is not None and any(
        (named := parse_ref(section.ref)) is not None
        and named[0] == place[0]
        and named[1] <= place[1]
        and place[2] <= named[2]
        for section in sections
    )
