"""What retrieval keeps beside the corpus."""

from retrieval.models.allowance import RequestAllowance

__all__ = ["RequestAllowance"]
