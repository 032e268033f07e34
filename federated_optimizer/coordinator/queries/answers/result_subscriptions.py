"""Readers of a query's changes: bounded, each as fast as it likes.

A reader that falls more than its bound behind loses what waits for it and gets one snapshot of
the relation as it then is, so it is right again, and nobody else waits for it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from federated_optimizer.coordinator.contract.coordinator_model import ChangeBatch


class ResultSubscription:
    """One reader. Belongs to one event loop.

    Args:
        snapshot: Makes a batch of everything there is now.
        closed: Called once when the reader has gone.
        max_behind: Changes that may wait.
        begin_with_snapshot: Whether the first batch is a snapshot.

    Attributes:
        progress: Whether it wants to know up to when the answer is complete.
    """

    def __init__(
        self,
        snapshot: Callable[[], ChangeBatch],
        closed: Callable[["ResultSubscription"], None],
        *,
        max_behind: int,
        begin_with_snapshot: bool = True,
    ) -> None:
        self._snapshot = snapshot
        self._closed = closed
        self._max_behind = max_behind
        self._waiting: deque[ChangeBatch] = deque()
        self._changes = 0
        self._owes_snapshot = begin_with_snapshot
        self._ended = False
        self.progress = False
        self._wake = asyncio.Event()
        if begin_with_snapshot:
            self._wake.set()

    def deliver(self, batch: ChangeBatch) -> None:
        """Queue a batch; what a pending snapshot will contain anyway is not queued."""
        if self._ended:
            return
        if self._owes_snapshot and batch.status is None:
            return
        last = self._waiting[-1] if self._waiting else None
        if batch.progress is not None and last is not None and last.progress is not None:
            self._waiting[-1] = batch
            return
        self._waiting.append(batch)
        # A batch without changes takes room as well.
        self._changes += max(len(batch.changes), 1)
        if self._changes > self._max_behind:
            self._waiting = deque(b for b in self._waiting if b.status is not None)
            while len(self._waiting) > 1:
                self._waiting.popleft()
            self._changes = len(self._waiting)
            self._owes_snapshot = True
        self._wake.set()

    def end(self, last: ChangeBatch | None = None) -> None:
        """End the iteration after what waits, and after a last batch."""
        if last is not None:
            self.deliver(last)
        self._ended = True
        self._wake.set()

    def __aiter__(self) -> AsyncIterator[ChangeBatch]:
        """Return the reader itself."""
        return self

    async def __anext__(self) -> ChangeBatch:
        """Wait for the next batch."""
        while True:
            if self._owes_snapshot:
                self._owes_snapshot = False
                return self._snapshot()
            if self._waiting:
                batch = self._waiting.popleft()
                self._changes -= max(len(batch.changes), 1)
                return batch
            if self._ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    async def close(self) -> None:
        """Stop reading; may be called twice."""
        if not self._ended:
            self._ended = True
            self._waiting.clear()
            self._wake.set()
        self._owes_snapshot = False
        closed, self._closed = self._closed, lambda _subscription: None
        closed(self)
