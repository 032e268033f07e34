"""Plans cannot be built ill-formed, travel unchanged, and explain themselves stably."""

import pytest

from streamsql.algebra.explain import explain_plan
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    Scan,
    SourceKind,
    UnionAll,
    Values,
    Window,
    WindowKind,
    is_open,
    refers_to,
    transform_up,
    walk_plan,
    with_inputs,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

LINKS = Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT))
SRC, DST = Column(0, "src", DataType.TEXT), Column(1, "dst", DataType.TEXT)
LINK = Scan("link", SourceKind.LINK, LINKS, key=(0, 1), ttl=90_000_000)
FAR = Column(7, "far", DataType.TEXT)


def reachable() -> Fixpoint:
    reference = RecursiveReference("reachable", LINKS)
    joined = Join(LINK, reference, JoinKind.INNER, keys=((1, 0),))
    step = Project(joined, (SRC, Column(3, "dst", DataType.TEXT)), ("src", "dst"))
    return Fixpoint("reachable", LINKS, base=(LINK,), step=(step,))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Filter(LINK, Call("IS NULL", (FAR,), DataType.BOOLEAN)),
        lambda: Filter(LINK, SRC),
        lambda: Project(LINK, (FAR,), ("far",)),
        lambda: Project(LINK, (SRC,), ("a", "b")),
        lambda: Join(LINK, LINK, JoinKind.INNER, keys=((2, 0),)),
        lambda: Aggregate(LINK, (5,), ()),
        lambda: UnionAll((LINK, Values((), Schema.of(("n", DataType.INTEGER))))),
        lambda: UnionAll(()),
        lambda: Window(LINK, WindowKind.RANGE),
        lambda: Window(LINK, WindowKind.NOW, size=3),
        lambda: Window(LINK, WindowKind.ROWS, size=0),
        lambda: Fixpoint("r", LINKS, base=(), step=()),
    ],
)
def test_ill_formed_plans_cannot_be_built(build: object) -> None:
    with pytest.raises(InternalError):
        build()  # type: ignore[operator]


def test_plans_survive_both_encodings() -> None:
    count = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
    limit = Literal(3, DataType.INTEGER)
    plan: Plan = Filter(
        Aggregate(Distinct(reachable()), (0,), (count,)),
        Call(">", (Column(1, "n", DataType.INTEGER), limit), DataType.BOOLEAN),
    )
    fragment = Fragment("f0", Engine.BASE, plan, ("base",), reasons=("because",))
    bundle = FragmentBundle("q1", 1, (fragment,), plan.schema)
    assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
    assert decode_json(encode_json(bundle), FragmentBundle) == bundle


def test_equal_plans_explain_alike() -> None:
    assert explain_plan(reachable()) == explain_plan(reachable())
    assert explain_plan(reachable()).splitlines() == [
        "Fixpoint reachable(src TEXT, dst TEXT) limit=1000000",
        "├─ base: Scan link link key=(src, dst) ttl=90 s",
        "└─ step: Project src, dst",
        "   └─ InnerJoin [dst = src]",
        "      ├─ Scan link link key=(src, dst) ttl=90 s",
        "      └─ Recursive reachable",
    ]


def test_rebuilding_keeps_what_does_not_change() -> None:
    plan = reachable()
    assert transform_up(plan, lambda node: node) == plan
    assert with_inputs(plan, plan.inputs) == plan
    with pytest.raises(InternalError):
        with_inputs(Window(LINK, WindowKind.NOW), (Distinct(LINK),))


def test_parents_are_walked_before_their_inputs_and_these_from_the_left() -> None:
    plan = reachable()
    (step,) = plan.step
    assert list(walk_plan(plan)) == [plan, LINK, step, step.inputs[0], *step.inputs[0].inputs]


def test_recursive_references_are_found() -> None:
    plan = reachable()
    assert refers_to(plan.step[0], "reachable")
    assert not refers_to(plan.base[0], "reachable")


def test_a_plan_with_a_whole_recursion_inside_is_closed() -> None:
    columns = Schema.of(("a", DataType.TEXT))
    scan = Scan("s", SourceKind.STREAM, columns)
    reference = RecursiveReference("r", columns)
    step = Distinct(reference)
    inner = Fixpoint("r", columns, (scan,), (step,))
    other = Fixpoint("q", columns, (inner,), (Distinct(reference),))
    assert not is_open(scan)
    assert is_open(step)
    assert not is_open(Distinct(inner))
    assert is_open(other)
