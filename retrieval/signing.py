"""The keys that receipts are signed with: one private, and all public ones ever used.

`receipt_key` lies beside the product's secret key and is for its owner alone;
`receipt-keys.json` is published. Both are files, since whoever could change the
database must not be able to sign, nor to have a key of their own trusted.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings
from django.utils import timezone

from retrieval.proof import ProofError, key_id_of, keys_file, read_json, read_keys, sign

PRIVATE: Final = "receipt_key"
PUBLIC: Final = "receipt-keys.json"
LOCK: Final = "receipt-keys.lock"


class KeyFileError(Exception):
    """The files of keys cannot be used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Signer:
    """The private key in use, with its name."""

    key: Ed25519PrivateKey
    key_id: str

    def sign(self, value: dict[str, Any]) -> str:
        """Return the signature of an object, in hexadecimal."""
        return sign(self.key, value)


def private_path() -> Path:
    """Return where the private key lies."""
    return Path(settings.VAR_DIR) / PRIVATE


def public_path() -> Path:
    """Return where the public keys lie, those of earlier private keys included."""
    return Path(settings.VAR_DIR) / PUBLIC


def signer() -> Signer:
    """Return the key in use; the first time, one is made.

    The file is read each time, so that a rotation holds in every process at once.
    Raises KeyFileError.
    """
    try:
        pem = private_path().read_bytes()
    except FileNotFoundError:
        ensure_key()
        pem = private_path().read_bytes()
    except OSError as error:
        raise KeyFileError(f"The key of receipts cannot be read: {error}.") from error
    return signer_of(pem)


def signer_of(pem: bytes) -> Signer:
    """Return the key of a file's bytes; raises KeyFileError."""
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError) as error:
        raise KeyFileError(
            f"{private_path()} holds no private key. Bring it back from a backup, or "
            "move it away and run manage.py receipt_key --rotate."
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"{private_path()} holds another kind of key than Ed25519.")
    return Signer(key, key_id_of(key.public_key()))


def published_keys() -> bytes:
    """Return the file of public keys as it is published; raises KeyFileError."""
    try:
        return public_path().read_bytes()
    except FileNotFoundError:
        ensure_key()
        return public_path().read_bytes()
    except OSError as error:
        raise KeyFileError(f"The public keys cannot be read: {error}.") from error


def trusted_keys() -> Mapping[str, Ed25519PublicKey]:
    """Return the public keys that this installation has ever signed with, by name.

    Raises KeyFileError where their file is damaged.
    """
    try:
        return read_keys(published_keys())
    except ProofError as error:
        raise KeyFileError(f"{public_path()}: {error}") from error


# --- Making and changing keys --------------------------------------------------------


def ensure_key() -> str:
    """Make the first key unless there is one; returns the name of the key in use."""
    with alone():
        if private_path().exists():
            return signer_of(private_path().read_bytes()).key_id
        return change_key()


def rotate_key() -> str:
    """Put a new key in use and keep the old one's public half; returns its name."""
    with alone():
        return change_key()


def change_key() -> str:
    """Do it, under the lock: first the public half, so that no signature lacks one."""
    key = Ed25519PrivateKey.generate()
    name = key_id_of(key.public_key())
    now = timezone.now().isoformat(timespec="seconds").replace("+00:00", "Z")
    rows = known_rows()
    for row in rows:
        row["retired_at"] = row.get("retired_at") or now
    rows.append(
        {
            "key": name,
            "public_key": key.public_key().public_bytes_raw().hex(),
            "made_at": now,
            "retired_at": None,
        }
    )
    put(public_path(), keys_file(rows), mode=0o644)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    put(private_path(), pem, mode=0o600)
    return name


def known_rows() -> list[dict[str, Any]]:
    """Return the rows of the public keys' file; raises KeyFileError where it is damaged."""
    try:
        data = public_path().read_bytes()
    except FileNotFoundError:
        return []
    try:
        read_keys(data)
        rows: list[dict[str, Any]] = read_json(data, "The file of keys")["keys"]
    except ProofError as error:
        raise KeyFileError(
            f"{public_path()}: {error} Bring it back from a backup: without it earlier "
            "receipts cannot be checked."
        ) from error
    return rows


def put(path: Path, data: bytes, *, mode: int) -> None:
    """Write a file whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of the key files; two processes may start at once."""
    folder = Path(settings.VAR_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
