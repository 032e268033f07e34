"""Packed groups of rows come out as they went in, are small, and cannot hurt a reader."""

import zlib
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.provenance.dnf import DnfEncoding
from stream_engine.provenance.parts import MAX_ROWS
from stream_engine.provenance.tokens import TokenSource
from stream_engine.recursion.program.packing import pack_encoded, pack_supports, unpack
from streamsql.data.types import Row
from streamsql.errors import WireError

TOKENS = st.builds(
    lambda site, epoch, used: TokenSource(site, epoch, used).fresh(),
    st.integers(0, 3) | st.just(255),
    st.integers(0, 2) | st.just(2**24 - 1),
    st.integers(0, 300) | st.integers(0, 2**32 - 1),
)
SUPPORTS = st.lists(st.frozensets(TOKENS, min_size=1, max_size=6), min_size=1, max_size=3)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(0, 2)
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([0.0, 1.0, 2.5])
    | st.text(max_size=3)
)
WIDTHS = st.shared(st.integers(0, 3), key="width")
ROWS = WIDTHS.flatmap(lambda width: st.tuples(*[VALUES] * width))


def typed(row: Row) -> tuple[tuple[type, object], ...]:
    return tuple((type(value), value) for value in row)


@given(st.lists(st.tuples(ROWS, SUPPORTS.map(tuple)), min_size=1, max_size=12))
def test_rows_keep_their_supports(pairs: list[tuple[Row, tuple[frozenset[int], ...]]]) -> None:
    rows, supports = unpack(pack_supports(pairs))
    went_in = Counter((typed(row), frozenset(held)) for row, held in pairs)
    came_out = Counter(
        (typed(row), frozenset(held)) for row, held in zip(rows, supports, strict=True)
    )
    assert came_out == went_in


@given(st.lists(st.tuples(ROWS, st.binary(min_size=1, max_size=5)), min_size=1, max_size=12))
def test_rows_keep_their_encoded_annotations(pairs: list[tuple[Row, bytes]]) -> None:
    rows, encoded = unpack(pack_encoded(pairs))
    assert [typed(row) for row in rows] == [typed(row) for row, _ in pairs]
    assert list(encoded) == [part for _, part in pairs]


def path_group(count: int, common: int) -> list[tuple[Row, tuple[frozenset[int], ...]]]:
    """Return rows (x, z) that all rest on the same links and on one of their own."""
    source = TokenSource(2, 5, 100)
    shared = [source.fresh() for _ in range(common)]
    return [(("n17", f"n{i}"), (frozenset([*shared, source.fresh()]),)) for i in range(count)]


def test_derivations_along_a_common_path_are_small() -> None:
    rows = path_group(60, 12)
    blob = pack_supports(rows)
    encoding = DnfEncoding()
    one_by_one = msgspec.msgpack.encode([(row, encoding.encode(held)) for row, held in rows])
    assert len(blob) < 6 * len(rows)
    assert len(blob) < len(one_by_one) / 5


def test_one_row_costs_little_more_than_its_tokens() -> None:
    (row,) = path_group(1, 8)
    assert len(pack_supports([row])) < 45


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda b: b"\0" + b))
def test_garbage_is_refused(blob: bytes) -> None:
    try:
        rows, parts = unpack(blob)
    except WireError:
        return
    assert len(rows) == len(parts) > 0


@given(st.data())
def test_a_damaged_group_is_refused_or_still_a_group(data: st.DataObject) -> None:
    blob = bytearray(pack_supports(path_group(3, 2)))
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= data.draw(st.integers(1, 255))
    try:
        rows, parts = unpack(bytes(blob))
    except WireError:
        return
    assert len(rows) == len(parts)


@pytest.mark.parametrize(
    "group",
    [
        [0, [["a"]], b"", b"\1\5\0\1\0", b""],
        [MAX_ROWS + 1, [["a"]], b"", b"\1\5\0\1\0", b""],
        [2, [["a", "b", "c"]], b"", b"\1\5\0\1\0", b""],
        [2, [["a"]], b"\0", b"\1\5\0\1\0", b""],
        [1, [["a"]], b"", b"\0\0\0", b""],
        [1, [["a"]], b"", b"\1\5\0\0", b""],
        [1, [["a"]], b"", b"\1\5\0\1\0", b"\0\0\0"],
        [2, [["a"]], b"", b"", b"", [b"x"]],
    ],
)
def test_impossible_groups_are_refused(group: list[object]) -> None:
    with pytest.raises(WireError):
        unpack(b"\0" + msgspec.msgpack.encode(group))


def test_a_bomb_is_not_inflated() -> None:
    packer = zlib.compressobj(wbits=-15)
    bomb = packer.compress(bytes(50_000_000)) + packer.flush()
    with pytest.raises(WireError, match="more than"):
        unpack(b"\1" + bomb)
