"""CBOR: what another decoder reads is read alike, and nothing hostile costs more than its size."""

import contextlib
import math
import time
from decimal import Decimal

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.payloads.cbor_values import decode_cbor

ITEMS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=30)
    | st.binary(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=30)
        | st.dictionaries(st.text(max_size=4) | st.integers(-(2**63), 2**63 - 1), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(ITEMS)
def test_what_another_library_writes_is_read(item: object) -> None:
    assert decode_cbor(cbor2.dumps(item)) == item


@given(ITEMS)
def test_a_payload_cut_anywhere_is_refused(item: object) -> None:
    payload = cbor2.dumps(item)
    for end in range(min(len(payload), 20)):
        with pytest.raises(ValueError, match="CBOR"):
            decode_cbor(payload[:end])


@given(st.binary(max_size=60))
def test_random_bytes_are_read_as_another_library_does_or_refused(payload: bytes) -> None:
    try:
        item = decode_cbor(payload)
    except ValueError:
        return
    try:
        expected = cbor2.loads(payload)
    except cbor2.CBORError:
        return  # Texts of times and such, whose tags are dropped here.
    if isinstance(expected, bool | int | str | bytes) or (
        isinstance(expected, float) and math.isfinite(expected)
    ):
        assert item == expected


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("9f0102ff", [1, 2]),
        ("bf616101ff", {"a": 1}),
        ("7f61616162ff", "ab"),
        ("5f41004101ff", b"\x00\x01"),
        ("f97c00", math.inf),
        ("f7", None),
        ("c11a514b67b0", 1363896240),
        ("c48221196ab3", Decimal("273.15")),
        ("c5822003", 1.5),
        ("d9d9f783010203", [1, 2, 3]),
        ("c249010000000000000000", 2**64),
        ("c349010000000000000000", -1 - 2**64),
    ],
)
def test_examples_of_the_standard(text: str, item: object) -> None:
    assert decode_cbor(bytes.fromhex(text)) == item


@pytest.mark.parametrize(
    "text",
    ["", "9bffffffffffffffff", "5bffffffffffffffff00", "81" * 70 + "00", "0000", "ff", "a1ff00",
     "83ff", "a18000", "a1f93c0000", "63eda080", "1c", "f0", "5f6161ff", "bf6161ff",
     "c48219800001", "c4821a3b9aca0001",
     "c25a00000101" + "ff" * 257, "d81c81d81d00ff", "a1c249" + "01" * 9 + "00"],
)  # fmt: skip
def test_hostile_items_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"CBOR|nested|key|integer|fraction"):
        decode_cbor(bytes.fromhex(text))


def test_time_is_linear_in_the_size() -> None:
    for piece in (b"\x80", b"\xa0", b"\x9f", b"\xc6", b"\x5f\x41a\xff", b"\x1b" + b"\xff" * 8):
        payload = b"\x9a" + (900_000 // len(piece)).to_bytes(4) + piece * (900_000 // len(piece))
        began = time.process_time()
        with contextlib.suppress(ValueError):
            decode_cbor(payload)
        assert time.process_time() - began < 10
