"""Choices wait for moves that take from them what they read, or come to what they end."""

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation.contested_parts import is_contested, parts_under
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns
from streamsql.algebra.operators import RemoteSource
from streamsql.data.schema import Schema
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

EMPTY = Schema(())
LEAF, RESULT = "f1", "f0"
NODE, LOWER = ("q1", RESULT), ("q0", RESULT)


def bundle(run: str, *reads: tuple[str, str]) -> FragmentBundle:
    """Return a run with a leaf of its own, which reads parts of others."""
    feeds = tuple(Feed(f"x{at}", name, 1, part) for at, (name, part) in enumerate(reads))
    fragments = (
        Fragment(RESULT, Engine.BASE, RemoteSource(LEAF, EMPTY), ("base",)),
        Fragment(LEAF, Engine.GATEWAY, RemoteSource("", EMPTY), ("gw",), RESULT, ("base",)),
    )
    return FragmentBundle(run, 1, fragments, EMPTY, "", feeds=feeds)


class Runs:
    """Runs with what reads them."""

    def __init__(self) -> None:
        self.fed = FedRuns()
        self._leaders: dict[str, Any] = {}

    def put(
        self, run: str, *reads: tuple[str, str], origin: Origin = Origin.USER
    ) -> FragmentBundle:
        made = bundle(run, *reads)
        self._leaders[run] = SimpleNamespace(bundle=made, origin=origin, run=run)
        self.fed.put(run, made.feeds)
        return made

    def leader(self, run: str) -> Any:
        return self._leaders.get(run)

    def live(self, run: str) -> Any:
        return (self._leaders[run],) if run in self._leaders else ()


def move(former: FragmentBundle, new: FragmentBundle) -> Any:
    trial = SimpleNamespace(bundle=new, run=new.query)
    return SimpleNamespace(left=former, run=former.query, trial=trial)


def contested(
    runs: Runs,
    before: FragmentBundle,
    after: FragmentBundle,
    other: Any,
    known: Collection[int] = (),
) -> bool:
    said: Any = runs
    return is_contested(said, before, after, {7: other}, known)


@pytest.fixture
def runs() -> Runs:
    found = Runs()
    found.put("q0", origin=Origin.NODE)
    found.put("q1", LOWER, origin=Origin.NODE)
    return found


def test_parts_are_those_below_results_too(runs: Runs) -> None:
    said: Any = runs
    assert parts_under(said, bundle("q9", NODE)) == {NODE, LOWER}
    assert parts_under(said, bundle("q9", ("q1", LEAF))) == {("q1", LEAF)}


def test_a_choice_waits_for_who_leaves_what_it_is_about_to_read_alone(runs: Runs) -> None:
    mine, other = runs.put("q2"), runs.put("q3", NODE)
    moving = move(other, runs.put("q4"))
    for known in ((), (7,)):
        assert contested(runs, mine, bundle("q5", NODE), moving, known)
        assert contested(runs, mine, bundle("q5", LOWER), moving, known), "it ends with the node"
        assert not contested(runs, mine, bundle("q5"), moving, known)
    runs.put("q6", NODE)
    assert not contested(runs, mine, bundle("q5", NODE), moving), "another query keeps it"
    assert not contested(runs, mine, bundle("q5", LOWER), moving)


def test_a_choice_waits_for_who_comes_to_what_it_ends(runs: Runs) -> None:
    mine, other = runs.put("q2", NODE), runs.put("q3")
    moving = move(other, runs.put("q4", NODE))
    assert contested(runs, mine, bundle("q5"), moving)
    assert not contested(runs, mine, bundle("q5"), moving, known=(7,)), "it was reckoned with"
    assert not contested(runs, mine, bundle("q5", NODE), moving)
    runs.put("q6", NODE)
    assert not contested(runs, mine, bundle("q5"), moving), "it does not end"


def test_a_choice_waits_for_who_comes_to_what_its_own_run_receives(runs: Runs) -> None:
    mine, other = runs.put("q2"), runs.put("q3")
    moving = move(other, runs.put("q4", ("q2", LEAF)))
    assert contested(runs, mine, bundle("q5"), moving)
    assert not contested(runs, mine, bundle("q5", ("q2", LEAF)), moving)


def test_a_choice_waits_for_who_leaves_the_run_that_it_reads(runs: Runs) -> None:
    mine, other = runs.put("q2"), runs.put("q3")
    moving = move(other, runs.put("q4"))
    assert contested(runs, mine, bundle("q5", ("q3", LEAF)), moving)
    runs.put("q6", ("q3", LEAF))
    assert not contested(runs, mine, bundle("q5", ("q3", LEAF)), moving)


def test_a_choice_waits_for_who_leaves_it_alone_with_what_it_goes_on_to_read(runs: Runs) -> None:
    mine, other = runs.put("q2", NODE), runs.put("q3", NODE)
    assert contested(runs, mine, bundle("q5", NODE, ("q9", LEAF)), move(other, runs.put("q4")))
    stays = move(other, runs.put("q4", NODE))
    assert not contested(runs, mine, bundle("q5", NODE, ("q9", LEAF)), stays)


def test_a_choice_waits_for_no_move_that_reads_something_else(runs: Runs) -> None:
    mine, other = runs.put("q2"), runs.put("q3", ("q8", LEAF))
    moving = move(other, runs.put("q4"))
    assert not contested(runs, mine, bundle("q5", NODE), moving), "it is alone with it anyhow"
    assert not contested(runs, runs.put("q2", NODE), bundle("q5"), moving)


def test_two_that_come_to_one_node_wait_for_nobody(runs: Runs) -> None:
    mine, other = runs.put("q2"), runs.put("q3")
    moving = move(other, runs.put("q4", NODE))
    assert not contested(runs, mine, bundle("q5", NODE), moving)
