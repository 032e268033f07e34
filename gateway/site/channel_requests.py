"""Requests of a receiver to senders: a snapshot now, or to discard what it need not repeat.

A channel that waits for a snapshot is asked for at once, then again after pauses that double: the
request or its answer may be lost, and asking without a pause would only add to whatever goes wrong.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from stream_engine.site.step_result import Forget
from streamsql.errors import WireError
from streamsql.wire.messages import Command

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 10.0
_VERSION, _WATERMARK = "version", "watermark"
_PORT = "port "

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
            if channel in open_channels or asked.again_at > now
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


def forget_command(told: Forget, receiver: str) -> Command:
    """Return the command; see `forget_from`."""
    bounds = {f"{_PORT}{port}": bound for port, bound in told.bounds.items()}
    numbers = {_VERSION: told.version, _WATERMARK: told.watermark, **bounds}
    return Command(query=told.query, channel=receiver, arguments=dict(numbers))


def forget_from(command: Command, *, me: str) -> Forget:
    """Return what a command says.

    Raises:
        WireError: Something in it is no number.
    """
    numbers: dict[str, int] = {}
    for name, value in command.arguments.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise WireError(f"command forget: {name!r:.40} is not a whole number")
        numbers[name] = value
    if _VERSION not in numbers or _WATERMARK not in numbers:
        raise WireError("command forget: version or watermark is missing")
    bounds = {n.removeprefix(_PORT): v for n, v in numbers.items() if n.startswith(_PORT)}
    return Forget(command.query, me, numbers[_VERSION], numbers[_WATERMARK], bounds)
