"""What a receipt proves: canonical bytes, signatures, and every way to break them."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from hypothesis import given
from hypothesis import strategies as st

from retrieval.check_receipt import main
from retrieval.proof import (
    BEGINNING,
    FILE_FORMAT,
    KEYS_FORMAT,
    RECEIPT_FORMAT,
    Json,
    Outcome,
    ProofError,
    canonical,
    check_file,
    commitment,
    digest,
    key_id_of,
    keys_file,
    read_keys,
    removal_of,
    sign,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
Keys = dict[str, Ed25519PublicKey]


def keys_of(*keys: Ed25519PrivateKey) -> Keys:
    return {key_id_of(key.public_key()): key.public_key() for key in keys}


def rows_of(*keys: Ed25519PrivateKey) -> bytes:
    return keys_file(
        [
            {
                "key": key_id_of(key.public_key()),
                "public_key": key.public_key().public_bytes_raw().hex(),
            }
            for key in keys
        ]
    )


WORDS = {
    "draft": 'It opens "at six" [S1] 🚢.\nPřístav – порт.',
    "unchecked/0": "Good morning.",
    "read/0/text": "The harbour opens at six. 🚢 A berth costs 5 euro.",
    "read/0/title": "Harbour rules",
}


def receipt(by: Ed25519PrivateKey = KEY, **changes: Any) -> Json:
    """Return the file of a receipt, as an object."""
    salts = {part: f"{number:032x}" for number, part in enumerate(WORDS)}
    signed = {
        "format": RECEIPT_FORMAT,
        "id": "rcpt_0123456789abcdefghjkmnpqrstvwxyz",
        "number": 7,
        "previous": BEGINNING,
        "issued_at": "2026-11-30T10:00:00.000000Z",
        "key": key_id_of(by.public_key()),
        "kind": "draft",
        "verdict": "verified",
        "nothing_checked": False,
        "interaction": None,
        "read": [
            {
                "ref": "d42:0-50",
                "revision": "d42",
                "revision_sha256": "a" * 64,
                "start": 0,
                "end": 50,
                "quotes": [[18, 24]],
            }
        ],
        "words": {part: commitment(salts[part], text) for part, text in WORDS.items()},
        "made_with": {"version": "0.1.0", "embedding_model": None},
        **changes,
    }
    return {
        "format": FILE_FORMAT,
        "sha256": digest(canonical(signed)),
        "signature": sign(by, signed),
        "signed": signed,
        "words": {
            part: {"salt": salts[part], "text": text} for part, text in WORDS.items()
        },
    }


def with_removal(part: str) -> Json:
    """Return a receipt of which the words of one part were removed."""
    file = receipt()
    name, when = key_id_of(KEY.public_key()), "2026-12-01T00:00:00.000000Z"
    said = removal_of(
        file["signed"]["id"], part, file["signed"]["words"][part], when, name
    )
    removal = {"key": name, "removed_at": when, "signature": sign(KEY, said)}
    file["words"][part] = removal
    return file


# --- Canonical bytes ------------------------------------------------------------------


def plain_canonical(value: Any) -> str:
    """Return the canonical form by another way: the standard library's writer."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        members = (
            f"{json.dumps(n, ensure_ascii=False)}:{plain_canonical(value[n])}"
            for n in names
        )
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(plain_canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.req("REL-R2")
@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_two_writers_agree_on_the_bytes(value: Json) -> None:
    assert canonical(value).decode() == plain_canonical(value)


@pytest.mark.req("REL-R2")
@pytest.mark.parametrize(
    "value", [1.0, float("nan"), 2**53, -(2**53), "\ud800", {"a": 0.5}, b"bytes"]
)
def test_what_is_not_plain_json_has_no_bytes(value: object) -> None:
    with pytest.raises(ProofError):
        canonical({"value": value})


# --- Intact, removed, unknown ------------------------------------------------------------


def test_an_intact_receipt_holds() -> None:
    found = check_file(canonical(receipt()), keys_of(OTHER, KEY))
    assert found.outcome is Outcome.INTACT
    assert found.problems == ()
    assert found.removed == {}


def test_it_holds_without_the_words_that_were_removed() -> None:
    file = with_removal("draft")
    found = check_file(canonical(file), keys_of(KEY))
    assert found.is_intact
    assert found.removed == {"draft": "2026-12-01T00:00:00.000000Z"}
    assert "opens" not in json.dumps(file["words"]["draft"])


@pytest.mark.req("REL-R3")
def test_a_key_that_nobody_gave_says_nothing() -> None:
    found = check_file(canonical(receipt(OTHER)), keys_of(KEY))
    assert found.outcome is Outcome.UNKNOWN_KEY
    assert [each.part for each in found.problems] == ["key"]


@pytest.mark.req("REL-R3")
def test_a_key_inside_the_receipt_is_never_trusted() -> None:
    raw = OTHER.public_key().public_bytes_raw().hex()
    signed_inside = receipt(OTHER, public_key=raw)
    assert check_file(canonical(signed_inside), keys_of(KEY)).outcome is (
        Outcome.UNKNOWN_KEY
    )
    beside = {**receipt(OTHER), "public_key": raw}
    assert check_file(canonical(beside), keys_of(KEY)).outcome is Outcome.CHANGED
    # Nor is another key under a trusted one's name.
    posing = receipt(OTHER, key=key_id_of(KEY.public_key()))
    assert check_file(canonical(posing), keys_of(KEY)).outcome is Outcome.CHANGED


# --- Changed -----------------------------------------------------------------------------


def parts(data: bytes) -> list[str]:
    found = check_file(data, keys_of(KEY))
    assert found.outcome is Outcome.CHANGED
    return [each.part for each in found.problems]


@pytest.mark.req("REL-R1")
def test_what_was_changed_is_named() -> None:
    def change(act: Callable[[Json], object]) -> list[str]:
        file = receipt()
        act(file)
        return parts(canonical(file))

    words = "words"
    assert change(lambda f: f[words]["draft"].update(text="It opens at five.")) == [
        "draft"
    ]
    assert change(lambda f: f[words]["draft"].update(salt="0" * 31 + "9")) == ["draft"]
    assert change(lambda f: f[words].pop("unchecked/0")) == ["unchecked/0"]
    assert change(
        lambda f: f[words].update({"question": {"salt": "0" * 32, "text": "?"}})
    ) == ["question"]
    assert change(lambda f: f["signed"].update(number=8)) == ["signed", "signature"]
    assert change(lambda f: f["signed"]["read"][0].update(end=51)) == [
        "signed",
        "signature",
    ]
    assert change(lambda f: f.update(signature="0" * 128)) == ["signature"]
    assert change(lambda f: f.update(sha256="0" * 64)) == ["signed"]
    assert change(lambda f: f.update(format="other")) == ["file"]
    assert change(lambda f: f.update(more=1)) == ["file"]
    assert change(lambda f: f["signed"].update(more=1)) == ["signed", "signature"]
    assert change(lambda f: f.update(signed=[])) == ["file"]
    assert change(lambda f: f.update(words={"draft": None})) == ["file"]


@pytest.mark.req("REL-R1")
def test_two_texts_that_changed_places_are_both_named() -> None:
    file = receipt()
    words = file["words"]
    words["draft"], words["read/0/text"] = words["read/0/text"], words["draft"]
    assert parts(canonical(file)) == ["draft", "read/0/text"]


@pytest.mark.req("REL-R1")
def test_the_same_content_in_other_bytes_is_not_the_receipt() -> None:
    file = receipt()
    data = canonical(file)
    text = data.decode()
    for other in (
        json.dumps(file, ensure_ascii=False, indent=1).encode(),
        json.dumps(dict(reversed(list(file.items()))), ensure_ascii=False).encode(),
        data + b"\n",
        b" " + data,
        b"\xef\xbb\xbf" + data,
        text.replace("at six", "\\u0061t six").encode(),
        text.replace('"number":7', '"number":7.0').encode(),
        text.replace('"number":7', '"number":7e0').encode(),
        text.replace('"number":7', '"number":7,"number":7').encode(),
        text.replace('"number":7', '"number":-0').encode(),
        data[:-1],
        data[: len(data) // 2],
        b"",
        b"[]",
        b"null",
        text.encode("utf-16"),
        data.replace(b"euro", b"eur\xff"),
        text.replace("euro", "\\ud800").encode(),
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"a":' + b"9" * 100_000 + b"}",
    ):
        found = check_file(other, keys_of(KEY))
        assert found.outcome is Outcome.CHANGED, other[:80]
        # A sentence for people, without a word about the inside.
        assert all(
            "Traceback" not in each.sentence and "Error" not in each.sentence
            for each in found.problems
        )


@pytest.mark.req("REL-R1")
def test_a_removal_cannot_be_forged() -> None:
    file = with_removal("draft")
    removal = file["words"]["draft"]
    for change in (
        {"removed_at": "2026-12-02T00:00:00.000000Z"},
        {"signature": "0" * 128},
        {"key": "0" * 64},
    ):
        changed = {**file, "words": {**file["words"], "draft": {**removal, **change}}}
        assert parts(canonical(changed)) == ["draft"]
    moved = {**file, "words": {**receipt()["words"], "unchecked/0": removal}}
    assert parts(canonical(moved)) == ["unchecked/0"]


@pytest.mark.req("REL-R1")
@pytest.mark.parametrize("file", [receipt(), with_removal("draft")])
def test_every_flipped_bit_is_caught(file: Json) -> None:
    data, keys = canonical(file), keys_of(KEY)
    draw = random.Random(8)
    bits = draw.sample(range(8 * len(data)), 1500)
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        found = check_file(bytes(flipped), keys)
        assert not found.is_intact, bit
        assert found.problems


# --- Keys, and the command ---------------------------------------------------------------


def test_keys_are_read_by_their_own_names() -> None:
    assert read_keys(rows_of(KEY, OTHER)).keys() == keys_of(KEY, OTHER).keys()


@pytest.mark.req("REL-R3")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"format":"other","keys":[]}',
        json.dumps({"format": KEYS_FORMAT, "keys": {}}).encode(),
        json.dumps({"format": KEYS_FORMAT, "keys": [1]}).encode(),
        json.dumps({"format": KEYS_FORMAT, "keys": [{"public_key": "00"}]}).encode(),
        rows_of(KEY).replace(b'"key": "', b'"key": "0'),
        rows_of(OTHER).replace(
            key_id_of(OTHER.public_key()).encode(), key_id_of(KEY.public_key()).encode()
        ),
    ],
)
def test_a_file_of_keys_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ProofError):
        read_keys(data)


def test_the_command_says_what_it_finds(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file, keys, none = (tmp_path / name for name in ("r.json", "keys.json", "none"))
    file.write_bytes(canonical(receipt()))
    keys.write_bytes(rows_of(KEY))
    assert main([str(file), str(keys)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Intact: ")
    assert "The harbour opens >>>at six<<<. 🚢 A berth costs 5 euro." in said
    assert "Good morning." in said

    file.write_bytes(canonical(receipt()).replace(b"5 euro", b"6 euro"))
    assert main([str(file), str(keys)]) == 1
    said = capsys.readouterr().out
    assert "read/0/text: Its words or their salt were changed." in said
    assert "harbour" not in said

    keys.write_bytes(rows_of(OTHER))
    file.write_bytes(canonical(receipt()))
    assert main([str(file), str(keys)]) == 2
    assert "Unknown: " in capsys.readouterr().out
    assert main([str(none), str(keys)]) == 2
    assert main([str(file), str(file)]) == 2
    assert capsys.readouterr().out == ""
