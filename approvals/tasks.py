"""What the queue carries for the gate. It may run twice."""

from approvals import rounds
from knowledge.vitals import CLUSTER, leave_sign


def go_round() -> None:
    """Settle, announce, ask again and send whatever is due."""
    leave_sign(CLUSTER)
    rounds.go_round()
