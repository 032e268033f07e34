"""The time by which things are removed for good: a clock that jumps ahead is believed a day later.

What was removed by a wrong clock does not come back. So a clock that is suddenly more than a day
ahead counts only once it has gone on from there for a day; until then time goes on from where it
was. A clock that is set back counts at once: by it less is removed. A service that did not run for
more than a day cannot tell one from the other, and waits as well.
"""

import msgspec

from streamsql.catalog.keep_options import DAY

JUMP = DAY
"""Microseconds; as far a clock may be set ahead, or a service be off, without anybody waiting."""
WAIT = DAY
"""Microseconds for which a clock has to go on after a jump."""


class BelievedTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time, as it is kept between two looks at the clock. All are microseconds since 1970.

    Attributes:
        time: What is believed.
        seen: What the clock said.
        since: What it said when it was first seen ahead; None: it is not.
    """

    time: int
    seen: int
    since: int | None = None

    @property
    def until(self) -> int | None:
        """Time of the clock from which it is believed; None: it is already."""
        return None if self.since is None else self.since + WAIT

    def later(self, now: int, elapsed: int) -> "BelievedTime":
        """Return the time of another look.

        Args:
            now: What the clock says.
            elapsed: Microseconds since this look, by a clock that nobody sets; 0: unknown.
        """
        expected = self.time + elapsed
        if now <= expected + JUMP:
            return BelievedTime(now, now)
        goes_on = self.seen - JUMP <= now <= self.seen + elapsed + JUMP
        since = self.since if self.since is not None and goes_on else now
        if now - since >= WAIT:
            return BelievedTime(now, now)
        return BelievedTime(expected, now, since)


def time_of(text: str | None, now: int) -> BelievedTime:
    """Return a time that was kept; without one, or if it is damaged, the clock is believed."""
    try:
        return msgspec.json.decode(text or "", type=BelievedTime)
    except msgspec.MsgspecError:
        return BelievedTime(now, now)


def text_of(time: BelievedTime) -> str:
    """Return a time as `time_of` reads it."""
    return msgspec.json.encode(time).decode()
