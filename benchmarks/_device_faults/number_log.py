"""Log of a device simulator, in a file that outlives a kill: a line for each event.

    offered LANE FIRST LAST SECONDS          handed to the gateway
    acknowledged LANE FIRST LAST SECONDS     acknowledged by the gateway, or stored where it reads
    published LANE FIRST LAST SECONDS        acknowledged by the device's own broker

A lane is a part of a device that is read by itself. Seconds are those of CLOCK_MONOTONIC, which all
processes of a machine share.
"""

import os
import time
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Event(StrEnum):
    """One event of numbers."""

    OFFERED = "offered"
    ACKNOWLEDGED = "acknowledged"
    PUBLISHED = "published"


class Entry(NamedTuple):
    """A line: the numbers `first` to `last`, both included."""

    event: Event
    lane: int
    first: int
    last: int
    at: float

    @property
    def numbers(self) -> range:
        """The numbers that it is about."""
        return range(self.first, self.last + 1)


class NumberLog:
    """Appends lines, each with one write: a kill leaves no half of one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def add(self, event: Event, first: int, last: int | None = None, lane: int = 0) -> None:
        """Append an event of one number, or of all up to another."""
        self.add_all(event, [(first, first if last is None else last)], lane)

    def add_all(self, event: Event, spans: Iterable[tuple[int, int]], lane: int = 0) -> None:
        """Append an event of several spans of numbers."""
        now = time.monotonic()
        lines = "".join(f"{event} {lane} {first} {last} {now:.6f}\n" for first, last in spans)
        os.write(self._file, lines.encode())

    def next_number(self, event: Event, lane: int | None = None) -> int:
        """Return the number after the greatest one of an event, of one lane or of all."""
        found = (
            entry.last
            for entry in read_log(self._path)
            if entry.event == event and lane in {None, entry.lane}
        )
        return max(found, default=-1) + 1


def read_log(path: Path) -> list[Entry]:
    """Return the events of a log; none where nothing was logged yet."""
    if not path.exists():
        return []
    entries = []
    for line in path.read_text(encoding="ascii").splitlines():
        event, lane, first, last, at = line.split()
        entries.append(Entry(Event(event), int(lane), int(first), int(last), float(at)))
    return entries
