"""`pando doctor`: checks of this machine, each with a finding and what to do."""

import enum
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broker.broker_launch import find_mosquitto
from broker.free_ports import free_port
from deploy.local.probes import holder, is_free
from deploy.local.up_options import DEFAULT_PORT
from deploy.spark_reachable import unreachable
from static_engine.spark.java import find_java
from streamsql.errors import FederationError

MIN_FREE_BYTES = 1_000_000_000


class Status(enum.StrEnum):
    """How a check ended."""

    OK = "ok"
    NOTE = "note"  # works without
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check; `advice` says what to do, or is empty."""

    subject: str
    status: Status
    message: str
    advice: str = ""


def examine(data: Path, port: int = DEFAULT_PORT, master: str = "") -> list[Finding]:
    """Check everything that `pando up` needs.

    Args:
        data: Its data directory.
        port: Of the console.
        master: Of a Spark cluster; empty: Spark works on this machine.

    Raises:
        DeploymentError: It is no master of Spark's.
    """
    checks: tuple[Callable[[], Finding], ...] = (
        _python,
        _java,
        _broker,
        lambda: _port(port),
        lambda: _disk(data),
        _memory,
    )
    findings = [check() for check in checks]
    return [*findings, _cluster(master)] if master else findings


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= (3, 11):  # noqa: UP036  (also run by hand with another interpreter)
        return Finding("Python", Status.OK, version)
    return Finding("Python", Status.PROBLEM, version, "install Python 3.11 or later")


def _java() -> Finding:
    try:
        java = find_java()
    except FederationError as error:
        return Finding("Java", Status.PROBLEM, error.message, error.hint)
    return Finding("Java", Status.OK, f"{java.build} at {java.executable} (from {java.origin})")


def _cluster(master: str) -> Finding:
    away = unreachable(master)
    if not away:
        return Finding("Cluster", Status.OK, f"{master} takes connections")
    message = "; ".join(f"{place}: {reason}" for place, reason in away.items())
    # One of several masters is enough.
    status = Status.NOTE if len(away) < master.count(",") + 1 else Status.PROBLEM
    return Finding("Cluster", status, message, "start the master, or open its port to this machine")


def _broker() -> Finding:
    path = find_mosquitto()
    if path is not None:
        return Finding("Broker", Status.OK, f"mosquitto at {path}")
    return Finding(
        "Broker",
        Status.NOTE,
        "mosquitto is not installed; the embedded broker is used",
        "for many gateways install mosquitto, or name a broker with --broker",
    )


def _port(port: int) -> Finding:
    if is_free(port):
        return Finding("Port", Status.OK, f"{port} is free")
    message = f"{port} is in use by {holder(port)}"
    return Finding(
        "Port", Status.PROBLEM, message, f"stop that process, or use pando up --port {free_port()}"
    )


def _disk(data: Path) -> Finding:
    place = data.resolve()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        message = f"{place} is not writable"
        return Finding("Disk", Status.PROBLEM, message, "use pando up --data DIR")
    free = shutil.disk_usage(place).free
    message = f"{free / 1e9:.1f} GB free at {place}"
    if free < MIN_FREE_BYTES:
        return Finding(
            "Disk", Status.PROBLEM, message, "free some space, or use pando up --data DIR"
        )
    return Finding("Disk", Status.OK, message)


def _memory() -> Finding:
    import psutil  # noqa: PLC0415

    available = psutil.virtual_memory().available
    message = f"{available / 1e9:.1f} GB available"
    if available < 2_000_000_000:
        return Finding(
            "Memory", Status.NOTE, message, "Spark needs about 1.5 GB; otherwise use --no-spark"
        )
    return Finding("Memory", Status.OK, message)
