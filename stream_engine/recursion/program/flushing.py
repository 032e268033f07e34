"""When alternatives that were held back are sent all the same (MinShip's interval and capacity)."""


class Flushing:
    """Decides when a site that ships lazily sends everything it has buffered.

    With an interval, that long after the first alternative was held back; with a capacity, once
    that many rows hold some back; with neither, never. What does not fit the width of annotations
    stays behind and causes no further sending.

    Time is what `advance` said last: nothing here reads a clock.

    Args:
        interval: Microseconds, or None.
    """

    def __init__(self, interval: int | None, capacity: int | None) -> None:
        self._interval = interval
        self._capacity = capacity
        self._now: int | None = None
        self.next_wakeup: int | None = None
        self._stuck = 0

    def advance(self, now: int) -> None:
        """Move the time on."""
        self._now = now

    def is_due(self, waiting: int) -> bool:
        """Whether to send now."""
        if self._capacity is not None and waiting >= self._capacity + self._stuck:
            return True
        return (
            self.next_wakeup is not None and self._now is not None and self._now >= self.next_wakeup
        )

    def flushed(self, waiting: int) -> None:
        """Note that everything was sent but what some rows could not take."""
        self._stuck = waiting
        self.next_wakeup = None

    def note(self, waiting: int) -> None:
        """Note how many rows hold alternatives back at the end of a step."""
        self._stuck = min(self._stuck, waiting)
        if waiting <= self._stuck:
            self.next_wakeup = None
        elif self.next_wakeup is None and self._interval is not None and self._now is not None:
            self.next_wakeup = self._now + self._interval
