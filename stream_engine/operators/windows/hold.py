"""What an operator that gives only final rows does while some site has not been heard yet."""


class Hold:
    """Whether rows are held back, and until when.

    A query that begins, and one whose site was restarted, hears its senders one after another: the
    least watermark of those heard so far says nothing. So its operators are held until all have
    been heard, or for a longest wait. The wait begins, and the hold ends, only with a step, because
    only a step knows the time:

        begin(wait=10)    over_at(100) → False, until == 110    over_at(110) → True, once
        begin(None)       never over … end()                    over_at(any) → True, once

    Attributes:
        until: Time at which they are no longer, or None: they are not, or without end, or no step
            has begun the wait yet.
    """

    __slots__ = ("_wait", "is_on", "until")

    def __init__(self) -> None:
        self.is_on = False
        self.until: int | None = None
        self._wait: int | None = None

    def begin(self, wait: int | None) -> None:
        """Hold rows back until `end`, or for so long after the next step.

        Args:
            wait: Microseconds, or None: until it is ended.
        """
        self.is_on, self._wait, self.until = True, wait, None

    def end(self) -> None:
        """Hold nothing back any more, from the next step on."""
        self._wait, self.until = 0, None

    def over_at(self, now: int) -> bool:
        """Note the time of a step; return whether the hold ends with it."""
        if not self.is_on:
            return False
        if self._wait is not None:
            self.until, self._wait = now + self._wait, None
        if self.until is None or now < self.until:
            return False
        self.is_on, self.until = False, None
        return True
