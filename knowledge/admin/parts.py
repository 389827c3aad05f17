"""What several of the staff's pages say in the same way."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.options import ModelAdmin
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from knowledge.models import Source
from knowledge.permissions import Reader
from knowledge.scoping import actor_of

# Digits of the largest key that the database can hold, less one.
KEY_DIGITS = 18


def is_key(text: str) -> bool:
    """Return whether a text from an address can be a row's key."""
    return text.isascii() and text.isdecimal() and len(text) <= KEY_DIGITS


@dataclass(frozen=True, slots=True)
class Reading:
    """Where the person at hand reads a source as readers do.

    Without `url` they cannot, and `why` is a sentence.
    """

    url: str
    why: str


def reading_of(request: HttpRequest, source: Source) -> Reading:
    """Return the portal's page of a source, or why it does not open.

    Who administers a knowledge base has no right to read it by that (D27).
    """
    reader = Reader.for_user(actor_of(request))
    if source.knowledge_base_id not in reader.searchable:
        why = _(
            "The portal does not show it to you: you are not granted to search %(name)s."
        )
        return Reading("", why % {"name": source.knowledge_base})
    if not source.enabled:
        return Reading("", _("No reader finds it: it is switched off."))
    if source.expires_at is not None and source.expires_at <= timezone.now():
        return Reading("", _("No reader finds it: it has expired."))
    if not source.documents.filter(is_current=True).exists():
        return Reading("", _("No reader finds it yet: nothing of it is indexed."))
    return Reading(reverse("portal:source", args=[source.public_id]), "")


def deletion_of(
    page: ModelAdmin[Any], request: HttpRequest, rows: Collection[Any]
) -> tuple[dict[str, int], set[str], list[str]]:
    """Return how many rows go, what right is missing, and nothing that is in the way.

    The last three of what `ModelAdmin.get_deleted_objects` returns.
    """
    opts = page.opts
    missing: set[str] = set()
    if not all(page.has_delete_permission(request, row) for row in rows):
        missing.add(str(opts.verbose_name))
    name = opts.verbose_name if len(rows) == 1 else opts.verbose_name_plural
    return {str(name): len(rows)}, missing, []
