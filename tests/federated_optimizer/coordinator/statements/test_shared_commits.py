"""Writes that wait together are one commit, whoever is gone meanwhile and whichever fails."""

import asyncio
import threading
from typing import Any, cast

import pytest

from federated_optimizer.coordinator.statements.shared_commits import SharedCommits
from federated_optimizer.coordinator.store.pending_writes import PendingWrite
from streamsql.errors import DeploymentError


class SlowStore:
    """Commits what waits when it is told to, as the catalog does in a thread."""

    def __init__(self) -> None:
        self.waiting: list[PendingWrite] = []
        self.commits: list[int] = []
        self.may_go_on = threading.Semaphore(0)
        self.fails: Exception | None = None

    def write(self) -> PendingWrite:
        pending = PendingWrite(lambda _connection: None)
        self.waiting.append(pending)
        return pending

    def ensure(self, pending: PendingWrite) -> None:
        if not pending.is_done:
            taken, self.waiting = self.waiting, []
            self.may_go_on.acquire()
            if self.fails is not None:
                raise self.fails
            self.commits.append(len(taken))
            for each in taken:
                each.is_done = True
        pending.check()


async def turns() -> None:
    """Let all that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_all_that_wait_share_the_next_commit() -> None:
    async def scenario() -> None:
        store = SlowStore()
        commits = SharedCommits(cast("Any", store))
        first = asyncio.create_task(commits.ensure(store.write()))
        await turns()
        others = [asyncio.create_task(commits.ensure(store.write())) for _ in range(3)]
        await turns()
        others[0].cancel()
        await turns()
        store.may_go_on.release()
        await first
        store.may_go_on.release()
        await asyncio.gather(*others[1:])
        assert store.commits == [1, 3]

    asyncio.run(scenario())


def test_whoever_is_gone_ends_no_commit() -> None:
    async def scenario() -> None:
        store = SlowStore()
        commits = SharedCommits(cast("Any", store))
        write = store.write()
        gone = asyncio.create_task(commits.ensure(write))
        await turns()
        gone.cancel()
        other = asyncio.create_task(commits.ensure(write))
        await turns()
        store.may_go_on.release()
        await other
        assert store.commits == [1]

    asyncio.run(scenario())


def test_each_hears_of_its_own_failure() -> None:
    async def scenario() -> None:
        store = SlowStore()
        commits = SharedCommits(cast("Any", store))
        refused, fine = store.write(), store.write()
        refused.error = DeploymentError("it cannot be written")
        store.may_go_on.release()
        found = await asyncio.gather(
            commits.ensure(fine), commits.ensure(refused), return_exceptions=True
        )
        assert list(found) == [None, refused.error]

    asyncio.run(scenario())


def test_a_defect_is_not_waited_for_again() -> None:
    async def scenario() -> None:
        store = SlowStore()
        store.fails = ValueError("a defect")
        commits = SharedCommits(cast("Any", store))
        store.may_go_on.release()
        with pytest.raises(ValueError, match="a defect"):
            await commits.ensure(store.write())

    asyncio.run(scenario())
