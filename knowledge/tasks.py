"""What the queue carries: ids. Every task may run twice.

Each begins with a sign of life, so that a cluster with much to do needs no other.
"""

from knowledge import indexes
from knowledge.ingest import run_ingest
from knowledge.reindexing import rewrite_terms
from knowledge.upkeep import clean
from knowledge.vitals import CLUSTER, UPKEEP, leave_sign, shown


def beat() -> None:
    """Leave a sign of life."""
    leave_sign(CLUSTER)


def ingest_source(run_id: int) -> str:
    """Carry one ingest run as far as it goes."""
    leave_sign(CLUSTER)
    return run_ingest(run_id)


def sweep() -> None:
    """Delete what is past its keeping time, and files that no row names."""
    leave_sign(CLUSTER)
    with shown(UPKEEP):
        clean()


def tune() -> None:
    """Bring the indexes up to what is to be found; may take minutes.

    That is the terms of the keyword branch, and the vector indexes of large knowledge
    bases.
    """
    leave_sign(CLUSTER)
    with shown(UPKEEP):
        rewrite_terms()
        indexes.tune()
