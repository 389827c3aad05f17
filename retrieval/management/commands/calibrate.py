"""Fit the marks of the model in use from questions whose answers are known (D12)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from knowledge.models import EmbeddingSpace, KnowledgeBase, User
from retrieval.calibrating import (
    Ask,
    CalibrationError,
    Fitted,
    Measured,
    ask_all,
    fit_all,
    numbers,
    store,
)
from retrieval.models import QuestionSet
from retrieval.reach import Reach, reader_of
from retrieval.tuning import current


class Command(BaseCommand):
    """`manage.py calibrate`."""

    help = (
        "Fits where a result counts as found, partly found or not found, for the model "
        "in use, and stores it. Questions come from question sets, by name, or from "
        "JSON lines files over a knowledge base: --knowledge-base, --questions and "
        "--unanswerable belong together and may be repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--question-set", action="append", default=[], metavar="NAME"
        )
        parser.add_argument(
            "--knowledge-base", action="append", default=[], metavar="SHORT-NAME"
        )
        parser.add_argument("--questions", action="append", default=[], metavar="FILE")
        parser.add_argument(
            "--unanswerable", action="append", default=[], metavar="FILE"
        )
        parser.add_argument(
            "--write", type=Path, metavar="FILE", help="also write the numbers as JSON"
        )
        parser.add_argument("--by", metavar="USER-NAME", help="who is said to do it")

    def handle(self, *_args: object, **options: Any) -> None:
        """Ask, fit, store and tell."""
        measured = Measured()
        space: EmbeddingSpace | None = None
        names = []
        try:
            for name, reach, asks in self.sets(options):
                space = ask_all(reach, asks, current(), measured) or space
                names.append(name)
                self.stdout.write(f"{name}: asked")
            if space is None:
                raise CommandError("Name a question set, or files with questions.")
            fitted = fit_all(measured)
        except CalibrationError as error:
            raise CommandError(str(error)) from error
        store(space, fitted, sources=", ".join(names), actor=self.actor(options["by"]))
        for each in fitted:
            self.tell(each)
        if options["write"]:
            text = json.dumps(numbers(space, fitted), indent=2) + "\n"
            options["write"].write_text(text, "utf-8")

    def sets(self, options: Any) -> Iterator[tuple[str, Reach, list[Ask]]]:
        """Yield each set's name, reach and questions."""
        for name in options["question_set"]:
            yield from_database(name)
        slugs = options["knowledge_base"]
        given = (options["questions"], options["unanswerable"])
        if not all(len(files) == len(slugs) for files in given):
            raise CommandError(
                "Give --questions and --unanswerable once for each --knowledge-base."
            )
        for slug, questions, unanswerable in zip(slugs, *given, strict=True):
            base = KnowledgeBase.objects.filter(slug=slug).first()
            if base is None:
                raise CommandError(f"There is no knowledge base {slug}.")
            asks = [*read(questions), *read(unanswerable)]
            reach = Reach.of(reader_of(frozenset({base.pk}), None))
            yield f"{slug} ({Path(questions).name})", reach, asks

    def actor(self, name: str | None) -> User | None:
        """Return who does it; None is the system."""
        if name is None:
            return None
        found = User.objects.filter(username=name).first()
        if found is None:
            raise CommandError(f"There is no user {name}.")
        return found

    def tell(self, fitted: Fitted) -> None:
        """Say what was fitted."""
        scale = fitted.scale
        self.stdout.write(
            f"{scale.basis}: medium at {scale.medium:.4f}, high at {scale.high:.4f}, "
            f"from {fitted.answerable} answerable and {fitted.unanswerable} "
            f"unanswerable questions; held out: {fitted.measured['held_out']}"
        )


def from_database(name: str) -> tuple[str, Reach, list[Ask]]:
    """Return a question set's reach and questions."""
    found = QuestionSet.objects.filter(name=name).first()
    if found is None:
        raise CommandError(f"There is no question set {name!r}.")
    pks = frozenset(found.knowledge_bases.values_list("pk", flat=True))
    asks = [
        Ask(text, is_answerable)
        for text, is_answerable in found.questions.values_list("text", "is_answerable")
    ]
    return name, Reach.of(reader_of(pks, None)), asks


def read(path: str) -> list[Ask]:
    """Return the questions of a JSON lines file, less adversarial ones.

    Those ask for a fact that the right passage does not hold, which no score over whole
    passages can tell; they would only blur the marks.
    """
    try:
        rows = [
            json.loads(line)
            for line in Path(path).read_text("utf-8").splitlines()
            if line.strip()
        ]
        return [
            Ask(row["question"], row.get("answerable", True))
            for row in rows
            if row.get("type") != "adversarial"
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(
            f"{path} is no JSON lines file with a 'question' in each line: {error}"
        ) from error
