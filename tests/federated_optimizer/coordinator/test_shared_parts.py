"""Shared parts: opened on one catalog, disconnected, with a newer epoch at every opening."""

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator import shared_parts
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.shared_parts import SharedParts, open_shared_parts
from host.mqtt import Will
from host.mqtt.in_memory import InMemoryBroker
from streamsql.errors import DeploymentError
from streamsql.wire.topics import Topics


def opened(database: Path) -> tuple[SharedParts, Will, InMemoryBroker]:
    broker, wills = InMemoryBroker(), list[Will]()

    def client(will: Will) -> Any:
        wills.append(will)
        return broker.client("coordinator", will=will)

    settings = CoordinatorSettings(site="hall", database=f"sqlite:///{database}")
    shared, _ = asyncio.run(open_shared_parts(settings, client, lambda: 7, OnTheLoop()))
    return shared, wills[0], broker


def test_every_opening_of_a_catalog_has_a_newer_epoch(tmp_path: Path) -> None:
    first, _, broker = opened(tmp_path / "catalog.db")
    second, will, _ = opened(tmp_path / "catalog.db")
    assert second.presence.epoch > first.presence.epoch
    assert will.topic == Topics("hall").host_state("coordinator")
    assert not broker.retained  # nothing is said before the client connects


def test_a_catalog_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("these are notes, not a database " * 40)
    with pytest.raises(DeploymentError):
        opened(tmp_path / "catalog.db")


def test_who_was_taken_over_while_it_waited_for_its_turn_changes_nothing(tmp_path: Path) -> None:
    shared, _, _ = opened(tmp_path / "catalog.db")
    done: list[str] = []

    async def change(name: str) -> None:
        async with shared.changing():
            done.append(name)
            await asyncio.sleep(0)
            shared.presence.taken_over = True

    async def scenario() -> tuple[BaseException | None, BaseException | None]:
        return await asyncio.gather(change("first"), change("second"), return_exceptions=True)

    first, second = asyncio.run(scenario())
    assert first is None
    assert isinstance(second, DeploymentError)
    assert done == ["first"]


UNCHECKED = {
    "statements/query_statements.py": 1,  # stops here what could not be stored
    "statement_turns.py": 2,  # `_in_turn` checks it
}
"""Files that take the lock without asking whether we are in charge, and how often."""


def test_whoever_takes_the_lock_is_in_charge() -> None:
    package = Path(shared_parts.__file__).parent
    found = {
        str(path.relative_to(package)): count
        for path in package.rglob("*.py")
        if path.name != "shared_parts.py"
        if (count := sum(1 for _ in locks_taken(ast.parse(path.read_text()))))
    }
    assert found == UNCHECKED


def locks_taken(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        for item in node.items if isinstance(node, ast.AsyncWith) else ():
            if ast.unparse(item.context_expr).endswith("shared.lock"):
                yield item.context_expr
