"""Arguments, log and pace that all device simulators share."""

import argparse
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks._device_faults.number_log import Event, NumberLog

NOTHING = 16_000_000
"""Value of a polled device before its first and after its last number; a REAL holds it."""
LANES = 10
"""Parts of a device that are read one by one, where a request reads one value."""


@dataclass(frozen=True)
class PeerArguments:
    """How a simulator is started.

    Attributes:
        port: On which it listens, or its device's broker does.
        other_port: Of that broker behind it.
        folder: Of its log and whatever it stores.
        count: Numbers to hand out, from 0 on.
        rate: Of them a second.
    """

    port: int
    other_port: int
    folder: Path
    count: int
    rate: float

    @cached_property
    def log(self) -> NumberLog:
        """The log; it goes on where an earlier process was killed."""
        return NumberLog(self.folder / "numbers.log")

    def may_go(self) -> bool:
        """Whether somebody is there to read the numbers."""
        return (self.folder / "go").exists()

    def wait_to_go(self) -> None:
        """Return when somebody is there; the parent ends this process where nobody comes."""
        while not self.may_go():
            time.sleep(0.05)


def peer_arguments() -> PeerArguments:
    """Return the arguments of this process."""
    parser = argparse.ArgumentParser(description="A device that hands out numbers.")
    parser.add_argument("port", type=int)
    parser.add_argument("other_port", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("rate", type=float)
    given = parser.parse_args()
    return PeerArguments(given.port, given.other_port, given.folder, given.count, given.rate)


class Pace:
    """Says how many numbers are due, from its making on."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._began = time.monotonic()

    def due(self) -> int:
        """Return how many numbers should be out by now."""
        return int((time.monotonic() - self._began) * self._rate) + 1

    def pause(self, sent: int, least: float = 0.002) -> None:
        """Sleep until more than so many are due."""
        ahead = sent / self._rate - (time.monotonic() - self._began)
        time.sleep(min(max(ahead, least), 0.2))


class Served:
    """The numbers of a device that is polled: each request gets the next ones."""

    def __init__(self, arguments: PeerArguments) -> None:
        self._arguments = arguments
        self._log = arguments.log
        self._next = self._log.next_number(Event.OFFERED)

    def take(self, most: int = 1, lane: int = 0) -> range:
        """Return the next numbers, and log that they are handed out; none before the start."""
        if not self._arguments.may_go():
            return range(0)
        first = self._next
        end = min(first + most, self._arguments.count)
        if first < end:
            self._log.add(Event.OFFERED, first, end - 1, lane)
            self._next = end
        return range(first, end)

    def one(self, lane: int) -> int:
        """Return the next number of all, for a lane, or NOTHING."""
        taken = self.take(1, lane)
        return taken[0] if taken else NOTHING
