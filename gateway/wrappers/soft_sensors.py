"""This machine as a soft sensor: load, memory, users, processes, temperatures (psutil)."""

import asyncio
from dataclasses import dataclass

import msgspec
import psutil

from gateway.connectors.reading import Reading
from gateway.wrappers.options import read_options
from gateway.wrappers.wrapper import WrapperContext
from host.files.settings_file import require

MAX_NAME = 200


class SoftSensorOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine by its id in the building, seconds between readings, processes to report."""

    mid: str
    period: float = 2.0
    processes: int = 8

    def __post_init__(self) -> None:
        require(self.mid != "", "mid is empty")
        require(self.period >= 0.05, "period must be at least 0.05 s")
        require(0 <= self.processes <= 1_000, "processes must be between 0 and 1000")


@dataclass(frozen=True, slots=True)
class Task:
    """A running process; shares are of one processor and of the memory."""

    pid: int
    name: str
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the operating system says at one moment; shares of 1, degrees Celsius."""

    cpu: float
    memory: float
    users: int
    celsius: float | None
    tasks: tuple[Task, ...]


class SoftSensorsWrapper:
    """Reads the operating system; a process that ends while being read is skipped."""

    kind = "soft_sensors"
    streams: tuple[str, ...] = ("machineload", "process")

    def __init__(self) -> None:
        self._known: set[int] = set()

    async def run(self, context: WrapperContext) -> None:
        """Read every period until cancelled."""
        options = read_options(context, self.kind, SoftSensorOptions)
        await asyncio.to_thread(measure, 1)  # the first measurement only sets the baseline
        while True:
            await asyncio.sleep(options.period)
            measured = await asyncio.to_thread(measure, options.processes)
            now = context.clock()
            context.emit(readings(options.mid, measured, self._known, now))
            self._known = {task.pid for task in measured.tasks}


def measure(count: int) -> Measurement:
    """Measure this machine and its busiest processes; cpu is of the time since the last call."""
    return Measurement(
        cpu=round(psutil.cpu_percent() / 100, 4),
        memory=round(psutil.virtual_memory().percent / 100, 4),
        users=len({user.name for user in psutil.users()}),
        celsius=_celsius(),
        tasks=tuple(_busiest(count)),
    )


def readings(mid: str, measured: Measurement, known: set[int], now: int) -> list[Reading]:
    """Return the rows of a measurement at an event time; processes no longer named leave."""
    top = measured.tasks[0] if measured.tasks else Task(0, "", 0.0, 0.0)
    load = {
        "mid": mid,
        "cpu": measured.cpu,
        "memory": measured.memory,
        "users": measured.users,
        "task": top.name,
        "task_cpu": top.cpu,
        "celsius": measured.celsius,
    }
    result = [Reading("machineload", load, now, f"soft-{mid}")]
    for task in measured.tasks:
        shares = {"task": task.name, "cpu": task.cpu, "memory": task.memory}
        result.append(Reading("process", {"mid": mid, "pid": task.pid, **shares}, now))
    gone = known - {task.pid for task in measured.tasks}
    return result + [
        Reading("process", {"mid": mid, "pid": pid}, now, delete=True) for pid in sorted(gone)
    ]


def _busiest(count: int) -> list[Task]:
    tasks: list[Task] = []
    for process in psutil.process_iter(["pid", "name", "cpu_percent", "memory_percent"]):
        facts = process.info
        cpu, memory = facts["cpu_percent"] or 0.0, facts["memory_percent"] or 0.0
        name = _readable(facts["name"] or "?")
        tasks.append(Task(facts["pid"], name, round(cpu / 100, 4), round(memory / 100, 5)))
    tasks.sort(key=lambda task: (-task.cpu, -task.memory, task.pid))
    return tasks[:count]


def _readable(name: str) -> str:
    """Return a process's name as Unicode; the system allows any bytes in it."""
    return name.encode("utf-8", "replace").decode()[:MAX_NAME]


def _celsius() -> float | None:
    """Return the hottest temperature the machine reports, or None where it has no sensors."""
    read = getattr(psutil, "sensors_temperatures", None)
    entries = [entry for group in (read() if read else {}).values() for entry in group]
    return max((float(entry.current) for entry in entries), default=None)
