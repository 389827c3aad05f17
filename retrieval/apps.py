"""How a question finds its evidence."""

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """Search, citations and the doors that agents and readers come through."""

    name = "retrieval"
    verbose_name = "Retrieval"
