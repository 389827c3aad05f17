"""The project's own app, and the admin site it puts in place of Django's."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class PortalConfig(AppConfig):
    """The only app that knows all the others."""

    name = "strata_portal"

    def ready(self) -> None:
        """Register the system checks."""
        from strata_portal import checks

        checks.register_all()


class PortalAdminConfig(AdminConfig):
    """Django's admin with our site."""

    default_site = "strata_portal.admin.PortalAdminSite"
