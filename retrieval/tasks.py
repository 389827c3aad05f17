"""What the queue carries of retrieval: ids. Every task may run twice."""

from knowledge.vitals import CLUSTER, leave_sign
from retrieval import measuring, promoter


def run_question_set(run_id: int) -> str:
    """Carry one run of a question set as far as it goes."""
    leave_sign(CLUSTER)
    return measuring.carry_out(run_id)


def promote() -> str:
    """Learn from what was asked since the last run."""
    leave_sign(CLUSTER)
    done = promoter.promote()
    return ", ".join(f"{name}: {count}" for name, count in done.items() if count)
