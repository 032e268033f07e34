"""Final rows are held back until every sender of a query has been received."""

from collections.abc import Sequence

from stream_engine.exchange.channel_inbox import Inbox
from stream_engine.operators.windows.hold import Hold


class SenderSync:
    """Holds back operators that emit only final rows, while a sender's watermark is unknown.

    Args:
        holds: Of the operators that wait for watermarks; without any nothing is done.
        inbox: Knows which senders were received or given up.
        wait: Max microseconds to wait for the others; None: without end.
    """

    __slots__ = ("_holds", "_inbox", "_wait", "is_on")

    def __init__(self, holds: Sequence[Hold], inbox: Inbox, wait: int | None) -> None:
        self._holds = holds
        self._inbox = inbox
        self._wait = wait
        self.begin()

    def begin(self) -> None:
        """Hold back from now on, if a sender is missing."""
        self.is_on = bool(self._holds) and not self._inbox.is_complete
        if self.is_on:
            for hold in self._holds:
                hold.begin(self._wait)

    @property
    def ends_now(self) -> bool:
        """Whether the next step has to end it: all have been received since."""
        return self.is_on and self._inbox.is_complete

    def poll(self) -> None:
        """End it if all have been received."""
        if self.ends_now:
            for hold in self._holds:
                hold.end()
            self.is_on = False
