"""`python -m strata_portal.attached COMMAND…`: a command that dies with its parent.

A process manager stops what it started; killed itself, it cannot. What it starts
through this module then gets SIGTERM from the kernel, so that nothing is left behind
that holds a port.
"""

import os
import signal
import sys

from strata_portal.embedded import die_with_parent


def main() -> None:
    """Become the command that the arguments name."""
    command = sys.argv[1:]
    if not command:
        sys.exit("Name a command: python -m strata_portal.attached COMMAND…")
    die_with_parent(signal.SIGTERM)
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
