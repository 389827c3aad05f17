"""The staff's pages of searches."""

from retrieval.admin.log import SearchLogAdmin

__all__ = ["SearchLogAdmin"]
