"""An update of a run, its upkeep and what pages ask take as many lines with many readers as few.

Lines are counted as Python runs them: a loop over the readers counts whatever it is called.
"""

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import federated_optimizer
from federated_optimizer.coordinator.contract.coordinator_model import Origin, Wanted
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.system.message_receiver import Receiver

ROOMS = "SELECT rid, status FROM RoomSensor"
FEW, MANY = 30, 150  # some answers name the first twenty
SLACK = 40
"""Lines that a step may take more: what is looked at by its age differs from time to time."""
ANN = Principal("ann", Role.OPERATOR)
OURS = str(Path(federated_optimizer.__file__).parent)


class Lines:
    """Counts the lines that the federation's own modules run, in one synchronous step at a time."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self._count = 0

    def of(self, name: str, step: Callable[[], Any]) -> Any:
        """Run a step; remember the most lines that one of its name has taken."""
        before, self._count = sys.gettrace(), 0
        sys.settrace(self._called)
        try:
            return step()
        finally:
            sys.settrace(before)
            self.most[name] = max(self.most.get(name, 0), self._count)

    def of_chore(self, name: str, chore: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Run a chore that waits for nothing but its turn."""

        def whole() -> None:
            running = chore()
            try:
                while running.send(None) is None:
                    pass
            except StopIteration:
                return
            running.close()
            raise AssertionError(f"{name} waits for something")

        self.of(name, whole)

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(OURS) else None

    def _line(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        self._count += event == "line"
        return self._line


async def steps(harness: Any, federation: Any, readers: int, monkeypatch: Any) -> dict[str, int]:
    """Return the lines of each step with so many readers of one run."""
    coordinator = await federation.standard(gateways=1)
    coordinator.follow_accounts({}.get)
    queries = [await harness.start_query(coordinator, ROOMS) for _ in range(readers)]
    await harness.until(lambda: all(coordinator.query(q).settled for q in queries), "settled")
    replanning, statuses = coordinator._replanning, coordinator._queries.statuses
    await harness.until(lambda: replanning.due is None, "planned again after the start")
    await harness.until(lambda: not list(statuses.restless()), "at rest")
    await coordinator._statements.queries.keep()
    coordinator._grants.check_running()
    await coordinator._upkeep.look()
    lines = Lines()
    dispatch = Receiver._dispatch

    def counted(receiver: Receiver, message: Any) -> None:
        kind = "/".join(message.topic.split("/")[-2:])
        lines.of(f"message {kind}", lambda: dispatch(receiver, message))

    monkeypatch.setattr(Receiver, "_dispatch", counted)
    reader = coordinator.on_behalf(ANN)
    newest = Wanted(most=3)
    reader.network()  # takes up that they have begun
    for number in range(5):
        federation.sites["gw-1"].put("roomsensor", (f"r{number}", "open"))
        await harness.until(
            lambda number=number: len(coordinator.relation(queries[-1])) == number + 1, "shown"
        )
        await harness.until(lambda: not list(statuses.restless()), "at rest again")
        lines.of_chore("upkeep", coordinator._upkeep.look)
        lines.of_chore("tables", coordinator._show_tables)
        lines.of_chore("keep", coordinator._statements.queries.keep)
        lines.of("rights", coordinator._grants.check_running)
        lines.of("query", lambda: reader.query(queries[0]))
        lines.of("newest", lambda: reader.queries(Origin.USER, newest))
        lines.of("displayed", lambda: reader.queries(wanted=Wanted(displayed=True)))
        lines.of("network", reader.network)
        lines.of("definitions", reader.definitions)
        lines.of("alarms", reader.alarms)
        lines.of("changes", reader.query_changes)
    monkeypatch.setattr(Receiver, "_dispatch", dispatch)
    return lines.most


def test_a_step_takes_as_many_lines_with_many_readers_as_with_few(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[dict[str, int]] = []
    for readers in (FEW, MANY):

        async def scenario(federation: Any, readers: int = readers) -> None:
            found.append(await steps(harness, federation, readers, monkeypatch))

        harness.folder = harness.folder / str(readers)
        harness.folder.mkdir()
        harness.run(scenario)
    few, many = found
    assert any(name.startswith("message out") for name in few), few
    assert all(count > 0 for count in few.values()), few
    grown = {n: (few.get(n), count) for n, count in many.items() if count > few.get(n, 0) + SLACK}
    assert not grown


def test_a_loop_over_readers_is_counted() -> None:
    lines = Lines()
    readers = {n: n for n in range(MANY)}
    source = (
        "def total(readers):\n    found = 0\n    for n in readers.values():\n        found += n\n"
    )
    made: dict[str, Any] = {}
    exec(compile(source, f"{OURS}/made_up.py", "exec"), made)  # noqa: S102 - a constant of ours
    lines.of("loop", lambda: made["total"](readers))
    assert lines.most["loop"] > MANY > SLACK
