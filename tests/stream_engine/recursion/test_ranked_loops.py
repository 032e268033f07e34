"""Generated loops mean what the rules mean."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.recursion.options import RecursionOptions
from stream_engine.recursion.program import program_of
from stream_engine.recursion.ranked.derivations import nests_of
from stream_engine.recursion.ranked.engine import ranked_engine
from stream_engine.recursion.ranked.expression_source import ExpressionSource
from stream_engine.recursion.ranked.join_order import nest_from_head
from stream_engine.recursion.ranked.testing import odd_and_even
from stream_engine.recursion.recompute import RecomputeEngine
from stream_engine.recursion.rules import RECURSIVE
from stream_engine.recursion.testing import LINK, TEXT, project, reachable, region
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import Fixpoint, Join, JoinKind, Plan, RecursiveReference
from streamsql.algebra.scalar import compile_expression, compile_predicate
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import UnsupportedError

BOOLEAN, INTEGER, DOUBLE = DataType.BOOLEAN, DataType.INTEGER, DataType.DOUBLE
NUMBERS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, -(2**63), 2**62, 0.1, 0.2, 1e308, -1e308]),
)
ROWS = st.tuples(NUMBERS, NUMBERS, NUMBERS)


def numeric(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def call(names: list[str], least: int, most: int) -> st.SearchStrategy[Expression]:
        return st.builds(
            lambda name, arguments: Call(name, tuple(arguments), DOUBLE),
            st.sampled_from(names),
            st.lists(children, min_size=least, max_size=most),
        )

    return st.one_of(
        call(["+", "-", "*", "/"], 2, 2),
        call(["LEAST", "GREATEST", "COALESCE"], 2, 3),
        call(["ABS", "NEGATE"], 1, 1),
    )


LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.builds(lambda position: Column(position, "", DOUBLE), st.integers(0, 2)),
    st.builds(lambda value: Literal(value, DOUBLE), NUMBERS),
)
VALUES = st.recursive(LEAVES, numeric, max_leaves=6)
COMPARISONS = st.builds(
    lambda name, left, right: Call(name, (left, right), BOOLEAN),
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    VALUES,
    VALUES,
)


def connect(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda a, b: Call("AND", (a, b), BOOLEAN), inner, inner),
        st.builds(lambda a, b: Call("OR", (a, b), BOOLEAN), inner, inner),
        st.builds(lambda a: Call("NOT", (a,), BOOLEAN), inner),
        st.builds(lambda a: Call("IS NULL", (a,), BOOLEAN), inner),
    )


PREDICATES = st.recursive(COMPARISONS, connect, max_leaves=3)


def evaluated(source: ExpressionSource, text: str, row: Row) -> Any:
    return eval(text, {**source.names, "r": row})  # noqa: S307  (written here)


@given(expression=VALUES, row=ROWS)
def test_values_are_those_of_the_scalar_functions(expression: Expression, row: Row) -> None:
    source = ExpressionSource(lambda position: f"r[{position}]")
    value = evaluated(source, source.value(expression), row)
    expected = compile_expression(expression)(row)
    assert value == expected
    assert type(value) is type(expected)


@given(predicate=PREDICATES, row=ROWS)
def test_predicates_hold_only_where_they_are_true(predicate: Expression, row: Row) -> None:
    source = ExpressionSource(lambda position: f"r[{position}]")
    assert evaluated(source, source.predicate(predicate), row) is compile_predicate(predicate)(row)


def test_text_from_outside_never_gets_into_the_source() -> None:
    source = ExpressionSource(lambda position: f"r[{position}]")
    text = "'); raise SystemExit('"
    source_text = source.value(Literal(text, TEXT))
    assert text not in source_text
    assert evaluated(source, source_text, ()) == text


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
