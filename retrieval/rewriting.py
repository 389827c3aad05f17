"""One question, several searches in the documents' own terms (S1-QRW).

The question as written is always searched, and first. Without a language model it is
searched alone.
"""

from dataclasses import dataclass
from time import perf_counter

from knowledge.permissions import Reader
from retrieval.journal import Journal
from retrieval.reach import Reach


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The searches that a question becomes.

    `queries` begins with the question as written and names none twice. `by` tells whose
    the others are: "model", "learned", or "" where there are none. `milliseconds` is
    what it took to get them.
    """

    queries: tuple[str, ...]
    by: str = ""
    milliseconds: float = 0.0


def rewrite(reader: Reader, question: str, reach: Reach, journal: Journal) -> Rewrite:
    """Return the searches for a cleaned question within a reader's reach."""
    started = perf_counter()
    with journal.stage("rewrite"):
        queries = (question,)
    return Rewrite(queries, milliseconds=1000 * (perf_counter() - started))
