"""Definitions travel whole and bounded; what does not fit itself is refused."""

import msgspec
import pytest

from gateway.testing_connectors import declared
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.source_orders import (
    MAX_ORDER_BYTES,
    SourceOrder,
    decode_order,
    encode_order,
)

CLIMATE = declared(version=3)
assert CLIMATE.mapping is not None
SHORT = msgspec.structs.replace(CLIMATE.mapping, columns=())


def changed(**changes: object) -> SourceDefinition:
    return msgspec.structs.replace(CLIMATE, **changes)


def test_a_definition_arrives_as_it_was_sent() -> None:
    assert decode_order("climate", encode_order(CLIMATE)) == CLIMATE


def test_one_too_large_is_not_sent() -> None:
    with pytest.raises(WireError, match="bytes; the max is") as caught:
        encode_order(changed(text="x" * MAX_ORDER_BYTES))
    assert caught.value.hint == "divide it into several sources"


@pytest.mark.parametrize(
    ("definition", "version", "complaint"),
    [
        (changed(mapping=None), 3, "is no declared source"),
        (CLIMATE, 2, "version 2 of a definition 3"),
        (changed(version=0), 0, "version 0 of a definition 0"),
        (changed(key=(2,)), 3, "a key or the event time is no column"),
        (changed(time_column=-1), 3, "a key or the event time is no column"),
        (changed(mapping=SHORT), 3, "0 mappings of 2 columns"),
    ],
)
def test_what_does_not_fit_itself_is_refused(
    definition: SourceDefinition, version: int, complaint: str
) -> None:
    plain = {"version": version, "definition": msgspec.to_builtins(definition)}
    with pytest.raises(WireError, match=complaint):
        decode_order("climate", encode_json(plain))


def test_a_definition_on_the_topic_of_another_is_refused() -> None:
    with pytest.raises(WireError, match="'climate' on the topic of 'noise'"):
        decode_order("noise", encode_order(CLIMATE))


def test_a_payload_too_large_is_not_read() -> None:
    payload = encode_json(SourceOrder(3, changed(text="x" * MAX_ORDER_BYTES)))
    with pytest.raises(WireError, match="the max is"):
        decode_order("climate", payload)
