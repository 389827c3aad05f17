"""What a receipt proves: how its bytes are written, signed and checked. Pure.

Nothing here asks the database, the portal or the network, so that a receipt can be
checked years later from its file and a file of public keys, by
`python -m retrieval.check_receipt` or by the page that needs nothing of ours.

The signed part names its words only by hashes over a random salt and the word; salts
and words stand beside it in the file. A purge takes both away and leaves a removal,
signed too, so that what is left still holds and words cannot just be dropped. Times
and shapes are described in docs/receipts.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NoReturn

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

RECEIPT_FORMAT: Final = "strata-receipt/1"
REMOVAL_FORMAT: Final = "strata-removal/1"
FILE_FORMAT: Final = "strata-receipt-file/1"
KEYS_FORMAT: Final = "strata-receipt-keys/1"

# What stands in the place of the receipt before the first one.
BEGINNING: Final = "0" * 64
SALT_BYTES: Final = 16
# A receipt holds a draft, 50 passages and 50 sentences at most; this is far above.
MOST_BYTES: Final = 20_000_000
HASH = re.compile(r"[0-9a-f]{64}")
SIGNATURE = re.compile(r"[0-9a-f]{128}")
SALT = re.compile(rf"[0-9a-f]{{{2 * SALT_BYTES}}}")
MEMBERS: Final = {"format", "sha256", "signature", "signed", "words"}
WORD: Final = {"salt", "text"}
REMOVAL: Final = {"key", "removed_at", "signature"}

Json = dict[str, Any]


class ProofError(ValueError):
    """What was given is no file of receipts or keys; the message says what is wrong."""


# --- Bytes -----------------------------------------------------------------------


def canonical(value: Json) -> bytes:
    """Return the one form of a JSON object that is hashed and signed (RFC 8785).

    Numbers are whole and below 2⁵³, as I-JSON wants them. Raises ProofError for what
    has no such form.
    """
    if any(isinstance(each, float) for each in leaves(value)):
        raise ProofError("A number is not whole.")
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise ProofError(str(error)) from error


def leaves(value: object) -> Iterator[object]:
    """Yield the values of a JSON value that hold no others."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
        else:
            yield each


def read_json(data: bytes, what: str) -> Json:
    """Return the JSON object of a file; raises ProofError with a sentence.

    Numbers that are not whole, names that come twice and all but UTF-8 are refused.
    """
    if len(data) > MOST_BYTES:
        raise ProofError(f"{what} is larger than {MOST_BYTES:,} bytes.")
    try:
        found = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=without_doubles,
            parse_float=refuse_number,
            parse_constant=refuse_number,
        )
    except UnicodeDecodeError as error:
        raise ProofError(f"{what} is not UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        raise ProofError(f"{what} is not JSON at character {error.pos}.") from error
    except RecursionError as error:
        raise ProofError(f"{what} is nested too deeply.") from error
    except ProofError:
        raise
    except ValueError as error:
        raise ProofError(f"{what} holds a number that is too long.") from error
    if not isinstance(found, dict):
        raise ProofError(f"{what} is not a JSON object.")
    return found


def without_doubles(pairs: list[tuple[str, Any]]) -> Json:
    """Return the members of an object, whose names must differ."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ProofError("A name stands twice in one object.")
    return found


def refuse_number(text: str) -> NoReturn:
    """Refuse a number that is not whole."""
    raise ProofError(f"{text} is not a whole number.")


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def commitment(salt: str, text: str) -> str:
    """Return the hash that stands for a text: SHA-256 over the salt and the UTF-8."""
    return digest(bytes.fromhex(salt) + text.encode())


# --- Signing ---------------------------------------------------------------------


def key_id_of(key: Ed25519PublicKey) -> str:
    """Return a key's name: the SHA-256 of its 32 bytes, in hexadecimal."""
    return digest(key.public_bytes_raw())


def sign(key: Ed25519PrivateKey, value: Json) -> str:
    """Return the signature of an object's canonical bytes, in hexadecimal."""
    return key.sign(canonical(value)).hex()


def removal_of(
    receipt_id: str, part: str, words: str, removed_at: str, key_id: str
) -> Json:
    """Return what is signed when the words of one part are removed.

    `words` is the hash that stands for them in the signed part.
    """
    return {
        "format": REMOVAL_FORMAT,
        "receipt": receipt_id,
        "part": part,
        "words": words,
        "removed_at": removed_at,
        "key": key_id,
    }


def holds(key: Ed25519PublicKey, value: Json, signature: str) -> bool:
    """Tell whether a signature is the key's over an object."""
    try:
        key.verify(bytes.fromhex(signature), canonical(value))
    except (InvalidSignature, ProofError):
        return False
    return True


def keys_file(keys: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the file of public keys; rows are {"key", "public_key", "made_at", …}."""
    rows = [dict(row) for row in keys]
    return json.dumps({"format": KEYS_FORMAT, "keys": rows}, indent=2).encode() + b"\n"


def read_keys(data: bytes) -> dict[str, Ed25519PublicKey]:
    """Return the public keys of a file by their names.

    A name is worked out from the key itself. Raises ProofError where the file is none
    of keys.
    """
    found = read_json(data, "The file of keys")
    rows = found.get("keys")
    if found.get("format") != KEYS_FORMAT or not isinstance(rows, list):
        raise ProofError("The file of keys is not one of receipts.")
    keys = {}
    for row in rows:
        public = row.get("public_key") if isinstance(row, dict) else None
        if not isinstance(public, str) or not HASH.fullmatch(public):
            raise ProofError("The file of keys holds something that is no key.")
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        except ValueError as error:
            raise ProofError("The file of keys holds a broken key.") from error
        if row.get("key") != key_id_of(key):
            raise ProofError("The file of keys calls a key by a name that is not its.")
        keys[key_id_of(key)] = key
    return keys


# --- Checking --------------------------------------------------------------------


class Outcome(StrEnum):
    """What a check found."""

    INTACT = "intact"
    CHANGED = "changed"
    # The key is not among those given, so that nothing can be said.
    UNKNOWN_KEY = "unknown_key"


@dataclass(frozen=True, slots=True)
class Problem:
    """What does not hold: the part of the receipt, and a sentence."""

    part: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Check:
    """What a check of one file found.

    `file` is its content, None where it is no receipt's. `removed` holds, by part, when
    its words were removed; that is no problem.
    """

    outcome: Outcome
    problems: tuple[Problem, ...]
    file: Json | None
    removed: Mapping[str, str]

    @property
    def is_intact(self) -> bool:
        """Whether everything holds."""
        return self.outcome is Outcome.INTACT


def check_file(data: bytes, keys: Mapping[str, Ed25519PublicKey]) -> Check:
    """Check a receipt's file against public keys that are trusted; never raises.

    A key that the file itself might hold is not looked at.
    """
    try:
        file = read_json(data, "The file")
        refuse_shape(file)
        is_written_so = canonical(file) == data
    except ProofError as error:
        return Check(Outcome.CHANGED, (Problem("file", str(error)),), None, {})
    problems = []
    if not is_written_so:
        problems.append(
            Problem(
                "file",
                "The bytes are not as a receipt is written: spaces, order or the form "
                "of a character were changed.",
            )
        )
    problems += wrong_words(file)
    problems += wrong_signature(file, keys)
    if [each.part for each in problems] == ["key"]:
        return Check(Outcome.UNKNOWN_KEY, tuple(problems), file, {})
    removed = {}
    for part, row in sorted(file["words"].items()):
        if "removed_at" in row:
            removed[part] = row["removed_at"]
            problems += wrong_removal(file, part, keys)
    outcome = Outcome.CHANGED if problems else Outcome.INTACT
    return Check(outcome, tuple(problems), file, removed)


def refuse_shape(file: Json) -> None:
    """Raise ProofError where a file has not the members of a receipt's."""
    if file.keys() != MEMBERS or file["format"] != FILE_FORMAT:
        raise ProofError("The file is not that of a receipt of this format.")
    if not is_like(HASH, file["sha256"]):
        raise ProofError("The file's sha256 is no hash.")
    if not is_like(SIGNATURE, file["signature"]):
        raise ProofError("The file's signature is none.")
    signed = file["signed"]
    if (
        not isinstance(signed, dict)
        or signed.get("format") != RECEIPT_FORMAT
        or not all(isinstance(signed.get(name), str) for name in ("id", "key"))
        or not isinstance(signed.get("words"), dict)
        or not all(is_like(HASH, each) for each in signed["words"].values())
    ):
        raise ProofError("The signed part is not that of a receipt of this format.")
    words = file["words"]
    if not isinstance(words, dict) or not all(
        is_word(row) or is_removal(row) for row in words.values()
    ):
        raise ProofError("The words are not those of a receipt of this format.")


def is_like(pattern: re.Pattern[str], value: object) -> bool:
    """Tell whether a value is a text of some form."""
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def is_word(row: object) -> bool:
    """Tell whether a row holds a text with its salt."""
    return (
        isinstance(row, dict)
        and row.keys() == WORD
        and is_like(SALT, row["salt"])
        and isinstance(row["text"], str)
    )


def is_removal(row: object) -> bool:
    """Tell whether a row says that a text was removed."""
    return (
        isinstance(row, dict)
        and row.keys() == REMOVAL
        and is_like(HASH, row["key"])
        and is_like(SIGNATURE, row["signature"])
        and isinstance(row["removed_at"], str)
    )


def wrong_words(file: Json) -> Iterator[Problem]:
    """Yield the words that are not those that were signed, part by part."""
    signed, words = file["signed"]["words"], file["words"]
    for part in sorted(signed.keys() | words.keys()):
        if part not in words:
            yield Problem(
                part, "Its words are missing, and nothing says who removed them."
            )
        elif part not in signed:
            yield Problem(part, "It was not part of the receipt when it was signed.")
        elif "text" in words[part]:
            row = words[part]
            if commitment(row["salt"], row["text"]) != signed[part]:
                yield Problem(part, "Its words or their salt were changed.")


def wrong_signature(
    file: Json, keys: Mapping[str, Ed25519PublicKey]
) -> Iterator[Problem]:
    """Yield what is wrong with the signed part, its hash or its signature."""
    signed = file["signed"]
    key = keys.get(signed["key"])
    if digest(canonical(signed)) != file["sha256"]:
        yield Problem("signed", "The signed part, or its hash beside it, was changed.")
    if key is None:
        yield missing_key(signed["key"])
    elif not holds(key, signed, file["signature"]):
        yield Problem("signature", "The signature is not that of the signed part.")


def missing_key(key_id: str) -> Problem:
    """Return the problem of a key that is not among those given."""
    return Problem(
        "key",
        f"It says that it was signed with the key {key_id[:16]}…, which is not in the "
        "file of keys. Nothing can be said about it without that key.",
    )


def wrong_removal(
    file: Json, part: str, keys: Mapping[str, Ed25519PublicKey]
) -> Iterator[Problem]:
    """Yield what is wrong with a note that words were removed."""
    if part not in file["signed"]["words"]:
        return
    row = file["words"][part]
    key = keys.get(row["key"])
    if key is None:
        yield Problem(
            part, "Its words were removed under a key that is not in the file."
        )
        return
    signed = file["signed"]
    words = signed["words"][part]
    said = removal_of(signed["id"], part, words, row["removed_at"], row["key"])
    if not holds(key, said, row["signature"]):
        yield Problem(part, "The note that its words were removed was changed.")
