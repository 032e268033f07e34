"""Requests of a receiver for snapshots of channels that are out of step, with growing pauses.

A channel that waits for a snapshot is asked for at once, then again after pauses that double: the
request or its answer may be lost, and asking without a pause would only add to whatever goes wrong.
A channel that is in step for shorter than its last pause has gained nothing: it goes on with longer
ones, or a slow receiver would be sent everything again and again.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0

Channel = tuple[str, str]
"""Query and sending site."""


@dataclass(slots=True)
class _Asked:
    again_at: float
    pause: float


@dataclass(slots=True)
class ResyncRequests:
    """Remembers who was asked when. Times are seconds of a clock that only goes forward."""

    _asked: dict[Channel, _Asked] = field(default_factory=dict)
    _wanted: dict[Channel, None] = field(default_factory=dict)

    def want(self, channels: Collection[Channel]) -> None:
        """Ask for these at the next chance, even if they seem to be in step."""
        self._wanted.update(dict.fromkeys(sorted(channels)))

    def due(self, waiting: Collection[Channel], now: float) -> list[Channel]:
        """Return whom to ask now of those that wait for a snapshot, and count them as asked."""
        open_channels = set(waiting) | set(self._wanted)
        self._asked = {
            channel: asked
            for channel, asked in self._asked.items()
            if channel in open_channels or asked.again_at + asked.pause > now
        }
        due = []
        for channel in sorted(open_channels):
            asked = self._asked.get(channel)
            if asked is None or asked.again_at <= now:
                pause = FIRST_PAUSE if asked is None else min(asked.pause * 2, LONGEST_PAUSE)
                self._asked[channel] = _Asked(now + pause, pause)
                self._wanted.pop(channel, None)
                due.append(channel)
        return due

    def next_due(self, waiting: Collection[Channel]) -> float | None:
        """Return when `due` has something to say again, or None."""
        times = [
            self._asked[channel].again_at if channel in self._asked else 0.0
            for channel in set(waiting) | set(self._wanted)
        ]
        return min(times, default=None)
