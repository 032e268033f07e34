"""Numbers of queries, which are never given twice: reserved in blocks, given one by one."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import sqlalchemy as sa

from federated_optimizer.coordinator.store.schema import catalog_schema as tables

BLOCK = 50
"""Numbers that are reserved at once: what a coordinator that is killed leaves out at most."""


class QueryNumbers:
    """The numbers that this coordinator may give.

    Sites remember a query by its number, so one is given only if the catalog knows already that it
    is. A commit for each would take longer than all else that a query needs.
    """

    def __init__(self, writing: Callable[[], AbstractContextManager[sa.Connection]]) -> None:
        self._writing = writing
        self._lock = threading.Lock()
        self._next = self._end = 0

    def take_reserved(self) -> int | None:
        """Return the next number, without the database; None: one has to be reserved first."""
        # Whoever holds the lock is about to wait for the disk.
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return None if self._next == self._end else self._given()
        finally:
            self._lock.release()

    def take(self) -> int:
        """Return the next number.

        Raises:
            DeploymentError: No more can be reserved.
        """
        with self._lock:
            if self._next == self._end:
                self._reserve()
            return self._given()

    def _given(self) -> int:
        self._next += 1
        return self._next - 1

    def _reserve(self) -> None:
        row = tables.coordinator
        with self._writing() as connection:
            first: int = connection.execute(sa.select(row.c.next_query)).scalar_one()
            connection.execute(row.update().values(next_query=first + BLOCK))
        self._next, self._end = first, first + BLOCK

    def give_back(self) -> None:
        """Let the next coordinator go on where this one stops.

        Raises:
            DeploymentError: The catalog cannot be written.
        """
        row = tables.coordinator
        with self._lock:
            left, end, self._end = self._next, self._end, self._next
            if left != end:
                with self._writing() as connection:
                    mine = row.c.next_query == end
                    connection.execute(row.update().where(mine).values(next_query=left))
