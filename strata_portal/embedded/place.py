"""Where the embedded PostgreSQL lies, and which system user it runs as."""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROLE = DATABASE = "strata"
PORT = 5432
SERVER_USERS = ("strata-portal", "postgres")
SHARED_PLACES = Path("/var/lib/strata-portal")
# The kernel's limit for the path of a socket, less the final zero byte.
SOCKET_PATH_BYTES = 107

ROOT = Path(__file__).resolve().parent.parent.parent


class EmbeddedDatabaseError(Exception):
    """The embedded PostgreSQL cannot do this; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one embedded PostgreSQL keeps everything."""

    folder: Path

    @property
    def data(self) -> Path:
        """The data folder, of mode 0700."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """What the server says when no process manager listens."""
        return self.folder / "postgres.log"

    @property
    def settings(self) -> Path:
        """The server's settings, written anew at each start."""
        return self.folder / "postgresql.conf"

    @property
    def socket_folder(self) -> Path:
        """The socket's folder, of mode 0700; elsewhere where the path is too long."""
        folder = self.folder / "socket"
        if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= SOCKET_PATH_BYTES:
            return folder
        return Path("/tmp") / f"strata-portal-{short_hash(self.folder)}"  # noqa: S108


def short_hash(path: Path) -> str:
    """Return 16 hexadecimal digits that stand for `path`."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def database_url() -> str:
    """Return the address of the embedded PostgreSQL; it need not be running."""
    host = quote(str(find_place().socket_folder), safe="")
    return f"postgresql://{ROLE}@{host}:{PORT}/{DATABASE}"


def find_place() -> Place:
    """Return where the database lies, or will lie once it is made.

    As root below a folder that other users may not enter, such as /root, that is a
    folder under /var/lib: PostgreSQL refuses to run as root, and no folder that we
    did not make is opened for it. `var/postgres` is then a link to it.
    """
    if chosen := chosen_folder():
        return Place(Path(chosen).resolve())
    usual = usual_folder()
    if usual.exists() or os.geteuid() != 0 or others_may_enter(usual.parent):
        return Place(usual.resolve())
    return Place(SHARED_PLACES.resolve() / short_hash(usual))


def chosen_folder() -> str:
    """Return the folder that the operator chose, or an empty string."""
    return os.environ.get("STRATA_POSTGRES_DIR", "").strip()


def usual_folder() -> Path:
    """Return `var/postgres`; where it is a link, the link."""
    var = os.environ.get("STRATA_VAR_DIR", "").strip() or ROOT / "var"
    return Path(var).resolve() / "postgres"


def others_may_enter(folder: Path) -> bool:
    """Tell whether any user may pass through `folder` and all folders above it.

    Folders that are yet to be made are left out.
    """
    return all(
        each.stat().st_mode & stat.S_IXOTH
        for each in (folder, *folder.parents)
        if each.exists()
    )


def not_ours(place: Place) -> str:
    """Return the sentence for a person whose user may not use this database."""
    return (
        f"The database in {place.folder} belongs to another user. Run this as that "
        "user or as root, or set STRATA_POSTGRES_DIR to a folder of your own."
    )


# --- The system user ----------------------------------------------------------


def server_user(place: Place) -> pwd.struct_passwd:
    """Return the system user that the server runs as.

    An ordinary user runs it as themself. As root it is the owner of the data that is
    there, else a user of SERVER_USERS, made if there is none of them.
    """
    owner = place.data.stat().st_uid if place.data.exists() else None
    if os.geteuid() != 0:
        if owner not in {None, os.geteuid()}:
            raise EmbeddedDatabaseError(not_ours(place))
        return known_user(os.geteuid())
    if owner == 0:
        raise EmbeddedDatabaseError(
            f"{place.data} belongs to root, and PostgreSQL does not run as root. "
            "Give it and all in it to an ordinary user with chown -R."
        )
    if owner is not None:
        return known_user(owner)
    for name in SERVER_USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return make_server_user()


def known_user(number: int) -> pwd.struct_passwd:
    """Return the entry of user `number`; PostgreSQL needs one, with a name."""
    try:
        return pwd.getpwuid(number)
    except KeyError as error:
        raise EmbeddedDatabaseError(
            f"The system knows no user with the number {number}, and PostgreSQL needs "
            "one with a name. Add it to /etc/passwd, or set DATABASE_URL."
        ) from error


def make_server_user() -> pwd.struct_passwd:
    """Add the system user for the server; it cannot log in and has no home."""
    name = SERVER_USERS[0]
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise EmbeddedDatabaseError(
            "PostgreSQL does not run as root, and there is no useradd to add a user "
            f"for it. Add a system user named {name}, or set DATABASE_URL."
        )
    options = ["--no-create-home", "--home-dir=/nonexistent"]
    options += ["--shell=/usr/sbin/nologin"]
    subprocess.run([program, "--system", *options, name], check=True)
    return pwd.getpwnam(name)


# --- The folders --------------------------------------------------------------


def make_place(place: Place) -> None:
    """Make the place unless it is there; no folder that was there is changed."""
    as_root = os.geteuid() == 0
    missing = [
        each for each in (place.folder, *place.folder.parents) if not each.exists()
    ]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        if as_root:
            folder.chmod(0o755)
    if missing and not as_root:
        place.folder.chmod(0o700)
    if as_root and not place.data.exists() and not others_may_enter(place.folder):
        raise EmbeddedDatabaseError(
            "PostgreSQL does not run as root, and other users may not enter "
            f"{place.folder}. Set STRATA_POSTGRES_DIR to a folder that they may "
            f"enter, such as {SHARED_PLACES}/main, or leave it unset."
        )
    link = usual_folder()
    if not chosen_folder() and place.folder != link.resolve():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place.folder)


def make_private(folder: Path, user: pwd.struct_passwd) -> None:
    """Make `folder` for `user` alone; one that is there must be just that."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        if os.geteuid() == 0:
            os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)
    found = folder.lstat()
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != user.pw_uid
        or stat.S_IMODE(found.st_mode) & 0o077
    ):
        raise EmbeddedDatabaseError(
            f"{folder} must be a folder of mode 0700 that belongs to {user.pw_name}. "
            "Remove it, and it is made anew."
        )
