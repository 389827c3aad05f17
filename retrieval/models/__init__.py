"""What retrieval keeps beside the corpus."""

from retrieval.models.allowance import RequestAllowance
from retrieval.models.calibration import Calibration
from retrieval.models.feedback import Feedback, PassageFeedback
from retrieval.models.impact import ImpactReport, ImpactSpan
from retrieval.models.interaction import Interaction
from retrieval.models.learning import LearnedItem, LearningSignal, LearningState
from retrieval.models.legacy import FormerReceipt
from retrieval.models.log import SearchDay, SearchLog
from retrieval.models.question_set import (
    Question,
    QuestionOutcome,
    QuestionSet,
    SetRun,
    TuningCheck,
)
from retrieval.models.receipt import Receipt, ReceiptRead, ReceiptWords
from retrieval.models.tuning import SearchLab, TuningProposal, TuningRecord
from retrieval.models.turn import Snapshot, Turn, TurnStep

__all__ = [
    "Calibration",
    "Feedback",
    "FormerReceipt",
    "ImpactReport",
    "ImpactSpan",
    "Interaction",
    "LearnedItem",
    "LearningSignal",
    "LearningState",
    "PassageFeedback",
    "Question",
    "QuestionOutcome",
    "QuestionSet",
    "Receipt",
    "ReceiptRead",
    "ReceiptWords",
    "RequestAllowance",
    "SearchDay",
    "SearchLab",
    "SearchLog",
    "SetRun",
    "Snapshot",
    "TuningCheck",
    "TuningProposal",
    "TuningRecord",
    "Turn",
    "TurnStep",
]
