"""Finds what was withdrawn while we were away: stopped queries, dropped sources.

Stopping a query empties its retained fragment, dropping a source its definition, and nobody tells
those who are not connected. After a reconnect the broker sends what it still retains; what runs
here and is not among it has been stopped. A message to ourselves, sent after subscribing, marks the
end of what is retained.

A broker that has lost its memory retains nothing, which says nothing about queries: only one that
still knows our own state is believed. It may know an old set, from its last save.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

PATIENCE = 30.0
"""Seconds after the mark in which whoever owns the queries may publish again what the broker has
forgotten. Stopping a query too early costs the contents of its windows; too late costs nothing."""


@dataclass(slots=True)
class LeftFragments:
    """Compares what runs with what is retained, once after each reconnect."""

    _seen: set[str] = field(default_factory=set)
    _mark: str = ""
    _marked_at: float | None = None
    _remembers: bool = False

    def reconnected(self) -> str:
        """Begin to compare; return the mark to send to ourselves."""
        self._seen = set()
        self._marked_at, self._remembers = None, False
        self._mark = os.urandom(8).hex()
        return self._mark

    def saw(self, query: str) -> None:
        """Note a fragment that came."""
        if self._mark:
            self._seen.add(query)

    def remembered(self) -> None:
        """Note that the broker has retained our own state."""
        self._remembers = bool(self._mark)

    def marked(self, mark: str, now: float) -> None:
        """Note that a mark came back; `now` in seconds."""
        if mark and mark == self._mark:
            self._marked_at = now

    def next_due(self) -> float | None:
        """Return when `stopped` has something to say, or None."""
        if self._marked_at is None or not self._remembers:
            return None
        return self._marked_at + PATIENCE

    def stopped(self, running: Iterable[str], now: float) -> list[str]:
        """Return the queries that run although nothing is retained of them."""
        due = self.next_due()
        if due is None or now < due:
            return []
        stopped = [query for query in running if query not in self._seen]
        self._marked_at, self._mark, self._seen = None, "", set()
        return stopped
