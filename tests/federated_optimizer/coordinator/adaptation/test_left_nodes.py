"""A run is looked at for all who rest on it when somebody has left it, and not before."""

from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation.left_nodes import MOST_TOGETHER, LeftNodes
from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns
from federated_optimizer.coordinator.queries.runs.read_parts import MOST_READERS
from streamsql.wire.fragments import Feed

PAUSE = 1_000


class Network:
    """Node q1, and runs that read it.

    Args:
        text: Of the node: it was a query's; or empty.
    """

    def __init__(self, text: str, readers: int) -> None:
        self.fed, self.changes = FedRuns(), 0
        self.text = text
        for number in range(readers):
            self.reads(f"q{number + 2}", "q1")

    def reads(self, run: str, *feeders: str) -> None:
        """Let a run read others."""
        self.changes += 1
        self.fed.put(run, [Feed("f1", feeder, 1, "f0") for feeder in feeders])

    def due(self, left: LeftNodes, now: int) -> set[str]:
        """Return the runs of which all who rest on them are looked at."""
        left.see(now)
        found = left.due({}, now)
        assert found is None, "no run is known"
        return {run for run, due in left._due.items() if due <= now}

    def queries(self) -> Any:
        node = SimpleNamespace(run="q1", text=self.text)
        return SimpleNamespace(nodes=SimpleNamespace(all=lambda: [node]), runs=self)

    # What is asked of runs.

    def tried(self) -> list[Any]:
        return []

    def names(self) -> set[str]:
        return {f"q{number}" for number in range(1, 200)}

    def resting_on(self, run: str) -> set[str]:
        return self.fed.resting_on(run)

    def seen(self, run: str) -> list[Any]:
        return [] if run == "q1" else [SimpleNamespace(id=run, bundle=None)]


class AnyQuery:
    """Stands for all queries: each is there."""

    def __init__(self, network: Network) -> None:
        self.nodes, self.runs = network.queries().nodes, network

    def __contains__(self, query: str) -> bool:
        return True


def made(text: str, readers: int) -> tuple[Network, LeftNodes]:
    network = Network(text, readers)
    left = LeftNodes(AnyQuery(network), PAUSE)  # type: ignore[arg-type]
    left.see(0)
    return network, left


def test_a_node_that_its_query_has_left_is_looked_at_after_a_pause() -> None:
    network, left = made("SELECT 1", 2)
    assert network.due(left, PAUSE - 1) == set()
    assert network.due(left, PAUSE) == {"q1"}


def test_a_node_that_was_made_as_one_is_looked_at_when_a_reader_has_left() -> None:
    network, left = made("", 3)
    assert network.due(left, 10 * PAUSE) == set()
    network.reads("q9", "q1")
    assert network.due(left, 20 * PAUSE) == set(), "who comes is no reason"
    network.reads("q9")
    assert network.due(left, 30 * PAUSE) == set()
    assert network.due(left, 31 * PAUSE) == {"q1"}


def test_many_readers_are_not_named_and_are_a_reason_when_few_are_left() -> None:
    network, left = made("", MOST_READERS + 1)
    network.reads("q2")
    assert network.due(left, 0) == set()
    assert network.due(left, PAUSE) == set(), "of so many one may need it"


@pytest.mark.parametrize(("readers", "is_due"), [(1, False), (2, True), (MOST_TOGETHER, True)])
def test_only_several_leave_together(readers: int, is_due: bool) -> None:
    network, left = made("SELECT 1", readers)
    assert bool(network.due(left, PAUSE)) == is_due
    network, left = made("SELECT 1", MOST_TOGETHER + 1)
    assert network.due(left, PAUSE) == set()


def test_a_move_that_may_come_to_nothing_is_tried_again_ever_later() -> None:
    network, left = made("SELECT 1", 2)
    assert network.due(left, PAUSE) == {"q1"}
    left.decided("q1", PAUSE, moves=True)
    assert network.due(left, 2 * PAUSE) == set()
    assert network.due(left, 3 * PAUSE) == {"q1"}
    left.decided("q1", 3 * PAUSE, moves=True)
    assert network.due(left, 6 * PAUSE) == set()
    assert network.due(left, 7 * PAUSE) == {"q1"}
    left.decided("q1", 7 * PAUSE, moves=False)
    assert network.due(left, 1_000 * PAUSE) == set()
