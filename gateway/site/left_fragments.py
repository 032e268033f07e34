"""Finds the queries that were stopped while we were away.

Stopping a query empties its retained fragment, and nobody tells those who are not connected. After
a reconnect the broker sends what it still retains; what runs here and is not among it has been
stopped. A message to ourselves, sent after subscribing, marks the end of what is retained.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

PATIENCE = 5.0
"""Seconds after the mark in which whoever owns the queries may publish them again, because the
broker has lost its memory."""


@dataclass(slots=True)
class LeftFragments:
    """Compares what runs with what is retained, once after each reconnect."""

    _seen: set[str] = field(default_factory=set)
    _mark: str = ""
    _due: float | None = None

    def reconnected(self) -> str:
        """Begin to compare; return the mark to send to ourselves."""
        self._seen = set()
        self._due = None
        self._mark = secrets.token_hex(8)
        return self._mark

    def saw(self, query: str) -> None:
        """Note a fragment that came."""
        if self._mark:
            self._seen.add(query)

    def marked(self, mark: str, now: float) -> None:
        """Take in that a mark came back; `now` in seconds."""
        if mark and mark == self._mark:
            self._due = now + PATIENCE

    def next_due(self) -> float | None:
        """Return when `stopped` has something to say, or None."""
        return self._due

    def stopped(self, running: Iterable[str], now: float) -> list[str]:
        """Return the queries that run although nothing is retained of them."""
        if self._due is None or now < self._due:
            return []
        stopped = [query for query in running if query not in self._seen]
        self._due, self._mark, self._seen = None, "", set()
        return stopped
