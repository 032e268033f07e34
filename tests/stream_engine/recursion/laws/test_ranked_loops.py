"""Generated loops mean what the rules mean."""

import itertools

import pytest

from stream_engine.recursion.baselines.recompute import RecomputeEngine
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.program import program_of
from stream_engine.recursion.program.rules import RECURSIVE
from stream_engine.recursion.ranked.best_engine import ranked_engine
from stream_engine.recursion.ranked.join_order import nest_from_head
from stream_engine.recursion.ranked.ranked_derivations import nests_of
from stream_engine.testing.ranked_checks import odd_and_even
from stream_engine.testing.recursion_programs import LINK, TEXT, project, reachable, region
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Fixpoint, Join, JoinKind, Plan, RecursiveReference
from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.errors import UnsupportedError


def test_a_row_is_looked_up_whole_when_all_its_columns_are_fixed() -> None:
    """From reachable(x, z): links by x, then reachable(y, z)."""
    program = program_of(reachable())
    (step,) = (rule for rule in program.rules if rule.is_step)
    nest = nest_from_head(step, (0, 1))
    assert [loop.relation for loop in nest.loops] == [0, RECURSIVE]
    assert [tuple(key.column for key in loop.keys) for loop in nest.loops] == [(0,), (0, 1)]
    assert nest.unchecked == ()


def test_a_theta_join_starts_where_columns_are_fixed() -> None:
    program = program_of(region(1.5))
    (step,) = (rule for rule in program.rules if rule.is_step)
    nest = nest_from_head(step, (0, 1))
    assert nest.loops[0].relation != RECURSIVE
    assert all(loop.keys for loop in nest.loops)


def test_a_constant_in_the_text_is_part_of_the_key() -> None:
    nests = nests_of(program_of(odd_and_even()))
    assert nests.indexes(None)[RECURSIVE] == [(0, 1)]


def long_step(links: int) -> Fixpoint:
    """Return pairs of connected nodes whose step walks several links at once."""
    schema = Schema.of(("src", TEXT), ("dst", TEXT))
    plan: Plan = RecursiveReference("far", schema)
    for _ in range(links):
        plan = Join(LINK, plan, JoinKind.INNER, ((1, 0),))
    step = project(plan, src=Column(0, "src", TEXT), dst=Column(3 * links + 1, "dst", TEXT))
    base = project(LINK, src=Column(0, "src", TEXT), dst=Column(1, "dst", TEXT))
    return Fixpoint("far", schema, (base,), (step,))


def test_more_loops_than_python_nests() -> None:
    node = long_step(14)
    program, options = program_of(node), RecursionOptions(elastic=1.0)
    engine, oracle = ranked_engine(program, options), RecomputeEngine(program, options)
    ring: list[Row] = [(f"n{number}", f"n{(number + 1) % 5}") for number in range(5)]
    changes: list[tuple[list[Row], list[Row]]] = [
        (ring, []),
        ([("n0", "n3")], []),
        ([], ring[1:3]),
        (ring[1:2], ring[:1]),
    ]
    for entered, left in changes:
        delta = engine.change([entered], [left])
        assert delta == oracle.change([entered], [left])
    assert set(engine.rows()) == set(oracle.rows())


def test_too_many_joins_are_refused_with_a_way_out() -> None:
    with pytest.raises(UnsupportedError, match="joins 18 relations") as caught:
        ranked_engine(program_of(long_step(17)), RecursionOptions())
    assert caught.value.hint is not None
    assert "absorption" in caught.value.hint


def test_null_never_joins() -> None:
    engine = ranked_engine(program_of(reachable()), RecursionOptions())
    rows: list[Row] = [("a", None), (None, "b"), ("b", "c")]
    for count in range(1, 4):
        for entered in itertools.combinations(rows, count):
            assert set(engine.change([list(entered)], [[]])) == (
                {*entered, (None, "c")} if {rows[1], rows[2]} <= {*entered} else {*entered}
            )
            engine.change([[]], [list(entered)])
            assert engine.size() == 0
