"""Token vectors: packed, unpacked and compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.inference.tokens import (
    Floats,
    best_match,
    can_pack,
    maxsim,
    pack_passage,
    pack_query,
    unpack,
)


def cone(seed: int, count: int, dimension: int) -> tuple[Floats, Floats]:
    """Vectors that lie close around a mean, as those of the model do, and the mean."""
    generator = np.random.default_rng(seed)
    mean = generator.standard_normal(dimension)
    mean *= 0.8 / np.linalg.norm(mean)
    spread = generator.standard_normal((count, dimension))
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    vectors = mean + 0.6 * spread
    return vectors.astype(np.float32), mean.astype(np.float32)


def centred(vectors: Floats, mean: Floats) -> Floats:
    """What packing is meant to keep, in full precision."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    moved = unit - mean
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


@given(
    seed=st.integers(0, 1000),
    count=st.integers(0, 40),
    dimension=st.sampled_from([4, 12, 64, 384, 768]),
)
def test_a_packed_passage_keeps_its_shape_and_ends(
    seed: int, count: int, dimension: int
) -> None:
    vectors, mean = cone(seed, count, dimension)
    ends = [3 * index + 1 for index in range(count)]

    packed = pack_passage(vectors, ends, mean)
    unpacked = unpack(packed)

    assert unpacked.vectors.shape == (count, dimension)
    assert unpacked.ends == tuple(ends)
    assert np.allclose(np.linalg.norm(unpacked.vectors, axis=1), 1, atol=1e-5)
    assert len(packed) == 6 + count * (2 + dimension // 4)


@pytest.mark.req("D11")
def test_maxsim_of_packed_vectors_is_close_to_that_of_whole_ones() -> None:
    vectors, mean = cone(1, 120, 384)
    asked = vectors[:9] + 0.02 * np.random.default_rng(2).standard_normal((9, 384))
    query = pack_query(asked.astype(np.float32), range(1, 10), mean)
    others, _mean = cone(3, 120, 384)

    same, different = (
        maxsim(query, pack_passage(each, range(1, 121), mean))
        for each in (vectors, others)
    )

    whole = centred(asked, mean) @ centred(vectors, mean).T
    assert same == pytest.approx(float(whole.max(axis=1).mean()), abs=0.1)
    assert same > different + 0.3


def test_a_query_keeps_half_precision() -> None:
    vectors, mean = cone(4, 7, 384)
    unpacked = unpack(pack_query(vectors, range(7), mean))
    # The space is rotated, so products are compared and not coordinates.
    whole = centred(vectors, mean)
    assert np.allclose(
        unpacked.vectors @ unpacked.vectors.T, whole @ whole.T, atol=2e-3
    )
    assert unpacked.ends == tuple(range(7))


def test_a_text_without_tokens_matches_nothing() -> None:
    nothing = np.zeros((0, 384), dtype=np.float32)
    vectors, mean = cone(5, 3, 384)
    query = pack_query(vectors, [1, 2, 3], mean)
    assert maxsim(query, pack_passage(nothing, [], mean)) == 0.0
    passage = pack_passage(vectors, [1, 2, 3], mean)
    assert maxsim(pack_query(nothing, [], mean), passage) == 0


def test_ends_beyond_what_fits_are_capped() -> None:
    vectors, mean = cone(6, 2, 4)
    assert unpack(pack_passage(vectors, [7, 70_000], mean)).ends == (7, 65_535)


@pytest.mark.parametrize(
    "broken",
    [b"", b"\x01\x02", b"\x09\x02\x04\x00\x00\x00", b"\x01\x07\x04\x00\x00\x00"],
)
def test_bytes_that_are_no_token_vectors_are_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match="packed token vectors"):
        unpack(broken)


def test_bytes_that_are_not_whole_are_refused() -> None:
    vectors, mean = cone(7, 5, 384)
    with pytest.raises(ValueError, match="packed token vectors of"):
        unpack(pack_passage(vectors, range(5), mean)[:-1])


def test_vectors_that_do_not_belong_together_are_refused() -> None:
    vectors, mean = cone(8, 5, 384)
    with pytest.raises(ValueError, match="5 token vectors but 2 ends"):
        pack_passage(vectors, [1, 2], mean)
    with pytest.raises(ValueError, match="dimension 384 and 64"):
        best_match(vectors, cone(8, 5, 64)[0])
    with pytest.raises(ValueError, match="cannot be packed"):
        pack_query(
            np.ones((1, 7), dtype=np.float32), [1], np.zeros(7, dtype=np.float32)
        )
    assert not can_pack(7)


def test_a_token_without_weight_does_not_count() -> None:
    passage = np.eye(4, dtype=np.float32)[:2]
    query = np.eye(4, dtype=np.float32)[1:3]
    assert best_match(query, passage) == pytest.approx(0.5)
    weights = np.array([1.0, 0.0], dtype=np.float32)
    assert best_match(query, passage, weights) == pytest.approx(1.0)
