"""Size of a network by the weights of the thesis."""

from benchmarks._argus.network_size import NetworkSize, size_of
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter, Join, JoinKind, Plan, RemoteSource, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

COLUMNS = Schema.of(("n", DataType.INTEGER))
SCAN = Scan("s", SourceKind.STREAM, COLUMNS, key=(0,))
SITE = ("base",)


def selected(plan: Plan) -> Plan:
    above = Call(
        ">",
        (Column(0, "n", DataType.INTEGER), Literal(1, DataType.INTEGER)),
        DataType.BOOLEAN,
    )
    return Filter(plan, above)


def joined(left: Plan, right: Plan) -> Plan:
    return Join(left, right, JoinKind.INNER, ((0, 0),), None)


def test_a_chain_weighs_less_with_each_join() -> None:
    first = joined(selected(SCAN), SCAN)
    second = joined(selected(first), SCAN)
    bundle = FragmentBundle("q", 1, (Fragment("f", Engine.BASE, second, SITE),), second.schema)
    assert size_of([bundle]) == NetworkSize(
        weighted=5 + 16 + 4 + 8, nodes=4, operators=7, fragments=1
    )


def test_joins_below_another_fragment_count_but_fed_fragments_weigh_nothing() -> None:
    below = joined(SCAN, SCAN)
    top = selected(RemoteSource("f1", below.schema))
    fragments = (
        Fragment("f0", Engine.BASE, top, SITE),
        Fragment("f1", Engine.GATEWAY, below, ("gateway",), "f0", SITE),
    )
    whole = FragmentBundle("q", 1, fragments, top.schema)
    assert size_of([whole]).weighted == 16 + 4
    thin = FragmentBundle("q2", 1, fragments, top.schema, feeds=(Feed("f1", "q", 1, "f1"),))
    assert size_of([thin]) == NetworkSize(weighted=4, nodes=1, operators=1, fragments=1)
    assert size_of([whole, thin]).weighted == 16 + 4 + 4
