"""`python -m strata_portal.embedded`: run the embedded PostgreSQL by hand."""

import argparse
import sys

from strata_portal.embedded.place import (
    EmbeddedDatabaseError,
    database_url,
    find_place,
)
from strata_portal.embedded.server import (
    ensure_running,
    run_in_foreground,
    running_pid,
    stop,
)


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m strata_portal.embedded",
        description="The embedded PostgreSQL of Strata Portal.",
    )
    parser.add_argument(
        "verb",
        choices=["start", "stop", "status", "foreground"],
        help="start in the background, stop, tell whether it runs (exit status 1 if "
        "not), or run until this process is ended",
    )
    verb = parser.parse_args().verb
    try:
        if verb == "foreground":
            run_in_foreground()
        if verb == "start":
            sys.stdout.write(f"{ensure_running()}\n")
        elif verb == "stop":
            sys.stdout.write("Stopped.\n" if stop() else "It was not running.\n")
        elif (pid := running_pid(find_place())) is None:
            sys.stdout.write("It is not running.\n")
            return 1
        else:
            sys.stdout.write(f"It runs as process {pid}: {database_url()}\n")
    except EmbeddedDatabaseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
