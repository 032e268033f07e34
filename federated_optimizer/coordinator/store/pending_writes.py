"""Writes of the catalog that wait for the next transaction: one commit for many statements.

A commit takes as long as the disk needs, some milliseconds, whatever is in it. So whoever has
something to write puts it here and asks for a commit, which others who have come meanwhile share.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from federated_optimizer.coordinator.store.catalog_database import translated
from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

Write = Callable[[sa.Connection], None]


@dataclass(slots=True, eq=False)
class PendingWrite:
    """A write that waits.

    Attributes:
        is_done: Whether it is committed, or has failed.
        error: Why it has failed; it is not tried again.
    """

    write: Write
    is_done: bool = False
    error: DeploymentError | None = None

    def make(self, connection: sa.Connection, url: str) -> None:
        """Write within a transaction; what the write fails for fails nothing else in it.

        Several users' queries wait together: the text of one that the database cannot take is no
        reason to refuse those of the others. A defect would fail each later transaction, too.
        """
        try:
            with connection.begin_nested():
                self.write(connection)
        except Exception as error:
            log.warning("a write of the catalog has failed", exc_info=error)
            self.error = translated(error, "write", url)

    def check(self) -> None:
        """Raise what it failed for.

        Raises:
            DeploymentError: Nothing of it is in the catalog.
        """
        if self.error is not None:
            raise self.error


class PendingWrites:
    """The writes that wait, in their order; any transaction makes all of them first.

    So no later write overtakes them, whoever makes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[PendingWrite] = []

    def __bool__(self) -> bool:
        """Return whether something waits."""
        return bool(self._waiting)

    def add(self, write: Write) -> PendingWrite:
        """Let a write wait."""
        pending = PendingWrite(write)
        with self._lock:
            self._waiting.append(pending)
        return pending

    @staticmethod
    def make(waiting: Sequence[PendingWrite], connection: sa.Connection, url: str) -> None:
        """Make writes within a transaction: all at once, or else each that can be made."""
        try:
            with connection.begin_nested():
                for pending in waiting:
                    pending.write(connection)
        except Exception:  # noqa: BLE001 - each that fails says so now
            for pending in waiting:
                pending.make(connection, url)

    @contextmanager
    def taken(self) -> Iterator[list[PendingWrite]]:
        """Take what waits into a transaction that is committed inside; all fail if it does.

        Raises:
            DeploymentError: As the transaction.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, []
        try:
            yield waiting
        except DeploymentError as error:
            for pending in waiting:
                pending.error = error
            raise
        except BaseException:
            # What failed is not of the database: they have nothing to do with it.
            with self._lock:
                self._waiting = waiting + self._waiting
            waiting = []
            raise
        finally:
            for pending in waiting:
                pending.is_done = True
