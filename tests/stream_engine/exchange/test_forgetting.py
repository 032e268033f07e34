"""What a site names as forgettable where a query has several windows that close."""

from stream_engine.circuit.closing_node import ClosingNode
from stream_engine.circuit.compiler import compile_plan
from stream_engine.exchange.channel_inbox import Inbox
from stream_engine.exchange.channel_outbox import Outbox
from stream_engine.exchange.forgetting import Forgetting
from stream_engine.operators.windows.on_close import OnCloseOperator
from stream_engine.testing.circuit_runs import alone
from streamsql.algebra.leaves import PROGRESS_COLUMNS
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    HopWindow,
    OnClose,
    RemoteSource,
    Scan,
    SourceKind,
    UnionAll,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.channel_protocol import Forgotten
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

COLUMNS = Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP))
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


def closing(number: int) -> OnClose:
    rows = RemoteSource(f"rows{number}", COLUMNS)
    groups = Aggregate(HopWindow(rows, 1, size=10, hop=10), (0, 3), (COUNT,))
    return OnClose(groups, RemoteSource(f"marks{number}", PROGRESS_COLUMNS), 1)


def test_of_several_windows_the_one_that_is_furthest_behind_counts() -> None:
    """A site may forget by one watermark only, and only once every window has one."""
    plan = UnionAll((closing(1), closing(2)))
    sent = [
        Fragment(f"rows{n}", Engine.GATEWAY, Scan(f"s{n}", SourceKind.STREAM, COLUMNS), ("g1",))
        for n in (1, 2)
    ]
    bundle = FragmentBundle(
        "q", 1, (*sent, Fragment("top", Engine.BASE, plan, ("base",))), plan.schema
    )
    nodes = compile_plan(plan, alone).nodes
    first, second = (node.operator for node in nodes if isinstance(node, ClosingNode))
    assert isinstance(first, OnCloseOperator)
    assert isinstance(second, OnCloseOperator)
    forgetting = Forgetting(
        bundle,
        (first, second),
        Inbox(1, {("g1", "rows1"): 2, ("g1", "rows2"): 2}),
        Outbox(version=1, epoch=1, first=0, ports={}, recursions={}),
    )
    assert forgetting.senders == ["g1"]
    assert forgetting.known() == Forgotten()
    first.begin_after(40)
    assert forgetting.known() == Forgotten()
    second.begin_after(20)
    assert forgetting.known() == Forgotten(20, {"rows1": (1, 20), "rows2": (1, 20)})
    forgetting.heard(30)
    assert forgetting.known() == Forgotten(30, {"rows1": (1, 30), "rows2": (1, 30)})
