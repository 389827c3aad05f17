"""`manage.py run_question_set NAME`: ask a set's questions now, and print the figures."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.actions import ActionError
from knowledge.models import User
from retrieval.measuring import carry_out, figures_of, request_run
from retrieval.models import QuestionSet
from retrieval.models.question_set import SetRunState
from retrieval.tuning import (
    CHOICES,
    NAMES,
    NUMBERS,
    Tuning,
    contradictions,
    current,
    legal_value,
    with_values,
)

FIGURES = {
    "ndcg": "nDCG@10",
    "recall": "recall@5",
    "refusal_accuracy": "refusal accuracy",
    "refusal_recall": "refusal recall",
    "false_refusal_rate": "false refusals",
}


class Command(BaseCommand):
    """One run, in this process; it is kept like those from the admin."""

    help = (
        "Ask the questions of a set under the settings that hold, or with others by "
        "--set name=value, and print nDCG@10, recall@5 and how often it refused rightly."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name the set, the reader and the settings."""
        parser.add_argument("name", help="the set's name")
        parser.add_argument(
            "--as",
            dest="user",
            metavar="USER",
            help="whose view is searched; by default whom the set names",
        )
        parser.add_argument(
            "--set",
            dest="values",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="another value of a setting: " + ", ".join(NAMES),
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run it, and say what came of it."""
        question_set = QuestionSet.objects.filter(name=options["name"]).first()
        if question_set is None:
            raise CommandError(f"There is no question set “{options['name']}”.")
        person = self.person(options["user"], question_set)
        tuning = tuned(options["values"])
        try:
            run = request_run(
                question_set, tuning, actor=person, asked_as=person, queued=False
            )
        except ActionError as error:
            raise CommandError(str(error)) from error
        carry_out(run.pk)
        run.refresh_from_db()
        if run.state != SetRunState.DONE:
            raise CommandError(run.reason or f"The run is {run.state}.")
        told = figures_of(run)
        if options["json"]:
            values = {"set": question_set.name, "run": run.pk, **asdict(told)}
            self.stdout.write(json.dumps(values, ensure_ascii=False))
            return
        self.stdout.write(f"{question_set}: {run.total} questions, as {person}")
        for each in options["values"]:
            name, _mark, value = each.partition("=")
            self.stdout.write(f"  {name} = {value}")
        for name, label in FIGURES.items():
            figure = getattr(told, name)
            shown = "not judged" if figure is None else f"{figure:.4f}"
            self.stdout.write(f"  {label:<18}{shown:>10}")

    def person(self, name: str | None, question_set: QuestionSet) -> User:
        """Return who asks."""
        if name is None:
            if question_set.asked_as is None:
                raise CommandError("The set names nobody; say --as USER.")
            return question_set.asked_as
        person = User.objects.filter(username=name, is_active=True).first()
        if person is None:
            raise CommandError(f"There is no active person of the user name {name}.")
        return person


def tuned(given: list[str]) -> Tuning:
    """Return the settings that hold, with the values of NAME=VALUE instead."""
    values = {}
    for each in given:
        name, _mark, said = each.partition("=")
        if name not in NAMES:
            raise CommandError(
                f"There is no setting {name}; there are {', '.join(NAMES)}."
            )
        value = legal_value(name, parsed(name, said))
        if value is None:
            raise CommandError(f"{name} cannot be {said}: {range_of(name)}.")
        values[name] = value
    tuning = with_values(current(), values)
    if sentences := contradictions(tuning):
        raise CommandError(" ".join(sentences))
    return tuning


def parsed(name: str, said: str) -> object:
    """Return a value as its kind is written; the text itself where it is not."""
    if name in CHOICES:
        return said
    try:
        return json.loads(said)
    except ValueError:
        return said


def range_of(name: str) -> str:
    """Return what a setting may be, in words."""
    if name in NUMBERS:
        return f"{NUMBERS[name].least:g} to {NUMBERS[name].most:g}"
    if name in CHOICES:
        return ", ".join(CHOICES[name])
    return "true or false"
