"""Measurements of this machine by its operating system."""

from dataclasses import dataclass

import psutil

MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Task:
    """A running process; shares are of one processor and of the memory."""

    pid: int
    name: str
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurements at one moment; shares of 1, degrees Celsius."""

    cpu: float
    memory: float
    users: int
    celsius: float | None
    tasks: tuple[Task, ...]


def measure(count: int) -> Measurement:
    """Measure this machine and its busiest processes; cpu is of the time since the last call."""
    return Measurement(
        cpu=round(psutil.cpu_percent() / 100, 4),
        memory=round(psutil.virtual_memory().percent / 100, 4),
        users=len({user.name for user in psutil.users()}),
        celsius=_celsius(),
        tasks=tuple(_busiest(count)),
    )


def load_of(mid: str, measured: Measurement) -> dict[str, object]:
    """Return a measurement as the values of a machine's load, by the names of its columns."""
    top = measured.tasks[0] if measured.tasks else Task(0, "", 0.0, 0.0)
    return {
        "mid": mid,
        "cpu": measured.cpu,
        "memory": measured.memory,
        "users": measured.users,
        "task": top.name,
        "task_cpu": top.cpu,
        "celsius": measured.celsius,
    }


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
