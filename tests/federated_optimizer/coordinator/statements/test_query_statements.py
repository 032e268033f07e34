"""A query is stored before anybody is told of it, and stopped if it cannot be."""

import asyncio
import threading
from typing import Any

import pytest

from streamsql.errors import DeploymentError

ROOMS = "SELECT rid, status FROM RoomSensor"


def test_statements_that_come_together_are_one_commit(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        store = coordinator._shared.store
        held, goes_on = threading.Event(), threading.Event()
        ensure = store.ensure

        def slowly(pending: Any) -> None:
            held.set()
            goes_on.wait(30)
            ensure(pending)

        store.ensure = slowly
        started = [asyncio.create_task(coordinator.execute(ROOMS)) for _ in range(3)]
        await harness.until(lambda: len(coordinator.queries()) == 3, "all run")
        assert not any(task.done() for task in started), "nobody is told before the commit"
        assert store.queries() == ()
        assert len(store.pending._waiting) == 3
        store.put_alarm_rows({})  # whoever commits next commits them
        assert len(store.queries()) == 3
        goes_on.set()
        await asyncio.gather(*started)

    harness.run(scenario)


@pytest.mark.parametrize("others", [0, 1])
def test_a_query_that_cannot_be_stored_is_stopped(others: int, harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        for _ in range(others):
            await harness.start_query(coordinator, ROOMS)
        store, engine = coordinator._shared.store, coordinator._shared.store._engine

        class Broken:
            def begin(self) -> Any:
                raise OSError("no space left")

        store._engine = Broken()
        with pytest.raises(DeploymentError, match="no space left"):
            await coordinator.execute(ROOMS)
        store._engine = engine
        assert len(coordinator.queries()) == others
        assert len(store.queries()) == others
        await harness.until(
            lambda: len(federation.sites["base"].engine.queries) == others, "sites know"
        )
        await harness.start_query(coordinator, ROOMS)

    harness.run(scenario)
