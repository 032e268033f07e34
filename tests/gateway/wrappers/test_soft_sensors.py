"""This very machine as a soft sensor."""

import asyncio
import os
import time
from typing import Any

import psutil
import pytest

from gateway.connectors.reading import Reading
from gateway.intake.validation import event_of
from gateway.testing import until
from gateway.wrappers import soft_sensors
from gateway.wrappers.soft_sensors import (
    Measurement,
    SoftSensorsWrapper,
    Task,
    measure,
    readings,
)
from gateway.wrappers.wrapper import WrapperContext
from streamsql.errors import DeploymentError
from tests.gateway.wrappers.building import building_sources

NOW = 1_800_000_000_000_000


def check(reading: Reading) -> None:
    """Every reading must fit the building's schema."""
    event_of(reading, building_sources()[reading.source], NOW)


def test_what_is_measured_is_this_machine() -> None:
    measured = measure(10_000)
    assert 0.0 <= measured.memory <= 1.0
    assert abs(measured.memory - psutil.virtual_memory().percent / 100) < 0.2
    assert 0.0 <= measured.cpu <= 1.0
    assert measured.users >= 0
    assert measured.celsius is None or -50 < measured.celsius < 150
    ours = [task for task in measured.tasks if task.pid == os.getpid()]
    assert len(ours) == 1
    assert ours[0].name == psutil.Process().name()
    assert list(measured.tasks) == sorted(measured.tasks, key=lambda t: (-t.cpu, -t.memory, t.pid))


def test_a_busy_process_is_seen() -> None:
    """Its share is the processor time it used, over the time that went by: little if others ran."""
    began = time.monotonic()
    measure(1)
    used_from = time.process_time()
    while (used := time.process_time() - used_from) < 0.3:
        sum(range(10_000))
    measured = measure(10_000)
    (ours,) = [task for task in measured.tasks if task.pid == os.getpid()]
    # The system counts a process's time in ticks of 10 ms.
    assert ours.cpu >= (used - 0.03) / (time.monotonic() - began)


def test_rows_fit_the_schema_and_processes_that_left_are_withdrawn() -> None:
    tasks = (Task(1, "init", 0.5, 0.01), Task(2, "sh", 0.1, 0.02))
    rows = readings("ws-1", Measurement(0.2, 0.3, 1, None, tasks), {2, 3, 9}, NOW)
    for row in rows:
        check(row)
    load, *processes = rows
    assert (load.values["task"], load.values["task_cpu"], load.sensor) == ("init", 0.5, "soft-ws-1")
    assert [(r.values["pid"], r.delete) for r in processes] == [
        (1, False),
        (2, False),
        (3, True),
        (9, True),
    ]


def test_a_machine_without_processes_or_users_still_has_a_load() -> None:
    (load,) = readings("ws-1", Measurement(0.0, 0.0, 0, 20.0, ()), set(), NOW)
    check(load)


def test_names_that_are_no_unicode_are_made_readable() -> None:
    assert soft_sensors._readable("bad\udcff" + "x" * 500) == "bad?" + "x" * 196


def test_it_reads_until_it_is_cancelled() -> None:
    emitted: list[list[Reading]] = []

    async def scenario() -> None:
        context = WrapperContext(
            "gw-1",
            lambda: NOW,
            lambda batch: emitted.append(list(batch)),
            pytest.fail,
            {"mid": "ws-1", "period": 0.05, "processes": 3},
        )
        task = asyncio.create_task(SoftSensorsWrapper().run(context))
        await until(lambda: len(emitted) >= 3)
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        assert task.cancelled()

    asyncio.run(scenario())
    for batch in emitted:
        assert batch[0].source == "machineload"
        assert sum(not r.delete for r in batch) <= 4
        for reading in batch:
            check(reading)


@pytest.mark.parametrize(
    "options", [{}, {"mid": ""}, {"mid": "m", "period": 0}, {"mid": "m", "processes": -1}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    context = WrapperContext("gw-1", lambda: NOW, lambda _: None, pytest.fail, options)
    with pytest.raises(DeploymentError, match="options of wrapper soft_sensors"):
        asyncio.run(SoftSensorsWrapper().run(context))
