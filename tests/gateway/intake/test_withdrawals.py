"""Withdrawals by some of a row's values, against a plain list of rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.reading import Reading
from gateway.intake.withdrawals import Withdrawals
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

RELAYS = SourceDefinition(
    "relays",
    SourceKind.STREAM,
    Schema.of(
        ("device", DataType.TEXT),
        ("channel", DataType.INTEGER),
        ("room", DataType.TEXT),
        ("ts", DataType.TIMESTAMP),
    ),
    key=(0, 1),
    time_column=3,
)


def relay(device: str, channel: int, room: str, ts: int, *, delete: bool = False) -> SourceEvent:
    return SourceEvent((device, channel, room, ts), ts, delete)


def gone(**values: object) -> Reading:
    return Reading("relays", values, delete=True, matching=True)


def site(*events: SourceEvent) -> RecordedSite:
    engine = RecordedSite("gw-1", 1)
    engine.declare(RELAYS.scan())
    engine.ingest("relays", events)
    return engine


def keys(readings: list[Reading]) -> set[tuple[object, ...]]:
    assert all(each.delete and not each.matching for each in readings)
    return {(each.values["device"], each.values["channel"]) for each in readings}


def test_rows_of_a_step_of_the_queue_and_of_the_batch_are_found() -> None:
    engine = site(relay("d1", 0, "hall", 1), relay("d2", 0, "hall", 1))
    engine.step(10)
    engine.ingest("relays", [relay("d1", 1, "hall", 2)])
    batch = [relay("d1", 2, "hall", 3)]
    withdrawals = Withdrawals(engine)
    found = withdrawals.resolved(gone(device="d1"), RELAYS, batch)
    assert keys(found) == {("d1", 0), ("d1", 1), ("d1", 2)}
    batch += [relay("d1", 5, "hall", 4), relay("d1", 0, "hall", 4, delete=True)]
    assert keys(withdrawals.resolved(gone(device="d1"), RELAYS, batch)) == {
        ("d1", 1),
        ("d1", 2),
        ("d1", 5),
    }
    assert keys(withdrawals.resolved(gone(), RELAYS, batch)) == {
        ("d1", 1),
        ("d1", 2),
        ("d1", 5),
        ("d2", 0),
    }


def test_what_has_no_key_or_another_type_is_refused() -> None:
    bag = SourceDefinition("relays", SourceKind.STREAM, RELAYS.schema)
    with pytest.raises(ValueError, match="has no KEY"):
        Withdrawals(site()).resolved(gone(device="d1"), bag, ())
    with pytest.raises(ValueError, match="channel"):
        Withdrawals(site()).resolved(gone(channel="one"), RELAYS, ())


EVENTS = st.lists(
    st.builds(
        relay,
        st.sampled_from("abc"),
        st.integers(0, 1),
        st.sampled_from(["hall", "attic"]),
        st.integers(1, 5),
        delete=st.booleans(),
    ),
    max_size=12,
)
ASKED = st.fixed_dictionaries(
    {}, optional={"device": st.sampled_from("abc"), "room": st.sampled_from(["hall", "attic"])}
)


@given(EVENTS, EVENTS, EVENTS, EVENTS, ASKED)
def test_as_the_engine_would_find_them(
    stepped: list[SourceEvent],
    waiting: list[SourceEvent],
    first: list[SourceEvent],
    second: list[SourceEvent],
    values: dict[str, object],
) -> None:
    engine = site(*stepped)
    engine.step(10)
    engine.ingest("relays", waiting)
    withdrawals = Withdrawals(engine)
    batch = list(first)
    withdrawals.resolved(gone(**values), RELAYS, batch)
    batch += second
    found = withdrawals.resolved(gone(**values), RELAYS, batch)
    engine.ingest("relays", batch)
    engine.step(11)
    names = RELAYS.schema.names
    rows = [dict(zip(names, row, strict=True)) for row in engine.source_rows("relays")]
    assert keys(found) == {
        (row["device"], row["channel"]) for row in rows if values.items() <= row.items()
    }
