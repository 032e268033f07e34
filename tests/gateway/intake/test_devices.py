"""What connectors emit and report: counted, shown, and nobody else's business."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.connectors.reading import Reading
from gateway.gateway_settings import BufferSettings
from gateway.intake import devices as module
from gateway.intake.devices import Devices
from gateway.intake.last_values import LastValues
from gateway.intake.observations import ObservationLane
from gateway.testing import SEATS, TEMPERATURES, seat, temperature
from host.mqtt.in_memory import InMemoryBroker
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.wire.site_messages import SensorDescription
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")


class Field:
    """Devices behind one endpoint."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        client = InMemoryBroker().client("gw-1")
        self.engine = RecordedSite("gw-1", 1)
        for definition in (SEATS, TEMPERATURES):
            self.engine.declare(definition.scan())
        self.buffer = DiskBuffer(folder / "buffer.sqlite", BufferSettings())
        self.lane = ObservationLane("gw-1", 1, client, TOPICS, self.buffer, PublishedPacks(1))
        self.woken = 0
        self.described = 0
        self.devices = Devices(
            "gw-1",
            clock=lambda: 1_000_000,
            definitions={SEATS.name: SEATS, TEMPERATURES.name: TEMPERATURES},
            engine=self.engine,
            lane=self.lane,
            last=LastValues("gw-1", 1, client, TOPICS),
            on_readings=self._wake,
            on_described=self._describe,
            correction=lambda: 7,
        )
        self.port = self.devices.attach(
            "told", "telling", (SEATS.name, TEMPERATURES.name), **changes
        )
        self.device = self.devices.all[0]

    def _wake(self) -> None:
        self.woken += 1

    def _describe(self) -> None:
        self.described += 1


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    made = Field(tmp_path)
    yield made
    made.buffer.close()


def test_good_readings_of_a_batch_pass_and_bad_ones_are_counted(field: Field) -> None:
    field.port.emit(
        [
            seat("m1", 1.0),
            seat("m2", float("nan")),
            Reading("nowhere", {}),
            Reading(None, {}),  # type: ignore[arg-type]
            temperature("t1", 20.0),
            Reading("seatsensor", {"mid": "m3"}, delete=True),
        ]
    )
    field.engine.step(1_000_000)
    assert field.engine.source_rows("seatsensor") == [("m1", 1.0, 1_000_000)]
    assert field.engine.source_rows("temperature") == [("t1", 20.0, 1_000_000)]
    state = field.device.state()
    assert (state.name, state.kind) == ("telling/told", "telling")
    assert (state.readings, state.errors) == (3, 3)
    assert "no source" in state.last_error
    assert field.woken == 1
    field.lane.flush()
    assert len(field.buffer) == 2, "one pack per stream, with its withdrawals"


@pytest.mark.parametrize(("corrects", "ts"), [(False, 500), (True, 507)])
def test_times_of_devices_that_go_by_this_machines_clock_are_corrected(
    tmp_path: Path, corrects: bool, ts: int
) -> None:
    field = Field(tmp_path, correct_times=corrects)
    field.port.emit([seat("m1", 1.0, 500)])
    field.engine.step(1_000_000)
    assert field.engine.source_rows("seatsensor") == [("m1", 1.0, ts)]
    field.buffer.close()


def test_a_problem_is_over_when_it_is_not_repeated(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.port.failed("it hurts")
    assert field.devices.problems() == ["telling/told: it hurts"]
    monkeypatch.setattr(module, "PROBLEM_SECONDS", 0.0)
    assert field.devices.problems() == []
    assert field.device.state().last_error == "it hurts"


def test_a_stream_of_different_faults_does_not_flood_the_log(
    field: Field, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for number in range(1_000):
            field.port.failed(f"line {number} " + "x" * 10_000)
    assert field.device.errors == 1_000
    assert len(field.device.last_error) == module.MAX_ERROR
    assert len(caplog.records) == module.LOG_AT_ONCE


def test_what_a_connector_has_come_to_is_shown_and_logged_and_no_fault(
    field: Field, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=module.__name__):
        field.port.noted("the replay is over")
    assert field.device.state().note == "the replay is over"
    assert field.devices.notes() == ["telling/told: the replay is over"]
    assert field.devices.problems() == []
    assert field.device.errors == 0
    assert "connector telling/told: the replay is over" in caplog.text


def test_sensors_behind_endpoints_are_announced_when_they_are_others(field: Field) -> None:
    lamp = SensorDescription("l1", "seatsensor", room="L101")
    for _time in range(2):
        field.port.describe([lamp], ["L101"])
    assert (field.devices.sensors, field.devices.rooms) == ((lamp,), ("L101",))
    assert field.described == 1
    other = field.devices.attach("more", "telling", ())
    other.describe([], ["L102", "L101"])
    assert field.devices.rooms == ("L101", "L102")
    field.devices.detach("told", "telling")
    assert (field.devices.sensors, field.devices.rooms) == ((), ("L102", "L101"))
    assert field.described == 3


def test_what_is_remembered_is_kept_with_the_next_readings(field: Field) -> None:
    field.port.remember({"done": 3})
    assert field.port.memory is None
    field.port.emit([Reading("nowhere", {})])
    assert field.port.memory is None, "nothing was ingested"
    field.port.emit([seat("m1", 1.0)])
    assert field.port.memory == {"done": 3}
