"""Batches in their short form: the same rows, fewer bytes, and what is ill-formed is refused."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.errors import WireError
from streamsql.wire.batch_parts import FEW_ROWS
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.messages import AnnotatedRow, DeltaBatch, WeightedRow

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-10_000, 10_000, places=3).map(float),
    st.sampled_from([0.0, -0.0, 0, False, 1, True, 1.0]),
    st.text(max_size=5),
)
TIMES = st.integers(0, 2**60)


@st.composite
def batches(draw: st.DrawFn) -> DeltaBatch:
    """Return a batch of which rows are often alike."""
    width = draw(st.integers(0, 5))
    row = st.tuples(*[st.one_of(st.sampled_from(["lab", 0.5, 1.0]), VALUES)] * width)
    rows = draw(st.lists(st.builds(WeightedRow, row, st.integers(-(2**63), 2**63 - 1)), max_size=5))
    return DeltaBatch(
        draw(st.integers(0, 9)),
        draw(st.integers(0, 2**50)),
        draw(st.integers(0, 999)),
        "f1",
        tuple(rows),
        reset=draw(st.booleans()),
        more=draw(st.booleans()),
        annotated=draw(st.sampled_from([(), (AnnotatedRow(("a", 1), b"x"),)])),
        kills=draw(st.sampled_from([(), (7, 2**63)])),
        watermark=draw(st.one_of(st.none(), TIMES)),
        ts=draw(st.one_of(st.none(), TIMES)),
        now=draw(TIMES),
    )


def exactly(batch: DeltaBatch) -> str:
    """Return all of a batch in words: types and the signs of zeros too."""
    return repr(batch)


@given(batches())
def test_a_batch_is_as_it_was_sent(batch: DeltaBatch) -> None:
    again = decode_packed(encode_packed(batch), DeltaBatch)
    assert exactly(again) == exactly(batch)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_digit_of_a_number_is_lost(value: float) -> None:
    for each in (value, round(value, 3), -value):
        if math.isfinite(each):
            batch = DeltaBatch(1, 1, 0, "f", (WeightedRow((each,), 1), WeightedRow((each,), -1)))
            rows = decode_packed(encode_packed(batch), DeltaBatch).deltas
            assert [repr(row.row[0]) for row in rows] == [repr(each)] * 2


def test_a_reading_in_the_place_of_another_one_is_little_more_than_half_as_long() -> None:
    rows = (
        WeightedRow(("office105-01", 0.35, 0.375, 1, "matlab", 0.28, 44.5), 1),
        WeightedRow(("office105-01", 0.479, 0.44, 1, "matlab", 0.383, 48.4), -1),
    )
    now = 1_795_802_314_585_834
    batch = DeltaBatch(1, 1, 125, "f1", rows, ts=now - 648, now=now)
    assert len(encode_packed(batch)) <= 0.55 * len(msgspec.msgpack.encode(batch))


def test_many_rows_are_written_one_by_one() -> None:
    rows = tuple(WeightedRow(("same", 1.5), 1) for _ in range(FEW_ROWS + 1))
    for count, alike in ((FEW_ROWS, True), (FEW_ROWS + 1, False)):
        batch = DeltaBatch(1, 1, 0, "f", rows[:count])
        payload = encode_packed(batch)
        assert decode_packed(payload, DeltaBatch) == batch
        assert (payload.count(b"same") == 1) == alike


@pytest.mark.parametrize(
    ("alike", "told"),
    [
        ([[1, 1, "a"]], "other columns than the one before"),
        ([[1, 0, "a"], [1, 2]], "other columns than the one before"),
        ([[1, 0, "a"], [1, 0, "a", "b"]], "other columns than the one before"),
        ([[1, 0, "a"], [1, -1]], "begins with its weight"),
        ([["a", 0]], "begins with its weight"),
        ([[1, 2**62]], "other columns than the one before"),
        ([[1, 0, [5, 1]]], "Expected `int` <= 4"),
        ([[1, 0, [1]]], "length 2"),
        ([[1, 0, [1, 2**31]]], "Expected `int` <= 2147483647"),
        ([[[1, 5], 0, "a"]], "begins with its weight"),
        ([[1, 0, 2**63]], "Expected `int` <= 9223372036854775807"),
        ([[1]], "begins with its weight"),
        ([[1, 0, 1]] * (FEW_ROWS + 1), "length <= 32"),
    ],
)
def test_rows_that_are_not_written_so_are_refused(alike: Any, told: str) -> None:
    payload = msgspec.msgpack.encode([1, 1, 0, "f", 5, None, [], alike])
    with pytest.raises(WireError, match=told):
        decode_packed(payload, DeltaBatch)


def test_a_reading_out_of_bounds_is_refused() -> None:
    payload = msgspec.msgpack.encode([1, 1, 0, "f", 2**62, -1])
    with pytest.raises(WireError, match="out of bounds"):
        decode_packed(payload, DeltaBatch)


def test_rows_that_repeat_a_long_text_are_not_told_many_times() -> None:
    text = "ł" * 1_000_000
    hostile = [1, 1, 1, "f1", 0, None, [], [[1, 0, text, 0], *([1, 1, n] for n in range(1, 32))]]
    with pytest.raises(WireError, match="repeat texts of more than 8000000 bytes"):
        decode_packed(msgspec.msgpack.encode(hostile), DeltaBatch)
    # What we send is within the bound: its rows are whole where they would exceed it.
    rows = tuple(WeightedRow((text[:700_000], n), 1) for n in range(4))
    payload = encode_packed(DeltaBatch(1, 1, 1, "f1", rows))
    assert len(payload) > 4 * 1_400_000, "each row is whole"
    assert decode_packed(payload, DeltaBatch).deltas == rows
