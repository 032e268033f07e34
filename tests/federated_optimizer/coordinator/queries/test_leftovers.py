"""Old fragments are looked for after every connect, also one that comes during a look."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.queries import leftovers
from federated_optimizer.coordinator.queries.leftovers import Leftovers
from streamsql.wire.topics import Topics


class Client:
    """Notes subscriptions."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def subscribe(self, *topics: str) -> None:
        assert topics == (Topics("demo").fragment(), Topics("demo").source())
        self.calls.append("subscribe")

    async def unsubscribe(self, *_topics: str) -> None:
        self.calls.append("unsubscribe")


def test_a_connect_during_a_look_has_it_begin_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "SWEEP_SECONDS", 0.05)
    unused: Any = None

    async def run() -> None:
        client: Any = Client()
        core: Any = SimpleNamespace(client=client, topics=Topics("demo"))
        found = Leftovers(core, unused)
        first = asyncio.create_task(found.sweep())
        await asyncio.sleep(0)
        assert client.calls == ["subscribe"]
        await found.sweep()
        await first
        assert client.calls == ["subscribe", "unsubscribe"] * 2
        await found.sweep()
        assert client.calls == ["subscribe", "unsubscribe"] * 3

    asyncio.run(run())
