"""Answers of the static engine to what it was asked, by the ids of the requests."""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from federated_optimizer.coordinator.shared_parts import SharedParts
from streamsql.errors import DeploymentError

_LOOK_SECONDS = 0.25
Answer = TypeVar("Answer")


class AwaitedAnswers(Generic[Answer]):
    """Waits for answers, as long as the static engine that was asked is there.

    Args:
        shared: Of the coordinator.
        limit: How many may be waited for.
        what: What waits, for people, e.g. "changes of tables".
        code: Of the error when too many wait.
    """

    def __init__(self, shared: SharedParts, limit: int, what: str, code: str) -> None:
        self._shared = shared
        self._static = shared.settings.static
        self._limit = limit
        self._what = what
        self._code = code
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    def waits_for(self, request: str) -> bool:
        """Whether somebody waits for the answer to a request."""
        return request in self._waiting

    def heard(self, request: str, answer: Answer) -> None:
        """Take an answer; one that nobody waits for any more is dropped."""
        waiting = self._waiting.get(request)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def ask(self, request: str, send: Callable[[int], None], seconds: float) -> Answer | None:
        """Send a request and return its answer; None: it has not come.

        Args:
            request: Its id.
            send: Sends it to the static engine of an epoch.
            seconds: How long is waited.

        Raises:
            DeploymentError: The static engine is not there, or too many wait; nothing was sent.
        """
        self._shared.membership.check_reachable(self._static)
        if len(self._waiting) >= self._limit:
            raise DeploymentError(
                f"{self._limit} {self._what} already wait", hint="retry later", code=self._code
            )
        epoch = self._shared.membership.epoch(self._static)
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request] = waiting
        try:
            send(epoch)
            end = time.monotonic() + seconds
            while not waiting.done() and self.is_there(epoch) and time.monotonic() < end:
                await asyncio.wait((waiting,), timeout=min(_LOOK_SECONDS, seconds))
        finally:
            del self._waiting[request]
        return waiting.result() if waiting.done() else None

    def is_there(self, epoch: int) -> bool:
        """Whether the static engine is online, and not restarted since an epoch."""
        membership = self._shared.membership
        return membership.is_online(self._static) and membership.epoch(self._static) == epoch
