"""`manage.py doctor`: say what is wrong with this installation, and what to do."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from strata_portal.doctor import Finding, Level, examine


class Command(BaseCommand):
    """Prints one line for each finding; the exit status is 1 if one is a problem."""

    help = "Say what is wrong with this installation, and what to do about it."
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Print the findings as they come."""
        problems = 0
        for finding in examine():
            problems += finding.level is Level.PROBLEM
            self.stdout.write(self.line(finding))
        if problems:
            noun = "problem" if problems == 1 else "problems"
            self.stdout.write(self.style.ERROR(f"{problems} {noun}."))
            sys.exit(1)
        self.stdout.write(self.style.SUCCESS("No problem found."))

    def line(self, finding: Finding) -> str:
        """Return the finding as a line, its remedy below it."""
        styles = {
            Level.GOOD: self.style.SUCCESS,
            Level.NOTE: self.style.WARNING,
            Level.PROBLEM: self.style.ERROR,
        }
        word = styles[finding.level](f"{finding.level:>7}")
        remedy = f"\n         {finding.remedy}" if finding.remedy else ""
        return f"{word}  {finding.sentence}{remedy}"
