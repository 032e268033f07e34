"""Readings mean the same in whatever batches they are handed in, and the engine steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.connectors.reading import Reading
from gateway.gateway_settings import BufferSettings
from gateway.intake.devices import Devices
from gateway.intake.last_values import LastValues
from gateway.intake.observations import ObservationLane
from gateway.testing import SEATS, TEMPERATURES
from host.mqtt.in_memory import InMemoryBroker
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta, accumulate
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.codec import decode_json
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import rows_of
from streamsql.wire.topics import Topics

NOW = 1_000_000
SELDOM = SourceDefinition(
    "seldom",
    SourceKind.STREAM,
    Schema.of(("sensor", DataType.TEXT), ("ts", DataType.TIMESTAMP)),
    time_column=1,
    options=(("sample", "0.1 s"),),
)
SOURCES = (SEATS, TEMPERATURES, SELDOM)
QUERIES = tuple(
    FragmentBundle(
        source.name,
        1,
        (Fragment("f0", Engine.GATEWAY, source.scan(), ("gw-1",)),),
        source.schema,
    )
    for source in SOURCES
)


@dataclass
class Outcome:
    """Everything that readings lead to."""

    rows: dict[str, Delta] = field(default_factory=dict)
    kept: dict[str, list[Row]] = field(default_factory=dict)
    observed: dict[str, list[Any]] = field(default_factory=dict)
    last: dict[str, Row] = field(default_factory=dict)
    counts: tuple[int, int, str] = (0, 0, "")


def outcome_of(buffer: DiskBuffer, batches: Sequence[tuple[list[Reading], bool]]) -> Outcome:
    """Hand in batches, each with whether a step follows, and return what they lead to."""
    client, topics, outcome = InMemoryBroker().client("gw-1"), Topics("demo"), Outcome()
    engine = RecordedSite("gw-1", 1)
    for source in SOURCES:
        engine.declare(source.scan())
    for query in QUERIES:
        engine.install(query)
        outcome.rows[query.query] = {}
    lane = ObservationLane("gw-1", 1, client, topics, buffer, PublishedPacks(1))
    last = LastValues("gw-1", 1, client, topics)
    devices = Devices(
        "gw-1",
        clock=lambda: NOW,
        definitions={source.name: source for source in SOURCES},
        engine=engine,
        lane=lane,
        last=last,
        on_readings=lambda: None,
    )
    devices.attach("told", "telling", tuple(source.name for source in SOURCES))
    for readings, steps in [*batches, ([], True)]:
        devices.emit(devices.all[0], readings)
        if steps:
            for sent in engine.step(NOW).outgoing:
                rows = {weighted.row: weighted.weight for weighted in sent.batch.deltas}
                accumulate(outcome.rows[sent.query], rows)
    lane.flush()
    stored = buffer.oldest(1_000)
    buffer.delete([number for number, _stream, _payload in stored])
    for _number, stream, payload in stored:
        pack = decode_json(payload, ObservationPack)
        outcome.observed.setdefault(stream, []).extend(
            (row, place in pack.d) for place, row in enumerate(rows_of(pack.e))
        )
    outcome.kept = {source.name: sorted(engine.source_rows(source.name)) for source in SOURCES}
    outcome.last = {name: sensor.event.row for name, sensor in last._sensors.items()}
    state = devices.all[0].state()
    outcome.counts = (state.readings, state.errors, state.last_error)
    return outcome


NAMES = st.sampled_from(["a", "b"])
TIMES = st.none() | st.integers(0, NOW) | st.just("now")
READINGS = st.one_of(
    st.builds(
        lambda mid, weight, ts, delete: Reading(
            "seatsensor", {"mid": mid, "weight": weight}, ts, f"seat-{mid}", delete
        ),
        NAMES,
        st.sampled_from([1, 2.5, None, float("nan")]),
        TIMES,
        st.booleans(),
    ),
    st.builds(
        lambda sensor, celsius, ts: Reading(
            "temperature", {"sensor": sensor, "celsius": celsius}, ts, sensor
        ),
        NAMES,
        st.sampled_from([20.0, 21, "hot"]),
        TIMES,
    ),
    st.builds(lambda sensor, ts: Reading("seldom", {"sensor": sensor}, ts, sensor), NAMES, TIMES),
    st.just(Reading("nowhere", {})),
)


@pytest.fixture(scope="module")
def buffer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DiskBuffer]:
    made = DiskBuffer(tmp_path_factory.mktemp("intake") / "buffer.sqlite", BufferSettings())
    yield made
    made.close()


@given(st.lists(st.tuples(READINGS, st.booleans(), st.booleans()), max_size=30))
def test_any_batches_and_steps_give_the_rows_of_one_reading_at_a_time(
    buffer: DiskBuffer, given_readings: list[tuple[Reading, bool, bool]]
) -> None:
    one_by_one = [([reading], True) for reading, _ends, _steps in given_readings]
    batches: list[tuple[list[Reading], bool]] = []
    batch: list[Reading] = []
    for reading, ends, steps in given_readings:
        batch.append(reading)
        if ends:
            batches.append((batch, steps))
            batch = []
    batches.append((batch, False))
    assert outcome_of(buffer, batches) == outcome_of(buffer, one_by_one)
