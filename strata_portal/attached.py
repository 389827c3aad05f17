"""`python -m strata_portal.attached PARENT COMMAND…`: a command that dies with its parent.

A process manager stops what it started; killed itself, it cannot. What it starts
through this module then gets SIGTERM from the kernel, so that nothing is left behind
that holds a port. PARENT is the parent's process id, or 0 where the caller does not
know it beforehand.
"""

import os
import signal
import sys

from strata_portal.embedded import die_with_parent

INIT = 1


def main() -> None:
    """Become the command that the arguments name."""
    if len(sys.argv) < 3:
        sys.exit("usage: python -m strata_portal.attached PARENT COMMAND…")
    parent, command = int(sys.argv[1]), sys.argv[2:]
    die_with_parent(signal.SIGTERM)
    # A parent that died before that line is not told of any more.
    if os.getppid() == INIT or parent not in {0, os.getppid()}:
        sys.exit("Whoever started this has ended already.")
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
