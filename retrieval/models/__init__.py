"""What retrieval keeps beside the corpus."""

from retrieval.models.allowance import RequestAllowance
from retrieval.models.question_set import (
    Question,
    QuestionOutcome,
    QuestionSet,
    SetRun,
    TuningCheck,
)
from retrieval.models.tuning import TuningProposal, TuningRecord

__all__ = [
    "Question",
    "QuestionOutcome",
    "QuestionSet",
    "RequestAllowance",
    "SetRun",
    "TuningCheck",
    "TuningProposal",
    "TuningRecord",
]
