"""How much a question is wanted: how often it was asked, and by how many."""

from typing import Final

from django.db.models import Count, Max, Min

from approvals.models import PendingQuestion, Wording

# The fields that are counted.
COUNTS: Final = ("asked_count", "asker_count", "first_asked_at", "last_asked_at")


def count_again(row: PendingQuestion) -> None:
    """Set a question's counts from its wordings and its duplicates'; not saved."""
    counts = Wording.objects.of(row).aggregate(
        asked=Count("pk"),
        askers=Count("caller", distinct=True),
        first=Min("at"),
        last=Max("at"),
    )
    row.asked_count, row.asker_count = counts["asked"], counts["askers"]
    row.first_asked_at = counts["first"] or row.first_asked_at
    row.last_asked_at = counts["last"] or row.last_asked_at
