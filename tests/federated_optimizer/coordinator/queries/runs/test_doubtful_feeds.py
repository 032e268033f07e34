"""Only runs that share something with what has changed are looked at, and none is missed."""

import random

from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from streamsql.wire.messages import QueryProblem
from tests.federated_optimizer.coordinator.laws.test_feeds_of_results import (
    World,
    owner,
    reader,
    second,
)

PROBLEM = QueryProblem("step_budget", "", "", 1, "base")


def fed_otherwise(runs: SharedRuns) -> set[str]:
    return {run for run in runs.all() if runs.fed_otherwise(run)}


def change(world: World, rng: random.Random, number: int) -> None:
    """Start, end, replan, break or mend a run."""
    runs = world.runs
    there = [query for query in world.queries.values() if query in runs.everyone()]
    kind = rng.choice(("start", "start", "end", "replan", "break", "mend")) if there else "start"
    if kind == "start":
        make = rng.choice((owner, reader, second, lambda run: reader(run, "shut")))
        world.start(make(f"q{number}"))
        return
    query = rng.choice(there)
    if kind == "end":
        runs.leave(query)
    elif kind == "replan":
        runs.leave(query)
        query.bundle = owner(query.run, version=query.bundle.version + 1)
        runs.enter(query)
    elif kind == "break":
        query.problems["base"] = PROBLEM
        runs.note(query.run)
    else:
        query.problems.clear()
        runs.note(query.run)


def test_no_run_that_is_fed_otherwise_is_missed() -> None:
    found = 0
    for seed in range(60):
        rng, world, doubtful = random.Random(seed), World(), set[str]()
        for number in range(1, 30):
            change(world, rng, number)
            doubtful |= set(world.runs.doubtful.take())
            wrong = fed_otherwise(world.runs)
            assert wrong <= doubtful, (seed, number)
            found += len(wrong)
            doubtful = wrong
            if rng.random() < 0.3:
                world.fed()
    assert found > 500, "some runs are to be fed otherwise"


def test_runs_that_share_nothing_with_a_changed_one_are_not_looked_at() -> None:
    world = World()
    world.start(owner("q1"))
    for number in range(2, 300):
        world.start(reader(f"q{number}", f"status {number}"))
    world.runs.doubtful.take()
    world.start(reader("q300", "another"))
    assert world.runs.doubtful.take() == ("q300",)
    world.runs.leave(world.queries["q7"])
    assert set(world.runs.doubtful.take()) == {"q7"}
    world.queries["q1"].problems["base"] = PROBLEM
    world.runs.note("q1")
    assert len(world.runs.doubtful.take()) == 299, "it and its readers, of which one has ended"


def test_an_equal_query_leaves_no_doubt() -> None:
    world = World()
    first = world.start(owner("q1"))
    world.start(reader("q2"))
    world.runs.doubtful.take()
    world.runs.enter(first)
    assert world.runs.doubtful.take() == ()
