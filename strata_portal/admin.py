"""The admin site: titles and what must not be in it."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _


class PortalAdminSite(admin.AdminSite):
    """Django's admin as the staff's room of the portal."""

    site_header = _("Strata Portal")
    site_title = _("Strata Portal")
    index_title = _("Overview")
