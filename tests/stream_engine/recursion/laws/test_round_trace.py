"""What each round of a change derives and deletes is told, and agrees with what the change does."""

import random

import pytest

from stream_engine.operators.rows.operator import MAX_ROUNDS, RoundTrace
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.testing.circuit_runs import LocalRun
from stream_engine.testing.recursion_programs import cheapest_path, reachable
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Fixpoint
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row

CHAIN: list[Row] = [("a", "b", 1), ("b", "c", 1), ("c", "d", 1)]


def traced(node: Fixpoint, strategy: str, changes: list[tuple[Row, int]]) -> list[RoundTrace]:
    """Apply changes one by one; check each against its trace, and return the trace."""
    options = RecursionOptions(strategy=Strategy(strategy))
    operator = recursive_operator(node, site="A", sites=("A",), epoch=1, options=options)
    trace = operator.counters.trace
    for row, weight in changes:
        for port, _leaf in enumerate(operator.leaves):
            operator.apply(port, {row: weight})
        delta = operator.settle()
        come = sum(1 for weight in delta.values() if weight > 0)
        trace.end(come, len(delta) - come)
        if delta:
            told = sum(derived - deleted for derived, deleted in trace.last)
            assert told == sum(delta.values()), (strategy, trace.last, delta)
    return [trace]


@pytest.mark.parametrize("strategy", ["auto", "ranked", "dred", "recompute"])
@pytest.mark.parametrize("seed", range(4))
def test_rounds_add_up_to_the_change(strategy: str, seed: int) -> None:
    choice = random.Random(seed)
    links: list[Row] = [(a, b, 1) for a in "abcde" for b in "abcde" if a != b]
    live: set[Row] = set()
    changes: list[tuple[Row, int]] = []
    for _ in range(25):
        row = choice.choice(links)
        changes.append((row, -1 if row in live else 1))
        live ^= {row}
    traced(reachable(), strategy, changes)


@pytest.mark.parametrize(
    ("strategy", "rounds"),
    [("recompute", ((0, 3), (3, 0), (2, 0), (1, 0))), ("ranked", ((1, 0), (1, 0), (1, 0)))],
)
def test_a_link_at_the_end_of_a_chain(strategy: str, rounds: tuple[tuple[int, int], ...]) -> None:
    """Before c-d there are ab, bc, ac; after it cd, bd, ad too: one round each, from the end."""
    (trace,) = traced(reachable(), strategy, [(row, 1) for row in CHAIN])
    assert trace.last == rounds


def test_costs_are_told_level_by_level() -> None:
    (trace,) = traced(cheapest_path(), "ranked", [(row, 1) for row in CHAIN])
    assert trace.last == ((1, 0), (1, 0), (1, 0))
    assert (trace.derived, trace.deleted) == (6, 0)


def test_many_rounds_are_added_to_the_last() -> None:
    trace = RoundTrace()
    for _ in range(MAX_ROUNDS + 5):
        trace.note(1)
    trace.end(MAX_ROUNDS + 5, 0)
    assert len(trace.last) == MAX_ROUNDS
    assert trace.last[-1] == (6, 0)


def test_a_change_without_rounds_is_one() -> None:
    trace = RoundTrace()
    trace.end(3, 2)
    assert trace.last == ((0, 2), (3, 0))
    trace.end(0, 0)
    assert trace.last == ((0, 2), (3, 0))  # nothing happened since


def test_a_circuit_traces_its_recursions() -> None:
    run = LocalRun(reachable())
    run.step(1, [("link", SourceEvent(row, 1)) for row in CHAIN])
    (done,) = run.circuit.recursion_statistics()
    assert sum(derived for derived, _ in done.work.trace.last) == 6
