"""Figures of a load: rows at their reader, and the gateway's memory."""

import asyncio
from dataclasses import dataclass, field

import psutil

from host.clocks import wall_clock
from host.mqtt import Message
from streamsql.wire.codec import decode_json, decode_packed
from streamsql.wire.messages import DeltaBatch
from streamsql.wire.site_messages import SiteState
from streamsql.wire.topics import Topics

TOPICS = Topics("bench")
LOOK_SECONDS = 0.2


@dataclass
class Reader:
    """Counts the rows and observations that arrive, and how old the rows are."""

    ages: list[float] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    observed: int = 0
    state: SiteState | None = None

    def has(self, rows: int, observations: int) -> bool:
        """Return whether at least so many were seen."""
        return len(self.seen) >= rows and self.observed >= observations

    def take(self, burst: list[Message]) -> None:
        """Take messages in."""
        now = wall_clock()
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["q", "q1", "out", _]:
                    for weighted in decode_packed(message.payload, DeltaBatch).deltas:
                        _device, number, _temperature, ts = weighted.row
                        if weighted.weight > 0 and isinstance(number, int) and isinstance(ts, int):
                            self.seen.add(number)
                            self.ages.append((now - ts) / 1_000)
                case ["gw", _, "state"]:
                    self.state = decode_json(message.payload, SiteState)
                case ["gw", _, "obs" | "hist", _]:
                    self.observed += message.payload.count(b'"bt"')
                case _:
                    pass


def percentile(values: list[float], share: float) -> float | None:
    """Return the value below which a share of all lies; None where there are none."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else None


class PeakMemory:
    """The most resident memory that a process had, of what was looked at."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.bytes = 0

    def look(self) -> None:
        """Look once."""
        self.bytes = max(self.bytes, self._process.memory_info().rss)

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)
