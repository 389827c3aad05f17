"""What lies in a place: the database files and the server's settings."""

import os
import pwd
import shutil
from pathlib import Path

from strata_portal.embedded.place import (
    DATABASE,
    PORT,
    ROLE,
    EmbeddedDatabaseError,
    Place,
    make_private,
)
from strata_portal.embedded.programs import (
    MAJOR_VERSION,
    package_version,
    run_as,
    server_programs,
)

MEBIBYTE = 1024 * 1024
LOG_BYTES = 10 * MEBIBYTE


def make_ready(place: Place, user: pwd.struct_passwd) -> Path:
    """Bring the place into the state that a start needs; return the programs' folder.

    The caller holds the place's lock, and no server runs.
    """
    programs = server_programs(place)
    version = place.folder / "version"
    if not place.data.exists():
        make_database(place, user, programs)
        version.write_text(package_version(), encoding="ascii")
    check_major_version(place)
    if not version.exists() or version.read_text("ascii") != package_version():
        for database in ("template1", DATABASE):
            statement = "ALTER EXTENSION vector UPDATE"
            run_alone(place.data, user, programs, database, [statement])
        version.write_text(package_version(), encoding="ascii")
    make_private(place.socket_folder, user)
    write_settings(place, user)
    return programs


def make_database(place: Place, user: pwd.struct_passwd, programs: Path) -> None:
    """Make the data folder, with our role and database; all of it, or nothing.

    Texts compare and fold by PostgreSQL's own Unicode tables, not the system's, so
    that an upgrade of the system breaks no index. The extension goes into the
    template, so that the role, no superuser, finds it in each database it makes.
    """
    making = place.folder / "data-being-made"
    shutil.rmtree(making, ignore_errors=True)
    make_private(making, user)
    run_as(
        user,
        [
            str(programs / "initdb"),
            f"--pgdata={making}",
            "--username=postgres",
            "--auth-local=peer",
            "--auth-host=reject",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
            *([] if is_durable() else ["--no-sync"]),
        ],
        failure=f"The database could not be made in {place.folder}.",
    )
    statements = [
        "CREATE EXTENSION vector",
        f"CREATE ROLE {ROLE} LOGIN CREATEDB",
        f"CREATE DATABASE {DATABASE} OWNER {ROLE}",
    ]
    run_alone(making, user, programs, "template1", statements)
    making.rename(place.data)


def run_alone(
    data: Path,
    user: pwd.struct_passwd,
    programs: Path,
    database: str,
    statements: list[str],
) -> None:
    """Run statements as the superuser while no server runs; the first error ends it."""
    options = ["-c", "exit_on_error=on", "-c", "log_checkpoints=off"]
    run_as(
        user,
        [str(programs / "postgres"), "--single", "-D", str(data), *options, database],
        failure=f"The database in {data.parent} could not be prepared.",
        typed="".join(f"{statement}\n" for statement in statements),
    )


def check_major_version(place: Place) -> None:
    """Refuse data of another major version, which this server cannot read."""
    made_by = (place.data / "PG_VERSION").read_text(encoding="ascii").strip()
    if made_by != MAJOR_VERSION:
        raise EmbeddedDatabaseError(
            f"The database in {place.folder} was made by PostgreSQL {made_by}, and "
            f"this is {MAJOR_VERSION}. Dump it with the release that made it, move "
            "the folder away, start again, and restore the dump."
        )


def make_log(place: Place, user: pwd.struct_passwd) -> None:
    """Make a log file that the server's user can write, and keep it small."""
    if place.log.exists() and place.log.stat().st_size > LOG_BYTES:
        place.log.replace(place.log.with_suffix(".log.1"))
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW
    log = os.open(place.log, flags, 0o600)
    if os.geteuid() == 0:
        os.fchown(log, user.pw_uid, user.pw_gid)
    os.close(log)


# --- Settings -----------------------------------------------------------------


def is_durable() -> bool:
    """Tell whether commits must survive a power cut; tests do without."""
    value = os.environ.get("STRATA_POSTGRES_DURABLE", "").strip().lower()
    return value not in {"false", "0", "no", "off"}


def write_settings(place: Place, user: pwd.struct_passwd) -> None:
    """Write the server's settings and who may enter; neither holds a secret."""
    callers = {pwd.getpwuid(os.geteuid()).pw_name, user.pw_name}
    pairs = "".join(f'{ROLE} "{caller}" {ROLE}\n' for caller in sorted(callers))
    entrance = place.folder / "pg_hba.conf"
    names = place.folder / "pg_ident.conf"
    write_readable(names, pairs)
    write_readable(entrance, f"local all {ROLE} peer map={ROLE}\n")
    shared = shared_buffers()
    settings = {
        "hba_file": str(entrance),
        "ident_file": str(names),
        "listen_addresses": "",
        "unix_socket_directories": in_double_quotes(place.socket_folder),
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "max_connections": "100",
        "shared_buffers": f"{shared}MB",
        "effective_cache_size": f"{4 * shared}MB",
        "work_mem": "16MB",
        "maintenance_work_mem": "256MB",
        "max_wal_size": "1GB",
        "random_page_cost": "1.1",
        # Our queries take milliseconds; compiling one takes longer.
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
        "log_checkpoints": "off",
        "lc_messages": "C",
        "default_text_search_config": "pg_catalog.simple",
        # Questions and documents are in statements, parameters and the details of
        # an error, and must not get into a log.
        "log_statement": "none",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }
    if not is_durable():
        settings |= {
            "fsync": "off",
            "full_page_writes": "off",
            "synchronous_commit": "off",
        }
    lines = (f"{name} = {in_quotes(value)}\n" for name, value in settings.items())
    write_readable(place.settings, "".join(lines))


def shared_buffers() -> int:
    """Return the server's own cache in MiB: a sixteenth of the memory, within bounds.

    A test's server gets little, since several may run at once.
    """
    if not is_durable():
        return 128
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(128, min(1024, memory // 16 // MEBIBYTE))


def in_quotes(value: str) -> str:
    """Return a value as PostgreSQL's settings files write it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def in_double_quotes(path: Path) -> str:
    """Return one member of a list of paths; it may hold commas and spaces."""
    return '"' + str(path).replace('"', '""') + '"'


def write_readable(path: Path, text: str) -> None:
    """Write a file at once, readable for the server and writable for us alone."""
    making = path.with_suffix(".new")
    making.write_text(text, encoding="utf-8")
    making.chmod(0o644)
    making.replace(path)
