"""Which of the views that are due may be computed: those whose tables were read since.

A view must show what its tables held when it became due, or when somebody asked for it. Tables are
read in turns, so one read just before is not good enough, nor is a file that is being written.
"""

from collections.abc import Callable, Iterable

LONGEST_WAIT = 60.0
"""Seconds a view waits for files that keep changing; then it is computed from what was read."""


class Readiness:
    """Remembers for which due views the tables were read. Belongs to the event loop.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._read: set[str] = set()

    def due(self, views: Iterable[str]) -> frozenset[str]:
        """Take the views that are due; return those whose tables have yet to be read."""
        now = self._clock()
        self._since = {view: self._since.get(view, now) for view in views}
        self._read &= self._since.keys()
        return frozenset(self._since.keys() - self._read)

    def reading(self, views: Iterable[str]) -> None:
        """Note that the tables of due views are read from now on."""
        self._read |= self._since.keys() & set(views)

    def unsettled(self, view: str) -> None:
        """Note that a table of a view was changing while it was read."""
        if self._clock() - self._since.get(view, self._clock()) < LONGEST_WAIT:
            self._read.discard(view)

    def asked(self, view: str) -> None:
        """Note that somebody wants what the tables hold now, whatever was read before."""
        self._read.discard(view)

    def is_ready(self, view: str) -> bool:
        """Return whether a view may be computed."""
        return view in self._read

    def done(self, view: str) -> None:
        """Note that a view is computed now; whoever asks later wants it once more."""
        self._since.pop(view, None)
        self._read.discard(view)
