"""Nothing from the network gets past the codec unchecked."""

import json
import math
import struct
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.operators import Values
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import WireError
from streamsql.wire import messages, site_messages, site_settings
from streamsql.wire.bounds import MAX_EPOCH, is_bounded
from streamsql.wire.codec import (
    decode_compressed_json,
    decode_json,
    decode_packed,
    encode_compressed_json,
    encode_json,
    encode_packed,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, ObservationPack, SenmlRecord, TableSet, WeightedRow
from streamsql.wire.site_messages import Birth, ColumnCount, SiteState, SourceCount
from streamsql.wire.stored_tables import table_changes
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder
from streamsql.wire.stored_tables.table_changes import TableChange
from streamsql.wire.topics import Topics, check_id

JUNK = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner)),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
)


@given(JUNK, st.sampled_from([SiteState, Birth, DeltaBatch, FragmentBundle]))
def test_junk_is_refused_with_a_wire_error_or_is_legal(payload: bytes, kind: type) -> None:
    for decode in (decode_json, decode_packed):
        try:
            found: object = decode(payload, kind)
        except WireError:
            continue
        assert isinstance(found, kind)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_refused(opening: bytes) -> None:
    for kind in (SiteState, FragmentBundle):
        with pytest.raises(WireError, match=r"nested|Expected `object`"):
            decode_json(opening * 100_000, kind)


def test_a_deeply_nested_packed_payload_is_refused() -> None:
    with pytest.raises(WireError):
        decode_packed(b"\x91" * 100_000, FragmentBundle)


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    state = SiteState(True, 1, 0, detail="[{" * 200 + '"\\')
    assert decode_json(encode_json(state), SiteState) == state


def test_large_payloads_are_refused_before_they_are_read() -> None:
    with pytest.raises(WireError, match="the max is 10"):
        decode_json(b" " * 11, SiteState, limit=10)


def test_a_plan_that_is_ill_formed_is_refused() -> None:
    plan = {"type": "filter", "input": {"type": "values", "rows": [], "columns": [[]]}}
    plan["predicate"] = {"type": "column", "position": 3, "name": "x", "dtype": "BOOLEAN"}
    fragment = {"id": "f", "engine": "base", "plan": plan, "sites": ["base"]}
    bundle = {"query": "q", "version": 1, "fragments": [fragment], "schema": [[]]}
    with pytest.raises(WireError, match="reads column 3 of 0"):
        decode_packed(msgspec.msgpack.encode(bundle), FragmentBundle)


@given(st.lists(st.tuples(st.text(max_size=4), st.integers(-(2**63), 2**63 - 1)), max_size=5))
def test_delta_batches_survive(rows: list[tuple[str, int]]) -> None:
    batch = DeltaBatch(1, 2, 3, "f1", tuple(WeightedRow(row, 1) for row in rows))
    assert decode_packed(encode_packed(batch), DeltaBatch) == batch


def test_integers_beyond_64_bits_cannot_be_sent() -> None:
    with pytest.raises(WireError):
        encode_packed(DeltaBatch(1, 1, 0, "f", (WeightedRow((2**70,), 1),)))


@pytest.mark.parametrize("bad", ["", "a/b", "a b", "+", "#", "x" * 65, "ä"])
def test_ids_that_could_be_mistaken_for_topics_are_refused(bad: str) -> None:
    with pytest.raises(WireError):
        check_id(bad)


def test_topics_are_taken_apart_again() -> None:
    topics = Topics("demo")
    assert topics.parts(topics.exchange("q1", "base", "gw-1")) == ["q", "q1", "x", "base", "gw-1"]
    with pytest.raises(WireError):
        topics.parts("pando/v1/other/gw/x/state")


KINDS = [
    kind
    for module in (messages, site_messages, table_changes, site_settings)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
    if issubclass(kind, msgspec.Struct) and kind not in (TableSet, TableChange)
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_message_bounds_each_of_its_numbers_texts_and_lists(kind: type) -> None:
    """The kinds that hold plans or definitions are walked after decoding instead."""
    assert is_bounded(kind)


@pytest.mark.parametrize("kind", [TableSet, TableChange, FragmentBundle, RefreshOrder])
def test_kinds_that_hold_plans_are_walked(kind: type) -> None:
    assert not is_bounded(kind)


@pytest.mark.parametrize("epoch", [-1, MAX_EPOCH, 2**63, 2**70, 99999999999999999999999999])
def test_impossible_epochs_are_refused(epoch: int) -> None:
    with pytest.raises(WireError, match="epoch"):
        decode_json(b'{"online":false,"epoch":%d,"ts":0}' % epoch, SiteState)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, math.nan, math.inf, -math.inf])
def test_values_that_no_type_has_are_refused_in_rows_and_in_plans(value: float) -> None:
    schema = Schema.of(("a", DataType.DOUBLE))
    batch = DeltaBatch(1, 2, 3, "f1", (WeightedRow((value,), 1),))
    fragment = Fragment("f", Engine.BASE, Values(((value,),), schema), ("base",))
    for kind, message in (
        (DeltaBatch, batch),
        (FragmentBundle, FragmentBundle("q", 1, (fragment,), schema)),
    ):
        with pytest.raises(WireError, match=r"Expected `(int|float)`|64 bits|not finite"):
            decode_packed(encode_packed(message), kind)


PACK = ObservationPack(1, 2, tuple(SenmlRecord(f"column {n}", v=float(n)) for n in range(500)))


def test_what_compresses_too_well_travels_plain() -> None:
    same = ObservationPack(1, 2, tuple(SenmlRecord("column", v=1.0) for _ in range(5_000)))
    payload = encode_compressed_json(same)
    assert payload == encode_json(same)
    assert len(payload) > 50 * len(zlib.compress(payload))
    assert decode_compressed_json(payload, ObservationPack, limit=1_000_000) == same


def test_compressed_messages_survive_and_plain_ones_are_read_too() -> None:
    compressed = encode_compressed_json(PACK)
    assert len(compressed) < len(encode_json(PACK)) / 5
    assert zlib.decompress(compressed) == encode_json(PACK)
    for payload in (compressed, encode_json(PACK)):
        assert decode_compressed_json(payload, ObservationPack, limit=100_000) == PACK


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (encode_compressed_json(PACK)[:-9], "not all of what zlib"),
        (encode_compressed_json(PACK) + b"{}", "more than that"),
        (b"x" + encode_compressed_json(PACK)[2:], "Error"),
        (b"x", "not all of what zlib"),
        (zlib.compress(b"[" * 100), "Expected `object`"),
        (zlib.compress(b"[" * 10_000), "more than [0-9]+ bytes when expanded"),
        (zlib.compress(b"{"), "truncated"),
        (zlib.compress(bytes(range(256)) * 4_000), "more than 20000 bytes when expanded"),
        (zlib.compress(bytes(15_000_000)), "more than 20000 bytes"),
        (zlib.compress(zlib.compress(b"{}")), "malformed|invalid"),
        (b"x" * 20_001, "bytes; the max"),
    ],
)
def test_what_was_not_compressed_right_is_refused_and_expanded_no_further(
    payload: bytes, why: str
) -> None:
    with pytest.raises(WireError, match=why):
        decode_compressed_json(payload, ObservationPack, limit=20_000)


def test_counts_with_deciles_that_are_not_sorted_are_refused_in_words() -> None:
    sorted_ones = tuple(float(n) for n in range(11))
    count = SourceCount(9, 9, 0, {"v": ColumnCount(deciles=sorted_ones)}, "r")
    payload = encode_packed(count)
    assert decode_packed(payload, SourceCount) == count
    ends = [struct.pack(">d", number) for number in (0.0, 10.0)]
    mixed = payload.replace(ends[0], b"end").replace(ends[1], ends[0]).replace(b"end", ends[1])
    with pytest.raises(WireError, match="the deciles of a column are not sorted"):
        decode_packed(mixed, SourceCount)
