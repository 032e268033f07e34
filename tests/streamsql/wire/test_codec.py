"""Nothing from the network gets past the codec unchecked."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import Birth, DeltaBatch, SiteState, WeightedRow
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
    with pytest.raises(WireError, match="nested"):
        decode_json(opening * 100_000, SiteState)


def test_a_deeply_nested_packed_payload_is_refused() -> None:
    with pytest.raises(WireError):
        decode_packed(b"\x91" * 100_000, FragmentBundle)


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    state = SiteState(True, 1, 0, detail="[{" * 200 + '"\\')
    assert decode_json(encode_json(state), SiteState) == state


def test_large_payloads_are_refused_before_they_are_read() -> None:
    with pytest.raises(WireError, match="at most 10"):
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
