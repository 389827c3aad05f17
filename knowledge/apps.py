"""What we know and who may see it."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class KnowledgeConfig(AppConfig):
    """Knowledge bases, their sources and passages, and the one access rule."""

    name = "knowledge"
    verbose_name = "Knowledge"

    def ready(self) -> None:
        """Keep the ready roles in place.

        The roles are rows that belong to the product, like Django's permission
        rows, and are made at the same moment: after migrations, and again after a
        flush. Django offers no other hook for that.
        """
        from knowledge.roles import ensure_roles

        post_migrate.connect(ensure_roles, dispatch_uid="knowledge.ensure_roles")
