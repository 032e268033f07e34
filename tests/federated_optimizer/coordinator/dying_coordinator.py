"""A coordinator that dies at a given step: at a commit of queries and nodes, or at a message.

Whatever it does afterwards has no effect, so that another one finds the catalog, the broker and the
sites as they were at this step.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable
from enum import StrEnum, auto
from typing import Any, TypeVar

import sqlalchemy as sa

from federated_optimizer.coordinator.coordinator_service import Coordinator

T = TypeVar("T")

OF_RUNS = ("pando_queries", "pando_nodes", "pando_computations", "pando_makers", "next_query")
"""Parts of the catalog that queries change. Others are written in their own time."""
CHANGES = ("INSERT", "UPDATE", "DELETE")


class Step(StrEnum):
    """Steps at which a coordinator dies."""

    COMMIT = auto()
    MESSAGE = auto()


class KilledError(BaseException):
    """Raised where a dead coordinator would go on; nobody but the test may catch it."""


class DyingCoordinator:
    """Kills a coordinator in place of its n-th commit, or of its n-th order to a site.

    Args:
        coordinator: Without queries.
        step: What is counted.
        at: The number of the step, from 1.

    Attributes:
        steps: Steps that were made, in words; the last one is missing if it is dead.
    """

    def __init__(self, coordinator: Coordinator, step: Step, at: int) -> None:
        self.steps: list[str] = []
        self._coordinator = coordinator
        self._step, self._at = step, at
        self._loop = asyncio.get_running_loop()
        self._died = asyncio.Event()
        self._is_dead = False
        self._changed: dict[int, set[str]] = {}
        engine = coordinator._shared.store._engine
        sa.event.listen(engine, "before_cursor_execute", self._executes)
        sa.event.listen(engine, "commit", self._commits)
        sa.event.listen(engine, "rollback", lambda one: self._changed.pop(id(one), None))
        client: Any = coordinator._shared.client
        publish = client.publish

        @functools.wraps(publish)
        def published(topic: str, *how: Any, **told: Any) -> Any:
            self._publishes(topic)
            return publish(topic, *how, **told)

        client.publish = published

    @property
    def is_dead(self) -> bool:
        """Return whether the step has come at which it dies."""
        return self._is_dead

    def _executes(
        self,
        connection: sa.Connection,
        _cursor: object,
        statement: str,
        *_rest: object,
    ) -> None:
        if statement.startswith(CHANGES):
            found = {part for part in OF_RUNS if part in statement}
            self._changed.setdefault(id(connection), set()).update(found)

    def _commits(self, connection: sa.Connection) -> None:
        changed = self._changed.pop(id(connection), set())
        self._take(Step.COMMIT if changed else None, ", ".join(sorted(changed)))

    def _publishes(self, topic: str) -> None:
        is_order = "/frag/" in topic
        self._take(Step.MESSAGE if is_order else None, topic)

    def _take(self, step: Step | None, words: str) -> None:
        if self._is_dead:
            raise KilledError
        if step != self._step:
            return
        if len(self.steps) + 1 == self._at:
            self._is_dead = True
            self._loop.call_soon_threadsafe(self._died.set)
            raise KilledError
        self.steps.append(words)

    async def while_it_lives(self, doing: Awaitable[T]) -> T | None:
        """Return what is awaited, or None if it has died meanwhile."""
        task, death = asyncio.ensure_future(doing), asyncio.ensure_future(self._died.wait())
        await asyncio.wait((task, death), return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not self._is_dead:
            return task.result()
        task.cancel()
        with contextlib.suppress(KilledError, asyncio.CancelledError):
            await task
        return None

    async def bury(self) -> None:
        """End what is left of it."""
        coordinator, shared = self._coordinator, self._coordinator._shared
        shared.presence.taken_over = True  # so it says no goodbye
        self._is_dead = True
        with contextlib.suppress(KilledError):
            await coordinator.close()
        shared.store._engine.dispose()
