"""Wrappers under supervision: their faults are counted, shown, and nobody else's business."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.connectors.reading import Reading
from gateway.intake import devices as module
from gateway.intake.devices import Devices
from gateway.intake.last_values import LastValues
from gateway.intake.observations import ObservationLane
from gateway.settings import BufferSettings, WrapperSettings
from gateway.testing import (
    SEATS,
    TEMPERATURES,
    TellingWrapper,
    seat,
    temperature,
    until,
)
from gateway.wrappers import registry
from host.mqtt.in_memory import InMemoryBroker
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.errors import DeploymentError
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")


class Field:
    """Devices with one telling wrapper."""

    def __init__(self, folder: Path, wrappers: list[WrapperSettings]) -> None:
        client = InMemoryBroker().client("gw-1")
        self.engine = RecordedSite("gw-1", 1)
        for definition in (SEATS, TEMPERATURES):
            self.engine.declare(definition.scan())
        self.buffer = DiskBuffer(folder / "buffer.sqlite", BufferSettings())
        self.lane = ObservationLane("gw-1", 1, client, TOPICS, self.buffer, PublishedPacks(1))
        self.woken = 0
        self.devices = Devices(
            "gw-1",
            wrappers,
            clock=lambda: 1_000_000,
            definitions={SEATS.name: SEATS, TEMPERATURES.name: TEMPERATURES},
            engine=self.engine,
            lane=self.lane,
            last=LastValues("gw-1", 1, client, TOPICS),
            on_readings=self._wake,
        )
        self.device = self.devices.all[0]

    def _wake(self) -> None:
        self.woken += 1


def run(
    folder: Path,
    scenario: Callable[[Field, TellingWrapper], Coroutine[Any, Any, None]],
) -> None:
    async def whole() -> None:
        wrapper = TellingWrapper()
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(registry.KINDS, "telling", lambda: wrapper)
            patch.setattr(module, "RESTART_SECONDS", 0.01)
            patch.setattr(module, "RESTART_MOST_SECONDS", 0.05)
            field = Field(folder, [WrapperSettings("telling")])
            task = asyncio.create_task(field.devices.supervise(field.device))
            await until(lambda: wrapper.context is not None)
            await scenario(field, wrapper)
            task.cancel()
            field.buffer.close()

    asyncio.run(whole())


def test_good_readings_of_a_batch_pass_and_bad_ones_are_counted(tmp_path: Path) -> None:
    async def scenario(field: Field, wrapper: TellingWrapper) -> None:
        wrapper.emit(
            seat("m1", 1.0),
            seat("m2", float("nan")),
            Reading("nowhere", {}),
            Reading(None, {}),  # type: ignore[arg-type]
            temperature("t1", 20.0),
            Reading("seatsensor", {"mid": "m3"}, delete=True),
        )
        field.engine.step(1_000_000)
        assert field.engine.source_rows("seatsensor") == [("m1", 1.0, 1_000_000)]
        assert field.engine.source_rows("temperature") == [("t1", 20.0, 1_000_000)]
        state = field.device.state()
        assert (state.readings, state.errors) == (3, 3)
        assert "no source" in state.last_error
        assert field.woken == 1
        field.lane.flush()
        assert len(field.buffer) == 2, "one pack per stream, none for a withdrawal"

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "error", [RuntimeError("the device is on fire"), DeploymentError("no file", hint="make it")]
)
def test_a_wrapper_that_fails_is_started_again_and_says_why(
    tmp_path: Path, error: Exception
) -> None:
    async def scenario(field: Field, wrapper: TellingWrapper) -> None:
        for number in range(2, 5):
            wrapper.fail(type(error)(*error.args))
            await until(lambda number=number: wrapper.started == number)  # type: ignore[misc]
        assert str(error.args[0]) in field.device.state().last_error
        assert field.device.problem.startswith("telling: ")
        assert field.devices.problems() == [field.device.problem]
        wrapper.emit(seat("m1", 1.0))
        assert field.device.readings == 1

    run(tmp_path, scenario)


def test_a_problem_is_over_when_it_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBLEM_SECONDS", 0.5)

    async def scenario(field: Field, wrapper: TellingWrapper) -> None:
        assert wrapper.context is not None
        wrapper.context.problem("it hurts")
        assert field.devices.problems() == ["telling: it hurts"]
        await until(lambda: field.devices.problems() == [])
        assert field.device.state().last_error == "it hurts"

    run(tmp_path, scenario)


def test_a_stream_of_different_faults_does_not_flood_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(field: Field, wrapper: TellingWrapper) -> None:
        assert wrapper.context is not None
        for number in range(1_000):
            wrapper.context.problem(f"line {number} " + "x" * 10_000)
        assert field.device.errors == 1_000
        assert len(field.device.last_error) == module.MAX_ERROR

    with caplog.at_level(logging.WARNING):
        run(tmp_path, scenario)
    assert len(caplog.records) == module.LOG_AT_ONCE


def test_wrappers_of_one_kind_have_names_of_their_own(tmp_path: Path) -> None:
    kinds = ["replay", "motes", "replay", "replay"]
    field = Field(tmp_path, [WrapperSettings(kind) for kind in kinds])
    assert [d.name for d in field.devices.all] == ["replay", "motes", "replay-2", "replay-3"]
    field.buffer.close()


def test_an_unknown_kind_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="no wrapper 'telepathy'") as caught:
        Field(tmp_path, [WrapperSettings("telepathy")])
    assert "calendar, motes, replay, soft_sensors" in caught.value.hint


def test_commands_for_simulated_devices_need_some(tmp_path: Path) -> None:
    async def scenario(field: Field, _wrapper: TellingWrapper) -> None:
        assert field.devices.simulate({"action": "sit"})["done"] is False

    run(tmp_path, scenario)


def test_what_a_wrapper_has_come_to_is_shown_and_logged_and_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(field: Field, wrapper: TellingWrapper) -> None:
        assert wrapper.context is not None
        with caplog.at_level(logging.INFO, logger=module.__name__):
            wrapper.context.note("the replay is over")
        assert field.device.state().note == "the replay is over"
        assert field.devices.notes() == ["telling: the replay is over"]
        assert field.devices.problems() == []
        assert field.device.errors == 0

    run(tmp_path, scenario)
    assert "wrapper telling: the replay is over" in caplog.text
