"""Trees of inner joins run as one operator: the same answers, nothing kept in between."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.compiler import compile_plan
from stream_engine.circuit.join_nodes import multiway, shared_plans
from stream_engine.operators.joins.multi_join import MOST_INPUTS
from stream_engine.testing.circuit_runs import alone, evaluated_over
from stream_engine.testing.histories import delta_sequences
from stream_engine.testing.plans import predicates
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    RemoteSource,
    UnionAll,
)
from streamsql.data.delta import Delta, accumulate
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

COLUMNS = Schema.of(("a", DataType.INTEGER), ("b", DataType.INTEGER), ("t", DataType.TEXT))
NAMES = ("r0", "r1", "r2", "r3")
SOURCES = [RemoteSource(name, COLUMNS) for name in NAMES]


def inner(left: Plan, right: Plan, *keys: tuple[int, int]) -> Join:
    return Join(left, right, JoinKind.INNER, keys)


def columns(plan: Plan, *positions: int) -> Project:
    fields = [plan.schema.fields[p] for p in positions]
    parts = tuple(Column(p, f.name, f.dtype) for p, f in zip(positions, fields, strict=True))
    return Project(plan, parts, tuple(f"c{n}" for n in range(len(positions))))


CHAIN = inner(inner(SOURCES[0], SOURCES[1], (1, 0)), SOURCES[2], (4, 0))


@st.composite
def trees(draw: st.DrawFn) -> Plan:
    """Return a tree of joins over three or four inputs, some of them the same."""
    plans: list[Plan] = [draw(st.sampled_from(SOURCES)) for _ in range(draw(st.integers(3, 4)))]
    while len(plans) > 1:
        left = plans.pop(draw(st.integers(0, len(plans) - 1)))
        right = plans.pop(draw(st.integers(0, len(plans) - 1)))
        pairs = [
            (i, j)
            for i, a in enumerate(left.schema.dtypes)
            for j, b in enumerate(right.schema.dtypes)
            if a == b
        ]
        smallest = draw(st.sampled_from((1, 1, 1, 0)))
        keys = draw(st.lists(st.sampled_from(pairs), min_size=smallest, max_size=2, unique=True))
        residual = draw(st.none() | st.none() | predicates(left.schema + right.schema))
        kind = draw(st.sampled_from((JoinKind.INNER,) * 7 + (JoinKind.LEFT,)))
        joined: Plan = Join(left, right, kind, tuple(keys), residual)
        match draw(st.integers(0, 5)):
            case 0:
                joined = Filter(joined, draw(predicates(joined.schema)))
            case 1:
                width = len(joined.schema)
                some = st.lists(st.integers(0, width - 1), min_size=1, max_size=width)
                texts = [p for p, f in enumerate(joined.schema.fields) if f.dtype == DataType.TEXT]
                joined = columns(joined, *draw(some), 0, texts[0])
            case _:
                pass
        plans.append(joined)
    return plans[0]


SEQUENCES = st.tuples(*(delta_sequences(COLUMNS, max_steps=4) for _ in NAMES))


@given(trees(), SEQUENCES)
def test_one_operator_gives_what_a_tree_and_the_reference_give(
    plan: Plan, sequences: tuple[list[Delta], ...]
) -> None:
    once, tree = compile_plan(plan, alone), compile_plan(plan, alone, multiway_joins=False)
    inputs: dict[str, Delta] = {name: {} for name in NAMES}
    outputs: list[Delta] = [{}, {}]
    for changes in itertools.zip_longest(*sequences, fillvalue={}):
        remotes = dict(zip(NAMES, changes, strict=True))
        for name, change in remotes.items():
            accumulate(inputs[name], change)
        expected = evaluated_over(plan, inputs)
        for circuit, output in zip((once, tree), outputs, strict=True):
            change = circuit.step({}, remotes, 0)
            assert 0 not in change.values()
            accumulate(output, change)
            assert output == expected
    back = {name: {row: -w for row, w in relation.items()} for name, relation in inputs.items()}
    accumulate(outputs[0], once.step({}, back, 0))
    assert outputs[0] == {}
    assert sum(entry.state_rows for entry in once.statistics()) == 0


def joins_in(circuit: Circuit) -> list[str]:
    return [e.operator for e in circuit.statistics() if "Join" in e.operator]


def test_a_chain_is_one_operator_and_can_be_a_tree() -> None:
    (label,) = joins_in(compile_plan(CHAIN, alone))
    assert label.startswith("MultiJoin of 3: InnerJoin")
    assert len(joins_in(compile_plan(CHAIN, alone, multiway_joins=False))) == 2


def test_what_others_read_is_computed_once() -> None:
    """The pair of the chain is read by another branch, so the chain stays a tree."""
    pair = CHAIN.left
    plan = UnionAll((columns(CHAIN, 0), columns(pair, 0)))
    assert pair in shared_plans(plan)
    assert len(joins_in(compile_plan(plan, alone))) == 2


@pytest.mark.parametrize(
    "plan",
    [
        inner(Join(SOURCES[0], SOURCES[1], JoinKind.LEFT, ((1, 0),)), SOURCES[2], (4, 0)),
        inner(inner(SOURCES[0], SOURCES[1]), SOURCES[2], (4, 0)),
        inner(SOURCES[0], SOURCES[1], (0, 0)),
    ],
    ids=["outer join", "not connected", "two inputs"],
)
def test_what_stays_a_tree(plan: Join) -> None:
    assert multiway(plan, frozenset()) is None


def test_a_product_in_the_tree_vanishes_when_the_inputs_are_connected() -> None:
    """r0 and r1 have no condition between them, but each has one with r2."""
    plan = inner(inner(SOURCES[0], SOURCES[1]), SOURCES[2], (0, 0), (3, 1))
    circuit = compile_plan(plan, alone)
    (label,) = joins_in(circuit)
    assert label.startswith("MultiJoin of 3: InnerJoin")
    circuit.step({}, {"r0": {(n, 0, "x"): 1 for n in range(50)}}, 0)
    circuit.step({}, {"r1": {(n, 0, "y"): 1 for n in range(50)}}, 0)
    assert max(entry.state_rows for entry in circuit.statistics()) == 100
    (row,) = circuit.step({}, {"r2": {(7, 8, "z"): 1}}, 0)
    assert row == (7, 0, "x", 8, 0, "y", 7, 8, "z")


def test_more_inputs_than_one_operator_takes() -> None:
    plan: Plan = SOURCES[0]
    for number in range(MOST_INPUTS + 3):
        plan = columns(inner(plan, SOURCES[number % 4], (0, 0)), 0, 1, 2)
    circuit = compile_plan(plan, alone)
    first, *rest = joins_in(circuit)
    assert first.startswith(f"MultiJoin of {MOST_INPUTS}: ")
    assert len(rest) == 4
    remotes: dict[str, Delta] = {name: {(1, 2, "x"): 1, (3, 4, "y"): 1} for name in NAMES}
    assert circuit.step({}, remotes, 0) == {(1, 2, "x"): 1, (3, 4, "y"): 1}


def test_less_is_kept_than_by_a_tree() -> None:
    choice = random.Random(1)
    circuits = [compile_plan(CHAIN, alone, multiway_joins=m) for m in (True, False)]
    remotes: dict[str, Delta] = {
        name: {(choice.randrange(20), choice.randrange(20), f"{n}"): 1 for n in range(200)}
        for name in NAMES[:3]
    }
    for circuit in circuits:
        circuit.step({}, remotes, 0)
    kept = [sum(entry.state_rows for entry in circuit.statistics()) for circuit in circuits]
    assert kept[0] == 800  # r1 is looked up by either column
    assert kept[1] > 2_000


def test_a_constant_condition_is_asked_first() -> None:
    never = Literal(False, DataType.BOOLEAN)
    plan = Filter(CHAIN, Call("AND", (never, never), DataType.BOOLEAN))
    circuit = compile_plan(plan, alone)
    remotes: dict[str, Delta] = {name: {(1, 1, "x"): 1} for name in NAMES}
    assert circuit.step({}, remotes, 0) == {}
