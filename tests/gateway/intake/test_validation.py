"""Readings become events, or the complaint says what is wrong with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.reading import Reading
from gateway.intake.validation import MAX_FUTURE, MAX_TEXT, EventMaker, event_of
from gateway.testing import LINKS, SEATS
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, conforms

NOW = 1_800_000_000_000_000
BAG = SourceDefinition("b", SourceKind.STREAM, Schema.of(("n", DataType.INTEGER)))


def of(values: Any, ts: Any = None, definition: SourceDefinition = SEATS, **rest: Any) -> Any:
    return event_of(Reading(definition.name, values, ts, **rest), definition, NOW)


def test_a_reading_is_stamped_on_arrival_or_with_its_own_time() -> None:
    assert of({"mid": "m", "weight": 1}).row == ("m", 1.0, NOW)
    assert of({"mid": "m", "weight": 1}, 5).row == ("m", 1.0, 5)
    event = of({"mid": "m", "weight": 1, "ts": 7}, 5)
    assert (event.row, event.ts) == (("m", 1.0, 7), 7)


def test_missing_columns_are_null_and_a_withdrawal_needs_the_key_only() -> None:
    event = of({"mid": "m"}, delete=True)
    assert (event.row, event.delete) == (("m", None, NOW), True)


@pytest.mark.parametrize(
    ("values", "ts", "complaint"),
    [
        ({"mid": "m", "weight": float("nan")}, None, "column weight.*not finite"),
        ({"mid": "m", "weight": float("inf")}, None, "column weight.*not finite"),
        ({"mid": "m", "weight": "heavy"}, None, "column weight"),
        ({"mid": "m", "weight": [1]}, None, "column weight"),
        ({"mid": "m", "weight": 10**400}, None, "column weight"),
        ({"mid": ["m"], "weight": 1}, None, "column mid"),
        ({"weight": 1}, None, "key column mid is missing"),
        ({"mid": "m", "wieght": 1}, None, "unknown column 'wieght'"),
        ({"mid": "x" * (MAX_TEXT + 1), "weight": 1}, None, "text of 4001 characters"),
        ({"mid": "a\ud800", "weight": 1}, None, "not Unicode"),
        ({"mid": "m", "weight": 1}, NOW + MAX_FUTURE + 1, "more than an hour ahead"),
        ({"mid": "m", "ts": NOW + MAX_FUTURE + 1}, None, "more than an hour ahead"),
        ({"mid": "m", "weight": 1}, 1.5, "event time 1.5"),
        ({"mid": "m", "weight": 1}, "now", "event time 'now'"),
        ({"mid": "m", "weight": 1}, 2**63, "event time"),
        ({"mid": "m", "ts": "2026-01-01"}, None, "event time '2026-01-01'"),
        ({"mid": "m", "ts": True}, None, "event time True"),
        (None, None, "are not a mapping of columns"),
        ([("mid", "m")], None, "are not a mapping of columns"),
        ({1: 2, "mid": "m"}, None, "unknown column"),
    ],
)
def test_what_is_wrong_is_said(values: Any, ts: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        of(values, ts)


def test_both_ends_of_a_link_are_needed() -> None:
    with pytest.raises(ValueError, match="key column dst"):
        of({"src": "a", "cost": 1.0}, definition=LINKS)


def test_integers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="column n"):
        of({"n": 2**63}, definition=BAG)


MIXED = SourceDefinition(
    "mixed",
    SourceKind.STREAM,
    Schema.of(
        ("name", DataType.TEXT),
        ("count", DataType.INTEGER),
        ("value", DataType.DOUBLE),
        ("on", DataType.BOOLEAN),
        ("at", DataType.TIMESTAMP),
        ("took", DataType.INTERVAL),
    ),
    key=(0, 1),
    time_column=4,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["mid", "weight", "ts", "other"])


@given(ANYTHING | st.dictionaries(NAMES, ANYTHING), ANYTHING)
def test_whatever_a_connector_says_is_a_legal_event_or_a_complaint(values: Any, ts: Any) -> None:
    try:
        event = of(values, ts)
    except ValueError:
        return
    assert all(
        conforms(value, dtype) for value, dtype in zip(event.row, SEATS.schema.dtypes, strict=True)
    )
    assert event.row[0] is not None
    assert event.row[2] == event.ts <= NOW + MAX_FUTURE


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10)
    | st.sampled_from([2**63, -(2**63) - 1, 10**400, NOW, NOW + MAX_FUTURE, 2**62])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["°C", "a\ud800", "x" * MAX_TEXT, "°" * (MAX_TEXT + 1), "7", "2026-01-01"])
    | st.lists(st.none(), max_size=1)
)
COLUMNS = st.sampled_from([*MIXED.schema.names, "other", 1])


def outcome(make: Any) -> Any:
    """Return an event with the types of its values, or the complaint."""
    try:
        event = make()
    except ValueError as error:
        return str(error)
    return event, repr(event), [type(value) for value in event.row]


@given(
    st.lists(
        st.tuples(st.dictionaries(COLUMNS, VALUES, max_size=8) | ANYTHING, VALUES, st.booleans()),
        max_size=4,
    ),
    st.integers(-10, 10),
    st.sampled_from([MIXED, SEATS, LINKS, BAG]),
)
def test_a_compiled_source_makes_the_same_events_and_complaints(
    readings: list[tuple[Any, Any, bool]], correction: int, definition: SourceDefinition
) -> None:
    maker = EventMaker(definition)
    for values, ts, delete in readings:
        reading = Reading(definition.name, values, ts, delete=delete)
        expected = outcome(lambda r=reading: event_of(r, definition, NOW, correction))
        assert outcome(lambda r=reading: maker.event(r, NOW, correction)) == expected


def test_a_compiled_source_refuses_what_is_no_column() -> None:
    reading = Reading("seatsensor", {"mid": "m", "weight": 2, "colour": "red"}, 5)
    with pytest.raises(ValueError, match="unknown column 'colour'"):
        EventMaker(SEATS).event(reading, NOW)
