"""Final rows are held back until every sender of a query has been heard."""

from collections.abc import Sequence

from stream_engine.exchange.channel_inbox import Inbox
from stream_engine.operators.windows.hold import Hold


class Hearing:
    """Holds back what gives only final rows, while the watermark of some sender is not known.

    Args:
        holds: Of the operators that wait for watermarks; without any nothing is done.
        inbox: Knows who has been heard or given up.
        wait: Microseconds to wait for the others at the longest, or None: without end.
    """

    __slots__ = ("_holds", "_inbox", "_wait", "is_on")

    def __init__(self, holds: Sequence[Hold], inbox: Inbox, wait: int | None) -> None:
        self._holds = holds
        self._inbox = inbox
        self._wait = wait
        self.is_on = False
        self.begin()

    def begin(self) -> None:
        """Hold back from now on, if there is anybody to be heard."""
        self.is_on = bool(self._holds) and not self._inbox.is_complete
        if self.is_on:
            for hold in self._holds:
                hold.begin(self._wait)

    @property
    def ends_now(self) -> bool:
        """Whether the next step has to end it: all have been heard since."""
        return self.is_on and self._inbox.is_complete

    def look(self) -> None:
        """End it if all have been heard."""
        if self.ends_now:
            for hold in self._holds:
                hold.end()
            self.is_on = False
