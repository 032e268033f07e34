"""The reference evaluator against worked examples and simpler programs."""

from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.expressions import Call, Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    AggregateSelection,
    Best,
    Fixpoint,
    Join,
    JoinKind,
    Project,
    RecursiveReference,
    Scan,
    SourceKind,
    Values,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import RecursionLimitError
from streamsql.reference import Database, evaluate

SECOND = 1_000_000
PATHS = Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT), ("cost", DataType.INTEGER))
SRC, DST, COST = (Column(i, f.name, f.dtype) for i, f in enumerate(PATHS.fields))
LINK = Scan("link", SourceKind.LINK, PATHS, key=(0, 1))
nodes = st.sampled_from("abcd")
links = st.dictionaries(st.tuples(nodes, nodes), st.integers(1, 5), max_size=9)


def database(source: str, *events: SourceEvent) -> Database:
    made = Database()
    made.append(source, list(events))
    return made


def stored(found: dict[tuple[str, str], int]) -> Database:
    return database("link", *(SourceEvent((*ends, cost), 0) for ends, cost in found.items()))


def cheapest(limit: int = 1_000_000) -> Fixpoint:
    reference = RecursiveReference("p", PATHS)
    joined = Join(LINK, reference, JoinKind.INNER, keys=((1, 0),))
    total = Call("+", (COST, Column(5, "cost", DataType.INTEGER)), DataType.INTEGER)
    step = Project(joined, (SRC, Column(4, "dst", DataType.TEXT), total), PATHS.names)
    selection = AggregateSelection((0, 1), (Best(2),))
    return Fixpoint("p", PATHS, (LINK,), (step,), limit=limit, selection=selection)


@given(links)
def test_cheapest_paths_agree_with_dijkstra(found: dict[tuple[str, str], int]) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_weighted_edges_from([(*ends, cost) for ends, cost in found.items()])
    expected: set[Row] = set()
    for start in graph:
        lengths = dict(nx.single_source_dijkstra_path_length(graph, start))
        expected |= {(start, end, cost) for end, cost in lengths.items() if end != start}
        loops = [
            graph[start][via]["weight"] + nx.dijkstra_path_length(graph, via, start)
            for via in graph[start]
            if nx.has_path(graph, via, start)
        ]
        if loops:
            expected.add((start, start, min(loops)))
    assert set(evaluate(cheapest(), stored(found), 0)) == expected


def test_a_recursion_past_its_limit_is_stopped() -> None:
    with pytest.raises(RecursionLimitError, match="more than 2 rows"):
        evaluate(cheapest(limit=2), stored({("a", "b"): 1, ("b", "c"): 1}), 0)


def test_a_negative_cycle_is_stopped() -> None:
    with pytest.raises(RecursionLimitError, match="rounds"):
        evaluate(cheapest(), stored({("a", "a"): -1}), 0)


@pytest.mark.parametrize(
    ("kind", "size", "slide", "now", "expected"),
    [
        (WindowKind.RANGE, 10, None, 12, {3, 9, 12}),
        (WindowKind.RANGE, 10, None, 13, {9, 12}),
        (WindowKind.RANGE, 10, 5, 14, {3, 9}),
        (WindowKind.RANGE, 10, 5, 15, {9, 12}),
        (WindowKind.NOW, None, None, 12, {12}),
        (WindowKind.NOW, None, None, 13, set()),
        (WindowKind.UNBOUNDED, None, None, 99, {3, 9, 12}),
    ],
)
def test_windows_by_time(
    kind: WindowKind, size: int | None, slide: int | None, now: int, expected: set[int]
) -> None:
    schema = Schema.of(("n", DataType.INTEGER))
    scan = Scan("s", SourceKind.STREAM, schema)
    made = database("s", *(SourceEvent((n,), n * SECOND) for n in (9, 3, 12)))
    window = Window(scan, kind, size and size * SECOND, slide and slide * SECOND)
    assert {row[0] for row in evaluate(window, made, now * SECOND)} == expected


def test_a_window_by_count_keeps_the_last_rows_per_partition_whatever_their_order() -> None:
    schema = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER))
    scan = Scan("s", SourceKind.STREAM, schema)
    made = database(
        "s", *(SourceEvent((k, n), n) for k, n in [("a", 3), ("b", 1), ("a", 1), ("a", 2)])
    )
    window = Window(scan, WindowKind.ROWS, 2, partition=(0,))
    assert evaluate(window, made, 0) == {("a", 2): 1, ("a", 3): 1, ("b", 1): 1}


def test_a_keyed_source_keeps_the_newest_row_and_forgets_it_in_time() -> None:
    schema = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER))
    scan = Scan("s", SourceKind.STREAM, schema, key=(0,), ttl=10)
    made = database(
        "s",
        SourceEvent(("a", 1), 5),
        SourceEvent(("a", 0), 4),
        SourceEvent(("b", 1), 5),
        SourceEvent(("b", 7), 6, delete=True),
    )
    assert evaluate(scan, made, 14) == {("a", 1): 1}
    assert evaluate(scan, made, 15) == {}


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=8))
def test_sums_and_means_of_doubles_are_the_rounded_real_ones(values: list[float]) -> None:
    schema = Schema.of(("x", DataType.DOUBLE))
    column = (Column(0, "x", DataType.DOUBLE),)
    calls = (
        AggregateCall(AggregateFunction.SUM, column, "s"),
        AggregateCall(AggregateFunction.AVG, column, "a"),
    )
    plan = Aggregate(Values(tuple((v,) for v in values), schema), (), calls)
    ((found, weight),) = evaluate(plan, Database(), 0).items()
    exact = sum(map(Fraction, values), Fraction(0))
    expected = (float(exact), float(exact / len(values))) if values else (None, None)
    assert (found, weight) == (expected, 1)


def test_a_left_join_pads_and_null_keys_never_match() -> None:
    schema = Schema.of(("k", DataType.INTEGER))
    left = Values(((1,), (2,), (None,)), schema)
    right = Values(((1,), (None,)), schema)
    plan = Join(left, right, JoinKind.LEFT, keys=((0, 0),))
    assert evaluate(plan, Database(), 0) == {(1, 1): 1, (2, None): 1, (None, None): 1}


def test_arg_min_breaks_ties_by_the_least_value() -> None:
    schema = Schema.of(("name", DataType.TEXT), ("cost", DataType.INTEGER))
    name, cost = (Column(i, f.name, f.dtype) for i, f in enumerate(schema.fields))
    rows = (("b", 1), ("a", 1), ("c", 9), ("z", None))
    least = AggregateCall(AggregateFunction.ARG_MIN, (name, cost), "least")
    most = AggregateCall(AggregateFunction.ARG_MAX, (name, cost), "most")
    plan = Aggregate(Values(rows, schema), (), (least, most))
    assert evaluate(plan, Database(), 0) == {("a", "c"): 1}


def test_a_sum_beyond_64_bits_is_null() -> None:
    schema = Schema.of(("n", DataType.INTEGER))
    total = AggregateCall(AggregateFunction.SUM, (Column(0, "n", DataType.INTEGER),), "total")
    plan = Aggregate(Values(((2**62,), (2**62,)), schema), (), (total,))
    assert evaluate(plan, Database(), 0) == {(None,): 1}
