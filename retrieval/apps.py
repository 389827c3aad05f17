"""How a question finds its evidence."""

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """Search, citations and the doors that agents and readers come through."""

    name = "retrieval"
    verbose_name = "Search"

    def ready(self) -> None:
        """Let the daily upkeep count and delete what is past its time here too."""
        from knowledge import upkeep
        from retrieval.retention import age_log

        upkeep.ALSO.append(age_log)
