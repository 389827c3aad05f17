"""What the apps above this one do and say when a source's text changes or goes.

They know what rests on it: citations, receipts, answers. Each adds its functions when
it is loaded.
"""

import logging
from collections.abc import Callable, Collection

from django.db import DatabaseError, transaction
from django.http import HttpRequest

from knowledge.models import Source, User
from knowledge.runs import is_weather

logger = logging.getLogger(__name__)

# Called first in the transaction that deletes sources, with their ids: what an app holds
# of its own together with a source, it holds before the source.
holding: list[Callable[[Collection[int]], object]] = []
# Called in the transaction that deletes a source, while all of it is still there.
removing: list[Callable[[Source, User | None], object]] = []
# Called with a source's id once a run has published it. A run that was killed in between
# calls them again, so they may be called twice.
published: list[Callable[[int], object]] = []
# What the pages say that delete a source: rendered parts of a page, for whoever looks.
warnings: list[Callable[[HttpRequest, Source], str]] = []


def hold_before(source_ids: Collection[int]) -> None:
    """Have everybody hold what rests on sources that are about to be held."""
    for function in holding:
        function(source_ids)


def tell_removing(source: Source, actor: User | None) -> None:
    """Have everybody note what goes along with a source."""
    for function in removing:
        function(source, actor)


def tell_published(source_id: int) -> None:
    """Have everybody note what a new text has changed.

    The text is live by then: a note that fails is said in the server's log and costs
    nobody the ingest. Raises DatabaseError alone, where the run is to wait and call
    again.
    """
    for function in published:
        try:
            with transaction.atomic():
                function(source_id)
        except Exception as error:
            if isinstance(error, DatabaseError) and is_weather(error):
                raise
            logger.exception("what source %s changed could not be noted", source_id)


def warnings_about(request: HttpRequest, source: Source) -> list[str]:
    """Return what is to be read before a source is deleted."""
    return [function(request, source) for function in warnings]
