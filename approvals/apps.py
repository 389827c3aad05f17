"""What the documents could not answer, and who settles it."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """The gate through which a gap becomes knowledge: only by a person."""

    name = "approvals"
    verbose_name = "Approvals"
