"""How a question finds its evidence."""

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """Search, citations and the doors that agents and readers come through."""

    name = "retrieval"
    verbose_name = "Search"

    def ready(self) -> None:
        """Say what the daily upkeep keeps and deletes here, and what a purge erases."""
        from knowledge import upkeep
        from knowledge.purging import erase_with
        from retrieval import opening
        from retrieval.retention import age_log
        from retrieval.snapshots import erase, forget_queries, named_documents

        upkeep.ALSO += [age_log, forget_queries]
        for named in (named_documents, opening.named_documents):
            upkeep.keep_revisions(named)
        for eraser in (erase, opening.erase):
            erase_with(eraser)
