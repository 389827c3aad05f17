"""What is to be told about one search besides its hits."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter

from django.db import DatabaseError, connection, transaction
from django.utils.translation import gettext as _

from retrieval.results import Label

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Journal:
    """Labels, sentences and milliseconds by stage; written as the search goes on."""

    labels: list[Label] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    stage_ms: dict[str, float] = field(default_factory=dict)

    def say(self, label: Label, notice: str) -> None:
        """Add a label and the sentence that explains it, once."""
        if label not in self.labels:
            self.labels.append(label)
        self.note(notice)

    def note(self, notice: str) -> None:
        """Add a sentence, once."""
        if notice not in self.notices:
            self.notices.append(notice)

    def take_over(self, other: "Journal") -> None:
        """Add what another journal holds; the times of a stage are summed."""
        self.labels += [each for each in other.labels if each not in self.labels]
        for notice in other.notices:
            self.note(notice)
        for name, elapsed in other.stage_ms.items():
            self.stage_ms[name] = round(self.stage_ms.get(name, 0.0) + elapsed, 3)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage; a stage that runs several times is summed."""
        started = perf_counter()
        try:
            yield
        finally:
            elapsed = 1000 * (perf_counter() - started)
            self.stage_ms[name] = round(self.stage_ms.get(name, 0.0) + elapsed, 3)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Run a part that a search can do without; a failure is said (REL-X7)."""
        # Within a caller's transaction an error must not spoil the rest of it.
        protected = (
            transaction.atomic() if connection.in_atomic_block else nullcontext()
        )
        with self.stage(name):
            try:
                with protected:
                    yield
            except DatabaseError:
                logger.exception("the part %s of a search failed", name)
                self.say(
                    Label.DEGRADED,
                    _(
                        "A part of the search failed; the results come from the rest "
                        "of it."
                    ),
                )
