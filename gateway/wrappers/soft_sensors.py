"""This machine as a soft sensor: load, memory, users, processes, temperatures (psutil)."""

import asyncio

import msgspec
import psutil

from gateway.wrappers.wrapper import Reading, WrapperContext
from streamsql.errors import DeploymentError


class SoftSensorOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the soft_sensors wrapper.

    Attributes:
        mid: The machine's id in the building.
        period: Seconds between readings.
        processes: How many of the busiest processes to report.
    """

    mid: str
    period: float = 2.0
    processes: int = 8


class SoftSensorsWrapper:
    """Reads the operating system; a process that ends while being read is skipped."""

    kind = "soft_sensors"
    streams: tuple[str, ...] = ("machineload", "process")

    async def run(self, context: WrapperContext) -> None:
        """Read every period until cancelled."""
        try:
            options = msgspec.convert(dict(context.options), SoftSensorOptions)
        except msgspec.ValidationError as error:
            raise DeploymentError(f"options of wrapper soft_sensors: {error}") from error
        known: set[int] = set()
        await asyncio.to_thread(_busiest, 1)  # the first measurement only sets the baseline
        while True:
            await asyncio.sleep(options.period)
            busiest = await asyncio.to_thread(_busiest, options.processes)
            now = context.clock()
            gone = known - {pid for pid, *_ in busiest}
            readings = [_load(options.mid, busiest, now)]
            readings += [_process(options.mid, facts, now) for facts in busiest]
            readings += [
                Reading("process", {"mid": options.mid, "pid": pid}, now, delete=True)
                for pid in sorted(gone)
            ]
            known = {pid for pid, *_ in busiest}
            context.emit(readings)


Facts = tuple[int, str, float, float]
"""Process id, name, cpu and memory, both as shares of 1."""


def _busiest(count: int) -> list[Facts]:
    facts: list[Facts] = []
    for process in psutil.process_iter(["pid", "name", "cpu_percent", "memory_percent"]):
        values = process.info
        cpu, memory = values["cpu_percent"] or 0.0, values["memory_percent"] or 0.0
        facts.append((values["pid"], values["name"] or "?", cpu / 100, memory / 100))
    facts.sort(key=lambda f: (-f[2], -f[3], f[0]))
    return facts[:count]


def _load(mid: str, busiest: list[Facts], now: int) -> Reading:
    top = busiest[0] if busiest else (0, "", 0.0, 0.0)
    values = {
        "mid": mid,
        "cpu": psutil.cpu_percent() / 100,
        "memory": psutil.virtual_memory().percent / 100,
        "users": len({user.name for user in psutil.users()}),
        "task": top[1],
        "task_cpu": round(top[2], 4),
        "celsius": _celsius(),
    }
    return Reading("machineload", values, now, f"soft-{mid}")


def _process(mid: str, facts: Facts, now: int) -> Reading:
    pid, name, cpu, memory = facts
    shares = {"cpu": round(cpu, 4), "memory": round(memory, 5)}
    values = {"mid": mid, "pid": pid, "task": name, **shares}
    return Reading("process", values, now)


def _celsius() -> float | None:
    """Return the hottest temperature the machine reports, or None where it has no sensors."""
    read = getattr(psutil, "sensors_temperatures", None)
    entries = [entry for group in (read() if read else {}).values() for entry in group]
    return max((float(entry.current) for entry in entries), default=None)
