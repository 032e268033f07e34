"""`pando doctor`: what this machine has, what is missing, and what to do about it."""

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
from static_engine.spark.java import find_java
from streamsql.errors import FederationError

MIN_FREE_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        status: "ok", "note" (works without) or "problem".
        advice: What to do, or empty.
    """

    subject: str
    status: str
    message: str
    advice: str = ""


def examine(data: Path, port: int = DEFAULT_PORT) -> list[Finding]:
    """Look at everything `pando up` needs."""
    checks: tuple[Callable[[], Finding], ...] = (
        _python,
        _java,
        _broker,
        lambda: _port(port),
        lambda: _disk(data),
        _memory,
    )
    return [check() for check in checks]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= (3, 11):  # noqa: UP036  (also run by hand with another interpreter)
        return Finding("Python", "ok", version)
    return Finding("Python", "problem", version, "install Python 3.11 or later")


def _java() -> Finding:
    try:
        java = find_java()
    except FederationError as error:
        return Finding("Java", "problem", error.message, error.hint)
    return Finding("Java", "ok", f"{java.build} at {java.executable} (from {java.origin})")


def _broker() -> Finding:
    path = find_mosquitto()
    if path is not None:
        return Finding("Broker", "ok", f"mosquitto at {path}")
    return Finding(
        "Broker",
        "note",
        "mosquitto is not installed; the embedded broker is used",
        "for many gateways install mosquitto, or name a broker with --broker",
    )


def _port(port: int) -> Finding:
    if is_free(port):
        return Finding("Port", "ok", f"{port} is free")
    message = f"{port} is in use by {holder(port)}"
    return Finding(
        "Port", "problem", message, f"stop that process, or use pando up --port {free_port()}"
    )


def _disk(data: Path) -> Finding:
    place = data.resolve()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        message = f"{place} is not writable"
        return Finding("Disk", "problem", message, "use pando up --data DIR")
    free = shutil.disk_usage(place).free
    message = f"{free / 1e9:.1f} GB free at {place}"
    if free < MIN_FREE_BYTES:
        return Finding("Disk", "problem", message, "free some space, or use pando up --data DIR")
    return Finding("Disk", "ok", message)


def _memory() -> Finding:
    import psutil  # noqa: PLC0415

    available = psutil.virtual_memory().available
    message = f"{available / 1e9:.1f} GB available"
    if available < 2_000_000_000:
        return Finding(
            "Memory", "note", message, "Spark needs about 1.5 GB; otherwise use --no-spark"
        )
    return Finding("Memory", "ok", message)
