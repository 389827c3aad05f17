"""How a question finds its evidence."""

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """Search, citations and the doors that agents and readers come through."""

    name = "retrieval"
    verbose_name = "Search"

    def ready(self) -> None:
        """Say what the upkeep does here, what a purge erases, and what routes.

        And what is noted here when a source changes or goes.
        """
        from knowledge import dependents, upkeep
        from knowledge.purging import erase_with
        from retrieval import impact, opening, promoter, routing
        from retrieval.asking import followups
        from retrieval.learning import affinity
        from retrieval.rating import rating_offer
        from retrieval.retention import age_log
        from retrieval.snapshots import erase, forget_queries, named_documents

        upkeep.ALSO += [
            impact.forget_looks,
            age_log,
            forget_queries,
            promoter.forget_signals,
        ]
        upkeep.EVERY.append((promoter.LOOK_SECONDS, promoter.queue_if_due))
        routing.affinities.append(affinity)
        followups.append(rating_offer)
        for named in (named_documents, opening.named_documents):
            upkeep.keep_revisions(named)
        for eraser in (erase, opening.erase, impact.erase, promoter.erase):
            erase_with(eraser)
        dependents.removing.append(impact.report_removal)
        dependents.published.append(impact.report_publication)
