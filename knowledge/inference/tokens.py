"""Token vectors, packed: what late interaction (MaxSim, D11) compares.

A model's token vectors lie in a narrow cone, so they are first *centred* by a fixed
mean that belongs to the model and brought to unit length, then turned by a fixed
rotation that spreads every vector evenly over its coordinates. After that each
coordinate is close to a normal distribution, and a passage's vectors keep two bits
each (the four levels that are best for that distribution); a query's vectors stay in
half precision. Both rest in the rotated space, where a product is what it was before.

Layout of packed bytes, little-endian: u8 version 1, u8 bits per coordinate (2 or 16),
u16 dimension, u16 tokens; u16 end of each token in its text (characters, capped at
65,535: a token covers what lies between the end before it and its own); then the
coordinates of one token after the other, four in a byte for a passage, lowest first,
or one half-precision float each for a query.

Only the tokens of the text itself are kept, neither those of the prefix nor the
special ones: with them MaxSim ranked worse. ``docs/models.md`` has the measurements
behind these choices. This module needs numpy alone, so web and worker may use it.
"""

import functools
import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

TOKEN_FORMAT = "c2/1"  # noqa: S105 (tokens of a text, not a password)

Floats = npt.NDArray[np.float32]

_HEADER = struct.Struct("<BBHH")
_VERSION = 1
_PASSAGE_BITS = 2
_QUERY_BITS = 16
# The best four levels for a standard normal distribution (Lloyd-Max).
_LEVELS = np.array([-1.510, -0.4528, 0.4528, 1.510], dtype=np.float32)
_THRESHOLD = (1.510 + 0.4528) / 2
_SHIFTS = np.array([0, 2, 4, 6], dtype=np.uint8)
# The four coordinates of each possible byte.
_DECODED = _LEVELS[(np.arange(256, dtype=np.uint8)[:, None] >> _SHIFTS) & 3]


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Unpacked: unit vectors in the rotated space, and where each token ends.

    ``vectors`` has the shape (tokens, dimension). ``ends`` has one character offset
    for each token.
    """

    vectors: Floats
    ends: tuple[int, ...]


def can_pack(dimension: int) -> bool:
    """Whether token vectors of this length have a packed form."""
    return 0 < dimension <= 0xFFFF and dimension % 4 == 0


def pack_passage(vectors: Floats, ends: Sequence[int], mean: Floats) -> bytes:
    """Pack a passage's token vectors as the model made them: (tokens, dimension).

    Raises:
        ValueError: the numbers of vectors and ends differ, or there are too many.
    """
    turned = centre_and_turn(vectors, mean)
    # The vectors have unit length, so this is the spread of their coordinates.
    threshold = np.float32(_THRESHOLD / np.sqrt(turned.shape[1]))
    codes = (turned > -threshold).view(np.uint8)
    codes += turned > 0
    codes += turned > threshold
    body = (
        codes[:, 0::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4 | codes[:, 3::4] << 6
    ).tobytes()
    return _header(_PASSAGE_BITS, turned.shape) + _packed_ends(turned, ends) + body


def pack_query(vectors: Floats, ends: Sequence[int], mean: Floats) -> bytes:
    """Pack a query's token vectors as the model made them: (tokens, dimension).

    Raises:
        ValueError: the numbers of vectors and ends differ, or there are too many.
    """
    turned = centre_and_turn(vectors, mean)
    body = turned.astype("<f2").tobytes()
    return _header(_QUERY_BITS, turned.shape) + _packed_ends(turned, ends) + body


def unpack(packed: bytes) -> TokenVectors:
    """Unpack a passage's or a query's token vectors.

    Raises:
        ValueError: the bytes are not whole or of another version.
    """
    try:
        version, bits, dimension, count = _HEADER.unpack_from(packed)
    except struct.error as error:
        raise ValueError("packed token vectors are too short") from error
    ends_bytes = 2 * count
    length = _HEADER.size + ends_bytes + count * dimension * bits // 8
    if version != _VERSION or bits not in (_PASSAGE_BITS, _QUERY_BITS):
        raise ValueError("packed token vectors are of a version unknown here")
    if len(packed) != length:
        raise ValueError(f"packed token vectors of {len(packed)} bytes, not {length}")
    at = _HEADER.size
    ends = np.frombuffer(packed, "<u2", ends_bytes // 2, at).tolist()
    at += ends_bytes
    if bits == _QUERY_BITS:
        halves = np.frombuffer(packed, "<f2", count * dimension, at)
        vectors = halves.astype(np.float32)
    else:
        vectors = _DECODED.take(np.frombuffer(packed, np.uint8, -1, at), axis=0)
    return TokenVectors(_to_unit(vectors.reshape(count, dimension)), tuple(ends))


def token_count(packed: bytes) -> int:
    """Return how many tokens packed vectors, or their first bytes, stand for."""
    return int(_HEADER.unpack_from(packed)[3]) if packed else 0


def maxsim(query: bytes, passage: bytes) -> float:
    """Compute ``best_match`` of a packed query and a packed passage.

    Raises:
        ValueError: one of the two is broken, or their dimensions differ.
    """
    return best_match(unpack(query).vectors, unpack(passage).vectors)


def best_match(query: Floats, passage: Floats, weights: Floats | None = None) -> float:
    """Compute MaxSim: the mean over the query's tokens of each one's best cosine.

    ``weights`` (one for each of the query's tokens, not negative) make it a weighted
    mean. A slice of a passage stands for a sentence. Returns 0 when either has no
    tokens.

    Raises:
        ValueError: the dimensions differ.
    """
    if query.shape[1] != passage.shape[1]:
        raise ValueError(
            f"token vectors of dimension {query.shape[1]} and {passage.shape[1]}"
        )
    if len(query) == 0 or len(passage) == 0:
        return 0.0
    best = (query @ passage.T).max(axis=1)
    return float(np.average(best, weights=weights))


def shifted(vectors: Floats, by: Floats) -> Floats:
    """Move unit vectors in the rotated space and bring them back to unit length."""
    return _to_unit(vectors + by)


def _header(bits: int, shape: tuple[int, ...]) -> bytes:
    count, dimension = shape
    if count > 0xFFFF or not can_pack(dimension):
        raise ValueError(f"{count} token vectors of {dimension} cannot be packed")
    return _HEADER.pack(_VERSION, bits, dimension, count)


def _packed_ends(vectors: Floats, ends: Sequence[int]) -> bytes:
    if len(vectors) != len(ends):
        raise ValueError(f"{len(vectors)} token vectors but {len(ends)} ends")
    capped = np.minimum(np.asarray(ends, dtype=np.int64), 0xFFFF).astype("<u2")
    return bytes(capped.tobytes())


def _to_unit(vectors: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    unit: Floats = vectors / np.maximum(lengths, np.float32(1e-9))[:, None]
    return unit


def centre_and_turn(vectors: Floats, mean: Floats) -> Floats:
    """Bring vectors as the model made them into the space in which packed ones rest."""
    centred = _to_unit(_to_unit(vectors.astype(np.float32)) - mean)
    turned: Floats = centred @ _rotation(vectors.shape[1])
    return turned


@functools.lru_cache(maxsize=4)
def _rotation(dimension: int) -> Floats:
    """Return an orthogonal matrix, the same on every machine to the last bit or so.

    Random signs (from a hash, so that no library's generator matters), then the
    product of a Hadamard matrix and, for what of the dimension is odd, a reflection.
    """
    odd = dimension
    hadamard = np.ones((1, 1))
    while odd % 2 == 0:
        odd //= 2
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    hadamard /= np.sqrt(len(hadamard))
    reflection = np.eye(odd) - 2.0 / odd if odd > 1 else np.ones((1, 1))
    seed = hashlib.shake_256(b"strata token rotation").digest(dimension)
    signs = np.where(np.frombuffer(seed, np.uint8) < 128, 1.0, -1.0)
    rotation: Floats = (signs[:, None] * np.kron(reflection, hadamard)).astype("f4")
    return rotation
