"""The connector of this machine: its load, and its busiest processes."""

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.options import Seconds
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.soft_sensors.measuring import Measurement, load_of, measure
from host.files.settings_file import require

LOAD, PROCESS = "machineload", "process"
TOPICS = (LOAD, PROCESS)


class SoftSensorsEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """This machine.

    Attributes:
        mid: Its id in the building.
        period: Between two readings.
        processes: How many of the busiest ones are reported.
    """

    mid: str
    period: Seconds = Seconds(2)
    processes: int = 8

    def __post_init__(self) -> None:
        require(self.mid != "", "mid is empty")
        require(self.period >= 0.05, "period must be at least 0.05 s")
        require(0 <= self.processes <= 1_000, "processes must be between 0 and 1000")


class SoftSensorsSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which readings feed a source.

    Attributes:
        topic: machineload or process; empty: the source's name.
    """

    topic: str = ""


class SoftSensorsConnector:
    """Reads the operating system; a process that ends while being read is skipped."""

    kind = "soft_sensors"
    endpoint_options = SoftSensorsEndpoint
    source_options = SoftSensorsSource

    async def run(self, context: ConnectorContext) -> None:
        """Read every period until cancelled."""
        options = context.endpoint_as(SoftSensorsEndpoint)
        loads, processes = _of_topics(context.sources)
        known = _recalled(context.memory)
        await asyncio.to_thread(measure, 1)  # the first measurement only sets the baseline
        while True:
            await asyncio.sleep(options.period)
            measured = await asyncio.to_thread(measure, options.processes)
            now = context.clock()
            readings: list[Reading] = []
            for source in loads:
                load = load_of(options.mid, measured)
                readings += source.read_record(load, None, f"soft-{options.mid}", time=now)
            for source in processes:
                readings.extend(process_readings(source, options.mid, measured, known, now))
            known = {task.pid for task in measured.tasks}
            context.remember({"pids": sorted(known)})
            context.emit(readings)


def process_readings(
    source: DeclaredSource, mid: str, measured: Measurement, known: set[int], now: int
) -> Iterator[Reading]:
    """Yield the rows of processes at an event time; processes no longer named leave."""
    for task in measured.tasks:
        shares = {"task": task.name, "cpu": task.cpu, "memory": task.memory}
        yield from source.read_record({"mid": mid, "pid": task.pid, **shares}, time=now)
    for pid in sorted(known - {task.pid for task in measured.tasks}):
        yield from source.withdraw_record({"mid": mid, "pid": pid}, time=now)


def _of_topics(
    sources: Sequence[DeclaredSource],
) -> tuple[list[DeclaredSource], list[DeclaredSource]]:
    """Return the sources of loads and those of processes; one of neither has a problem."""
    found: dict[str, list[DeclaredSource]] = {LOAD: [], PROCESS: []}
    for source in sources:
        topic = (source.options_as(SoftSensorsSource).topic or source.name).lower()
        if topic in found:
            found[topic].append(source)
        else:
            known = " or ".join(TOPICS)
            source.problem(f"soft sensors have no readings {topic!r:.60}; set topic to {known}")
    return found[LOAD], found[PROCESS]


def _recalled(memory: Memory | None) -> set[int]:
    """Return the processes that were reported last: those that are gone by now leave."""
    pids = None if memory is None else memory.get("pids")
    return {pid for pid in pids if isinstance(pid, int)} if isinstance(pids, list) else set()
