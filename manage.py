#!/usr/bin/env python3
"""Django's command line for Strata Portal."""

import os
import sys


def main() -> None:
    """Run the administrative command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "strata_portal.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
