"""How a question finds its evidence."""

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """Search, citations and the doors that agents and readers come through."""

    name = "retrieval"
    verbose_name = "Search"

    def ready(self) -> None:
        """Say what is kept, erased and noted here when a source changes or goes."""
        from knowledge import dependents, upkeep
        from knowledge.purging import erase_with
        from retrieval import impact, opening
        from retrieval.retention import age_log
        from retrieval.snapshots import erase, forget_queries, named_documents

        upkeep.ALSO += [impact.forget_looks, age_log, forget_queries]
        for named in (named_documents, opening.named_documents):
            upkeep.keep_revisions(named)
        for eraser in (erase, opening.erase, impact.erase):
            erase_with(eraser)
        dependents.removing.append(impact.report_removal)
        dependents.published.append(impact.report_publication)
