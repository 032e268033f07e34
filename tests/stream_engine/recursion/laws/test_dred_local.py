"""Delete and rederive at one place equals evaluation from scratch after every change."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.recursion.absorption.replicated import ReplicatedFixpoint
from stream_engine.recursion.baselines.dred.dred_engine import DredEngine
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.program import program_of
from stream_engine.testing.recursion_programs import cheapest_path, reachable
from stream_engine.testing.recursion_schedules import (
    EXAMPLES,
    BaseRow,
    database,
)
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.types import Row
from streamsql.errors import RecursionLimitError
from streamsql.reference import evaluate

THIRD = settings(max_examples=max(settings().max_examples // 3, 1))
LINK = ("a", "b")


def engine(node: Fixpoint, options: RecursionOptions | None = None) -> DredEngine:
    return DredEngine(program_of(node), options or RecursionOptions())


@pytest.mark.parametrize(("node", "pool"), EXAMPLES, ids=lambda value: getattr(value, "name", ""))
@THIRD
@given(data=st.data())
def test_any_changes(node: Fixpoint, pool: Sequence[BaseRow], data: st.DataObject) -> None:
    operator = ReplicatedFixpoint(
        program_of(node),
        DredEngine,
        site="one",
        sites=("one",),
        epoch=1,
        options=RecursionOptions(strategy=Strategy.DRED),
    )
    live: dict[str, set[Row]] = {name: set() for name, _ in pool}
    total: Delta = {}
    batches = data.draw(st.lists(st.lists(st.sampled_from(pool), max_size=5), max_size=10))
    for batch in batches:
        before = database(live)
        for name, row in batch:
            live[name] ^= {row}
        after = database(live)
        for port, leaf in enumerate(operator.leaves):
            operator.apply(port, difference(evaluate(leaf, after, 0), evaluate(leaf, before, 0)))
        accumulate(total, operator.settle())
        assert total == evaluate(node, after, 0)
        assert set(operator.state_rows()) == set(total)


def test_everything_is_over_deleted_and_derived_again() -> None:
    """The worked example: a deletion that takes no row away touches all nine."""
    dred = engine(reachable())
    links: list[Row] = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "B")]
    assert len(dred.change([links], [[]])) == 9
    assert dred.change([[]], [[("C", "B")]]) == {}
    assert (dred.work.over_deleted, dred.work.rederived, dred.work.waves) == (9, 9, 1)


def test_surpassed_rows_come_back_when_the_best_goes() -> None:
    dred = engine(cheapest_path())
    dred.change([[("a", "b", 1), ("a", "b", 3), ("b", "c", 1)]], [[]])
    assert set(dred.rows()) == {("a", "b", 1), ("b", "c", 1), ("a", "c", 2)}
    assert dred.change([[]], [[("a", "b", 1)]]) == {
        ("a", "b", 1): -1,
        ("a", "c", 2): -1,
        ("a", "b", 3): 1,
        ("a", "c", 4): 1,
    }


def test_rows_without_a_value_are_never_best() -> None:
    dred = engine(cheapest_path())
    assert dred.change([[("a", "b", None)]], [[]]) == {}
    assert dred.change([[]], [[("a", "b", None)]]) == {}
    assert dred.size() == 0


def test_bounds() -> None:
    ring: list[Row] = [(a, b) for a, b in zip("abcde", "bcdea", strict=True)]
    with pytest.raises(RecursionLimitError, match="more than 24 rows"):
        engine(reachable(limit=24)).change([ring], [[]])
    assert engine(reachable(limit=25)).change([ring], [[]])
    with pytest.raises(RecursionLimitError, match="10 derivations"):
        engine(reachable(), RecursionOptions(max_derivations=10)).change([ring], [[]])
    with pytest.raises(RecursionLimitError, match="negative"):
        engine(cheapest_path()).change([[("a", "b", 1), ("b", "a", -2)]], [[]])


def test_clearing() -> None:
    dred = engine(reachable())
    dred.change([[LINK]], [[]])
    dred.clear()
    assert (list(dred.rows()), dred.size()) == ([], 0)
    assert dred.change([[LINK]], [[]]) == {LINK: 1}
