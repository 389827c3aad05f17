"""The staff's pages of searches."""

from retrieval.admin.calibration import CalibrationAdmin
from retrieval.admin.feedback import FeedbackAdmin
from retrieval.admin.impact import ImpactReportAdmin
from retrieval.admin.lab import SearchLabAdmin
from retrieval.admin.learning import LearnedItemAdmin
from retrieval.admin.log import SearchLogAdmin
from retrieval.admin.question_sets import QuestionAdmin, QuestionSetAdmin
from retrieval.admin.receipts import ReceiptAdmin
from retrieval.admin.set_runs import SetRunAdmin
from retrieval.admin.tuning import TuningRecordAdmin

__all__ = [
    "CalibrationAdmin",
    "FeedbackAdmin",
    "ImpactReportAdmin",
    "LearnedItemAdmin",
    "QuestionAdmin",
    "QuestionSetAdmin",
    "ReceiptAdmin",
    "SearchLabAdmin",
    "SearchLogAdmin",
    "SetRunAdmin",
    "TuningRecordAdmin",
]
