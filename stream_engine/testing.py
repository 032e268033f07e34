"""What tests of the engine are made of: small random plans, events and their reference answer.

Domains are tiny on purpose: rows collide, keys match, groups vanish and come back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.operator import RecursiveOperator
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.simulation.bundles import (
    counted_at_base,
    joined_by_hash,
    joined_with_copies,
)
from stream_engine.state.source_relation import SourceRelation
from stream_engine.testing_aggregates import aggregate_calls
from stream_engine.testing_shapes import (
    as_of_joins,
    grouped_sessions,
    orders,
    set_operations,
    timed,
)
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    SourceKind,
    UnionAll,
    Values,
    Window,
    WindowKind,
)
from streamsql.data.delta import Delta, accumulate, expand
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from streamsql.reference.database import Database
from streamsql.reference.evaluate import evaluate
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.partitioning import site_of

SECOND = 1_000_000

_DOMAINS: dict[DataType, tuple[Value, ...]] = {
    DataType.TEXT: ("a", "b", None),
    DataType.INTEGER: (0, 1, 2, None),
    DataType.DOUBLE: (0.1, 0.2, 1e16, -1e16, 2.5, None),
    DataType.BOOLEAN: (True, False, None),
}

_SHAPES = (
    "filter",
    "project",
    "join",
    "as_of",
    "group",
    "distinct",
    "union",
    "set",
    "top",
    "timed",
    "sessions",
)

COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE))
"""The columns of every source here."""

SOURCES: tuple[Scan, ...] = (
    Scan("log", SourceKind.STREAM, COLUMNS),
    Scan("fading", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND),
    Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0,)),
    Scan("keyed_fading", SourceKind.STREAM, COLUMNS, key=(0, 1), ttl=4 * SECOND),
    Scan("stored", SourceKind.TABLE, COLUMNS),
)
"""One source of every behaviour."""


def values(dtype: DataType) -> st.SearchStrategy[Value]:
    """Return few values of a type, NULL among them."""
    return st.sampled_from(_DOMAINS.get(dtype, _DOMAINS[DataType.INTEGER]))


def rows(schema: Schema) -> st.SearchStrategy[Row]:
    """Return rows of a schema."""
    return st.tuples(*(values(dtype) for dtype in schema.dtypes))


def deltas(schema: Schema = COLUMNS, *, max_rows: int = 4) -> st.SearchStrategy[Delta]:
    """Return changes with weights -2 to 2, not all of which apply to a given relation."""
    weights = st.sampled_from((-2, -1, 1, 2))
    return st.dictionaries(rows(schema), weights, max_size=max_rows)


@st.composite
def schemas(draw: st.DrawFn, *, max_columns: int = 4) -> Schema:
    """Return columns of any types the domains have, with distinct names."""
    dtypes = draw(st.lists(st.sampled_from(tuple(_DOMAINS)), min_size=1, max_size=max_columns))
    return Schema.of(*((f"c{position}", dtype) for position, dtype in enumerate(dtypes)))


@st.composite
def delta_sequences(
    draw: st.DrawFn, schema: Schema = COLUMNS, *, max_steps: int = 5
) -> list[Delta]:
    """Return changes of a relation that never becomes negative."""
    relation: Delta = {}
    sequence = []
    for change in draw(st.lists(deltas(schema), max_size=max_steps)):
        legal: Delta = {}
        for row, weight in change.items():
            kept = max(weight, -relation.get(row, 0))
            if kept:
                legal[row] = kept
        accumulate(relation, legal)
        sequence.append(legal)
    return sequence


@dataclass(frozen=True)
class Moment:
    """What happens between two steps: the time moves, then events arrive in order."""

    now: int
    events: tuple[tuple[str, SourceEvent], ...]


@st.composite
def histories(
    draw: st.DrawFn, sources: Sequence[Scan] = SOURCES, *, max_moments: int = 4
) -> list[Moment]:
    """Return moments of increasing time with events that may be late, early or withdrawals.

    Streams without key are never withdrawn from: a log keeps no rows, and which of several copies
    of a fading row a withdrawal takes away depends on what has expired already.
    """
    now = 0
    moments = []
    for _ in range(draw(st.integers(1, max_moments))):
        now += draw(st.sampled_from((0, SECOND // 2, SECOND, 3 * SECOND)))
        events = draw(st.lists(_events(sources, now), min_size=1, max_size=8))
        moments.append(Moment(now, tuple(events)))
    return moments


@st.composite
def _events(draw: st.DrawFn, sources: Sequence[Scan], now: int) -> tuple[str, SourceEvent]:
    scan = draw(st.sampled_from(sources))
    row = draw(rows(scan.columns))
    offset = draw(st.sampled_from((-4, -2, -1, 0, 0, 1))) * (SECOND // 2)
    may_withdraw = bool(scan.key) or scan.kind != SourceKind.STREAM
    delete = may_withdraw and draw(st.integers(0, 4)) == 0
    return (scan.source, SourceEvent(row, now + offset, delete))


# --- expressions and plans --------------------------------------------------------------------


def columns_of_type(schema: Schema, dtype: DataType) -> list[Column]:
    """Return the columns of a schema that have a type."""
    return [
        Column(position, field.name, dtype)
        for position, field in enumerate(schema.fields)
        if field.dtype == dtype
    ]


@st.composite
def predicates(draw: st.DrawFn, schema: Schema) -> Expression:
    """Return a comparison, or two of them joined by AND or OR."""
    first = draw(_comparisons(schema))
    if draw(st.booleans()):
        return first
    function = draw(st.sampled_from(("AND", "OR")))
    return Call(function, (first, draw(_comparisons(schema))), DataType.BOOLEAN)


@st.composite
def _comparisons(draw: st.DrawFn, schema: Schema) -> Expression:
    position = draw(st.integers(0, len(schema) - 1))
    field = schema.fields[position]
    column = Column(position, field.name, field.dtype)
    if draw(st.integers(0, 5)) == 0:
        return Call("IS NULL", (column,), DataType.BOOLEAN)
    others: list[Expression] = list(columns_of_type(schema, field.dtype))
    others.append(Literal(draw(values(field.dtype)), field.dtype))
    function = draw(st.sampled_from(("<>", ">=", "=", "<")))
    return Call(function, (column, draw(st.sampled_from(others))), DataType.BOOLEAN)


@st.composite
def windows(draw: st.DrawFn, scan: Scan) -> Plan:
    """Return a scan or any window on it."""
    kind = draw(st.sampled_from((None, *WindowKind)))
    if kind is None:
        return scan
    match kind:
        case WindowKind.RANGE:
            size = draw(st.sampled_from((SECOND, 2 * SECOND, 3 * SECOND // 2)))
            slide = draw(st.sampled_from((None, SECOND, 3 * SECOND)))
            return Window(scan, kind, size, slide)
        case WindowKind.ROWS:
            partition = draw(st.sampled_from(((), (0,), (1, 0))))
            within = draw(st.sampled_from((None, SECOND, 5 * SECOND // 2)))
            size = draw(st.integers(1, 3))
            return Window(scan, kind, size, partition=partition, range=within)
        case _:
            return Window(scan, kind)


@st.composite
def plans(draw: st.DrawFn, sources: Sequence[Scan] = SOURCES, *, depth: int = 3) -> Plan:
    """Return a random plan without recursion."""
    if depth == 0:
        scan = draw(st.sampled_from(sources))
        if draw(st.integers(0, 9)) == 0:
            constants = tuple(draw(st.lists(rows(scan.columns), max_size=2)))
            return Values(constants, scan.columns)
        return draw(windows(scan))
    child = draw(plans(sources, depth=depth - 1))
    schema = child.schema
    match draw(st.sampled_from(_SHAPES)):
        case "filter":
            return Filter(child, draw(predicates(schema)))
        case "project":
            return draw(projections(child))
        case "join":
            return draw(joins(child, draw(plans(sources, depth=min(depth - 1, 1)))))
        case "as_of":
            return draw(as_of_joins(child, draw(plans(sources, depth=0))))
        case "group":
            positions = st.lists(st.integers(0, len(schema) - 1), max_size=2, unique=True)
            calls = draw(st.lists(aggregate_calls(schema), min_size=1, max_size=2))
            return Aggregate(child, tuple(draw(positions)), tuple(calls))
        case "distinct":
            return Distinct(child)
        case "union":
            return UnionAll((child, draw(_of_same_type(child))))
        case "set":
            return draw(set_operations(child, draw(_of_same_type(child))))
        case "top":
            return draw(orders(child))
        case "sessions":
            return draw(grouped_sessions(child))
        case _:
            return draw(timed(child))


@st.composite
def projections(draw: st.DrawFn, child: Plan) -> Plan:
    """Return a projection to some columns, one of them possibly computed."""
    schema = child.schema
    positions = draw(st.lists(st.integers(0, len(schema) - 1), min_size=1, max_size=4))
    expressions: list[Expression] = [
        Column(p, schema.fields[p].name, schema.fields[p].dtype) for p in positions
    ]
    integers = columns_of_type(schema, DataType.INTEGER)
    computed = draw(st.booleans())
    if integers and computed:
        one = Literal(1, DataType.INTEGER)
        number = draw(st.sampled_from(integers))
        expressions.append(Call("+", (number, one), DataType.INTEGER))
    names = tuple(f"c{position}" for position in range(len(expressions)))
    return Project(child, tuple(expressions), names)


@st.composite
def joins(draw: st.DrawFn, left: Plan, right: Plan) -> Plan:
    """Return a join of any kind, with or without keys and residual."""
    pairs = [
        (i, j)
        for i, a in enumerate(left.schema.fields)
        for j, b in enumerate(right.schema.fields)
        if a.dtype == b.dtype
    ]
    keys = draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)) if pairs else []
    residual = draw(st.none() | predicates(left.schema + right.schema))
    return Join(left, right, draw(st.sampled_from(tuple(JoinKind))), tuple(keys), residual)


@st.composite
def _of_same_type(draw: st.DrawFn, plan: Plan) -> Plan:
    choice = draw(st.sampled_from(("same", "filtered", "constant")))
    if choice == "same":
        return plan
    if choice == "filtered":
        return Filter(plan, draw(predicates(plan.schema)))
    return Values(tuple(draw(st.lists(rows(plan.schema), max_size=2))), plan.schema)


@st.composite
def bundles(draw: st.DrawFn, sources: Sequence[Scan], gateways: tuple[str, ...]) -> FragmentBundle:
    """Return a random fragmentation over gateways and a base.

    What is pushed to the gateways is any plan over the sources, cut to a text and a number.
    """
    first, second = (
        _two_columns(draw(plans(sources, depth=draw(st.integers(0, 2))))) for _ in range(2)
    )
    sites = (*gateways, "base")
    match draw(st.integers(0, 2)):
        case 0:
            return counted_at_base(first, gateways)
        case 1:
            count = draw(st.integers(1, len(sites)))
            joiners = draw(st.permutations(sites))[:count]
            return joined_by_hash(first, second, gateways, tuple(joiners))
        case _:
            return joined_with_copies(first, second, sites)


def _two_columns(plan: Plan) -> Plan:
    """Cut or pad a plan to a TEXT and an INTEGER column."""
    texts = columns_of_type(plan.schema, DataType.TEXT)
    integers = columns_of_type(plan.schema, DataType.INTEGER)
    first: Expression = texts[0] if texts else Literal("a", DataType.TEXT)
    second: Expression = integers[0] if integers else Literal(1, DataType.INTEGER)
    return Project(plan, (first, second), ("k", "n"))


# --- running ----------------------------------------------------------------------------------


def alone(node: Fixpoint) -> RecursiveOperator:
    """Return the operator of a recursion that one site computes alone."""
    return recursive_operator(node, site="here", sites=("here",), epoch=1)


class LocalRun:
    """A circuit over its sources, without a site around it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.circuit: Circuit = compile_plan(plan, alone)
        self.database = Database()
        self.output: Delta = {}
        self._relations = {scan: SourceRelation(scan) for scan in self.circuit.scans}

    def step(self, now: int, events: Iterable[tuple[str, SourceEvent]] = ()) -> Delta:
        """Step with events; return the integrated output."""
        by_source: dict[str, list[SourceEvent]] = {}
        for source, event in events:
            by_source.setdefault(source, []).append(event)
        for source, happened in by_source.items():
            self.database.append(source, happened)
        changes = {
            scan: relation.apply(by_source.get(scan.source, ()), now)
            for scan, relation in self._relations.items()
        }
        accumulate(self.output, self.circuit.step(changes, {}, now))
        return self.output

    def next_wakeup(self) -> int | None:
        """Return when time alone changes something."""
        times = [relation.next_expiry() for relation in self._relations.values()]
        times.append(self.circuit.next_wakeup())
        return min((time for time in times if time is not None), default=None)

    def expected(self, now: int) -> Delta:
        """Return the reference answer over everything that happened."""
        return evaluate(self.plan, self.database, now)


def expected_result(bundle: FragmentBundle, databases: Mapping[str, Database], now: int) -> Delta:
    """Return what a bundle without recursion over several sites should give.

    Every fragment is evaluated from scratch at every site of it that lives, over that site's own
    history and what the fragments before it send there.

    Args:
        bundle: Fragments in producer order.
        databases: History of each living site.
        now: The time.
    """
    arriving: dict[tuple[str, str], list[Row]] = {}
    result: Delta = {}
    for fragment in bundle.fragments:
        for site in [site for site in fragment.sites if site in databases]:
            names = [f.id for f in bundle.fragments]
            remote = {name: arriving.get((site, name), []) for name in names}
            relation = evaluate(fragment.plan, databases[site], now, remote)
            if not fragment.consumer:
                accumulate(result, relation)
                continue
            for row in expand(relation):
                owners: Sequence[str] = fragment.destinations
                if fragment.partition:
                    key = tuple(row[position] for position in fragment.partition)
                    owners = [site_of(key, fragment.destinations)]
                for owner in owners:
                    arriving.setdefault((owner, fragment.id), []).append(row)
    return result


def accumulated(sequence: Iterable[Delta]) -> Delta:
    """Return the sum of deltas."""
    total: Delta = {}
    for delta in sequence:
        accumulate(total, delta)
    return total


def evaluated_over(plan: Plan, remote: Mapping[str, Delta], now: int = 0) -> Delta:
    """Return the reference answer of a plan over `RemoteSource` leaves only."""
    bags = {name: list(expand(relation)) for name, relation in remote.items()}
    return evaluate(plan, Database(), now, bags)
