"""Asks the coordinator for the time, again and again, and says what is to be done about it."""

import asyncio
from collections.abc import Iterator
from typing import Any, TypeGuard

from gateway.gateway_settings import ClockSettings
from gateway.session.clock_offset import ClockOffset, sample_of
from host.clocks import Clock, monotonic_clock, wall_clock
from host.mqtt import MessageClient, QueueFull
from stream_engine.site.measured_values import Measured
from streamsql.data.types import LATEST
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import ClockState
from streamsql.wire.topics import Topics

FIRST_ANSWERS = 4
FIRST_SECONDS = 2.0
SECONDS = 20.0
"""Between two questions: soon at first, then seldom."""
NEARLY_AT_ONCE = 100
"""Microseconds within which both clocks should be read: the process may be put aside between."""
ATTEMPTS = 5


class ClockExchange:
    """The clock of one gateway against the coordinator's.

    Args:
        site: This gateway.
        settings: Whether the clock is corrected, and from which offset on something is said.
        wall: The machine's time, as it is.
        elapsed: As `monotonic_clock`.

    Attributes:
        offset: What has been found.
        correction: Microseconds to add to the machine's time; 0 unless the settings ask for it.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        site: str,
        client: MessageClient,
        topics: Topics,
        settings: ClockSettings,
        *,
        wall: Clock = wall_clock,
        elapsed: Clock = monotonic_clock,
    ) -> None:
        self.offset = ClockOffset()
        self.correction = 0
        self._site = site
        self._client = client
        self._topics = topics
        self._settings = settings
        self._wall = wall
        self._elapsed = elapsed
        self._number = 0
        self._asked: tuple[str, int, int] | None = None
        self._ahead: int | None = None

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            self.ask()
            early = self.offset.answers < FIRST_ANSWERS
            await asyncio.sleep(FIRST_SECONDS if early else SECONDS)

    def ask(self) -> None:
        """Ask once, if the broker is there; an earlier question is given up."""
        if not self._client.connected:
            return
        self._number += 1
        number, (wall, since) = f"t{self._number}", self._read_both()
        question = Command(id=number, arguments={"asked": wall})
        try:
            self._client.publish(self._topics.clock(self._site), encode_json(question))
        except QueueFull:
            return  # asked again later: there is no hurry, and the queue has other worries
        self._asked = (number, wall, since)

    def answered(self, command: Command) -> None:
        """Take an answer in; one to another question, of an earlier life say, is none."""
        asked, given = self._asked, command.arguments
        received, sent = given.get("received"), given.get("sent")
        if asked is None or command.id != asked[0] or given.get("asked") != asked[1]:
            return
        if not _is_time(received) or not _is_time(sent):
            return
        self._asked = None
        _number, wall, since = asked
        now = self._elapsed()
        sample = sample_of(wall, received, sent, now - since, now)
        if sample is None:
            return
        self.offset.take(sample)
        found = self.offset.offset
        if self._settings.correct and found is not None:
            if abs(found - self.correction) > self.offset.error:  # else it is noise
                self.correction = round(found)
            wall, now = self._read_both()
            self._ahead = wall - now + self.correction

    def corrected(self) -> int:
        """Return the machine's time, corrected; it may go back, see `SteadyClock`.

        Once it is corrected it passes as the clock that nobody sets, from answer to answer: if the
        machine's is set meanwhile, the correction would be wrong.
        """
        return self._wall() if self._ahead is None else self._elapsed() + self._ahead

    def _read_both(self) -> tuple[int, int]:
        """Return the machine's time, and that of the clock that nobody sets from just before.

        Never from after: an answer then took longer than it did, and its bound holds.
        """
        since, wall = self._elapsed(), self._wall()
        for _ in range(ATTEMPTS - 1):
            if self._elapsed() - since <= NEARLY_AT_ONCE:
                break
            since, wall = self._elapsed(), self._wall()
        return wall, since

    def state(self) -> ClockState:
        """Return what the site says about its clock."""
        found = self.offset.offset_ms
        return ClockState(
            offset_ms=None if found is None else round(found, 3),
            error_ms=round(self.offset.error_ms, 3),
            corrected_ms=round(self.correction / 1_000, 3),
        )

    def measured(self) -> Iterator[Measured]:
        """Yield what has been found out about the clock, for `sys_stream`."""
        state = self.state()
        if state.offset_ms is not None:
            gauges = {
                "clock_offset_ms": state.offset_ms,
                "clock_error_ms": state.error_ms,
                "clock_corrected_ms": state.corrected_ms,
            }
            yield Measured("", "clock", self._site, gauges=gauges)

    def problem(self) -> str:
        """Return a warning if the clock is wrong beyond doubt and not corrected, or ""."""
        found, most = self.offset.offset_ms, self._settings.warn_offset_ms
        left = 0.0 if found is None else found - self.correction / 1_000
        if abs(left) - self.offset.error_ms <= most:
            return ""
        way = "behind" if left > 0 else "ahead of"
        return (
            f"this gateway's clock is {abs(left) / 1_000:.1f} s {way} the coordinator's: set it, "
            "or set clock.correct in its settings to true"
        )


def _is_time(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LATEST
