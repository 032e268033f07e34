"""Nodes or devices whose birth was not received: they leave when others need room, or when silent.

Messages of invented nodes must not bar real ones, so each entry is provisional until its birth.
"""

from collections.abc import Hashable
from itertools import chain, takewhile
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class ProvisionalEntries(Generic[Key]):
    """Keys in the order of their last messages; those without rows leave first."""

    def __init__(self) -> None:
        self._without_rows: dict[Key, int] = {}
        self._with_rows: dict[Key, int] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._without_rows or key in self._with_rows

    def put(self, key: Key, now: int, *, has_rows: bool) -> None:
        """Add a key, or note its last message.

        Args:
            key: A key that once had rows keeps them.
            now: Microseconds since 1970.
            has_rows: Whether there are rows of it.
        """
        has_rows = has_rows or key in self._with_rows
        self.discard(key)
        (self._with_rows if has_rows else self._without_rows)[key] = now

    def discard(self, key: Key) -> None:
        """Remove a key, if it is there."""
        self._without_rows.pop(key, None)
        self._with_rows.pop(key, None)

    def first(self) -> Key | None:
        """Return the key that leaves next, or None."""
        return next(chain(self._without_rows, self._with_rows), None)

    def silent(self, since: int) -> list[Key]:
        """Return keys without rows whose last message came at a time or before it."""
        found = takewhile(lambda entry: entry[1] <= since, self._without_rows.items())
        return [key for key, _ in found]
