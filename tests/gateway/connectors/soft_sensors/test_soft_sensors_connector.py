"""This very machine as a soft sensor."""

import asyncio
from typing import Any

import pytest

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.soft_sensors.measuring import Measurement, Task, load_of
from gateway.connectors.soft_sensors.soft_sensors_connector import (
    SoftSensorsConnector,
    process_readings,
)
from gateway.connectors.testing.source_statements import definitions_of
from gateway.intake.validation import event_of
from gateway.testing import until
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import DeploymentError
from tests.gateway.connectors.building import building_sources, context_for

NOW = 1_800_000_000_000_000


def sources() -> list[SourceDefinition]:
    """Return a source of this machine's load, and the building's one of its processes."""
    (load,) = definitions_of(
        "CREATE SOURCE mine (mid TEXT, cpu DOUBLE, memory DOUBLE, task TEXT, ts TIMESTAMP, "
        "KEY (mid), WATERMARK FOR ts AS ts - INTERVAL '5 s') "
        "WITH (connector = 'soft_sensors', topic = 'machineload')"
    )
    return [load, building_sources()["process"]]


def context_of(endpoint: dict[str, Any], emit: Any, **changes: Any) -> ConnectorContext:
    return context_for(
        sources(), endpoint, clock=lambda: NOW, emit=emit, problem=pytest.fail, **changes
    )


def check(reading: Reading) -> None:
    """Every reading must fit its source."""
    (definition,) = [each for each in sources() if each.name == reading.source]
    event_of(reading, definition, NOW)


def test_rows_fit_the_schema_and_processes_that_left_are_withdrawn() -> None:
    tasks = (Task(1, "init", 0.5, 0.01), Task(2, "sh", 0.1, 0.02))
    measured = Measurement(0.2, 0.3, 1, None, tasks)
    context = context_of({}, None)
    found = list(process_readings(context.sources[1], "ws-1", measured, {2, 3, 9}, NOW))
    for row in found:
        check(row)
    assert [(r.values["pid"], r.delete, r.ts) for r in found] == [
        (1, False, NOW),
        (2, False, NOW),
        (3, True, NOW),
        (9, True, NOW),
    ]
    load = load_of("ws-1", measured)
    assert (load["task"], load["task_cpu"]) == ("init", 0.5)


def test_a_machine_without_processes_or_users_still_has_a_load() -> None:
    load = load_of("ws-1", Measurement(0.0, 0.0, 0, 20.0, ()))
    (reading,) = context_of({}, None).sources[0].read_record(load, None, "soft-ws-1", time=NOW)
    check(reading)
    assert (reading.sensor, reading.values["ts"]) == ("soft-ws-1", NOW)


def test_it_reads_until_it_is_cancelled_and_withdraws_what_an_earlier_life_named() -> None:
    emitted: list[list[Reading]] = []
    memories: list[Memory] = []

    async def scenario() -> None:
        endpoint = {"mid": "ws-1", "period": 0.05, "processes": 3}
        context = context_of(
            endpoint,
            lambda batch: emitted.append(list(batch)),
            memory={"pids": [-5]},
            remember=memories.append,
        )
        task = asyncio.create_task(SoftSensorsConnector().run(context))
        await until(lambda: len(emitted) >= 3)
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        assert task.cancelled()

    asyncio.run(scenario())
    for batch in emitted:
        assert batch[0].source == "mine"
        assert sum(not r.delete for r in batch) <= 4
        for reading in batch:
            check(reading)
    assert [r.values["pid"] for r in emitted[0] if r.delete] == [-5]
    shown = [r.values["pid"] for r in emitted[-1] if r.source == "process" and not r.delete]
    assert memories[len(emitted) - 1] == {"pids": sorted(shown)}  # type: ignore[type-var]


@pytest.mark.parametrize(
    "options", [{}, {"mid": ""}, {"mid": "m", "period": 0}, {"mid": "m", "processes": -1}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DeploymentError, match="endpoint here"):
        asyncio.run(SoftSensorsConnector().run(context_of(options, None)))
