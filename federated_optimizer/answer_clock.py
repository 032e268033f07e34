"""The time that an answer is of, which a replay's is not the wall clock's.

Pure: times are handed in. Every batch of an answer says what time it was at its sender. Between
batches time goes on as fast as it did so far: a replay may be faster or slower than the clock.
"""

JUMP = 60_000_000
"""A batch that is so much older than the one before comes from another incarnation."""
LEAST_SPAN = 2_000_000
"""Shorter spans do not tell how fast a sender's time goes. Microseconds, as all times here."""
NEARLY = 0.05
"""A speed that differs from 1 by less is 1: messages travel now faster, now slower."""


class AnswerClock:
    """What time it is in an answer. Follows the sender that is furthest ahead."""

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        self._speed = 1.0

    def heard(self, now: int, wall: int) -> None:
        """Take note of a batch.

        Args:
            now: Its sender's time; not above 0 where it tells none.
            wall: The time here when it came.
        """
        if now <= 0:
            return
        if self._last is None or now < self._last[0] - JUMP:
            self._first = self._last = (now, wall)
            self._speed = 1.0
        elif now > self._last[0]:
            self._last = (now, wall)
            self._measure()

    def at(self, wall: int) -> int:
        """Return the answer's time; as long as nothing was heard the time here."""
        if self._last is None:
            return wall
        now, then = self._last
        return now + int(max(0, wall - then) * self._speed)

    def _measure(self) -> None:
        if self._first is None or self._last is None:
            return
        span = self._last[1] - self._first[1]
        if span < LEAST_SPAN:
            return
        speed = (self._last[0] - self._first[0]) / span
        self._speed = 1.0 if abs(speed - 1) < NEARLY else speed
