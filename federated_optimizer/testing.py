"""For tests: run a bundle on the reference evaluator, and generate plans over a small federation.

The small federation has sources of every kind the placement tells apart: keyed and unkeyed,
co-located and not, links, and two stored tables. Values are few, so that rows meet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hypothesis import strategies as st

from federated_optimizer.placement import Topology
from streamsql.algebra.expressions import Call, Column, Expression, Literal
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
    RemoteSource,
    Scan,
    SourceKind,
    UnionAll,
    Values,
    Window,
    WindowKind,
    walk_plan,
)
from streamsql.data.delta import Delta, expand
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.partitioning import site_of

TEXT, INTEGER, BOOLEAN = DataType.TEXT, DataType.INTEGER, DataType.BOOLEAN
NOW = 20

SEAT = Scan(
    "seat",
    SourceKind.STREAM,
    Schema.of(("mid", TEXT), ("rid", TEXT), ("weight", INTEGER)),
    key=(0,),
    ttl=15,
)
ROOM = Scan(
    "room", SourceKind.STREAM, Schema.of(("rid", TEXT), ("status", INTEGER)), key=(0,), ttl=15
)
HEAT = Scan(
    "heat",
    SourceKind.STREAM,
    Schema.of(("sensor", TEXT), ("rid", TEXT), ("celsius", INTEGER)),
)
NOISE = Scan("noise", SourceKind.STREAM, Schema.of(("rid", TEXT), ("loud", INTEGER)))
LINK = Scan(
    "link",
    SourceKind.LINK,
    Schema.of(("src", TEXT), ("dst", TEXT), ("cost", INTEGER)),
    key=(0, 1),
    ttl=15,
)
MACHINES = Scan("machines", SourceKind.TABLE, Schema.of(("mid", TEXT), ("rid", TEXT)), key=(0,))
SOFTWARE = Scan("software", SourceKind.TABLE, Schema.of(("mid", TEXT), ("name", TEXT)))

STREAMS = (SEAT, ROOM, HEAT, NOISE, LINK)
TABLES = (MACHINES, SOFTWARE)
COLOCATION = {("seat", "rid"): "rid", ("room", "rid"): "rid", ("heat", "rid"): "rid"}

TOPOLOGY = Topology(
    gateways={
        "gw-1": frozenset({"seat", "room", "heat", "link", "noise"}),
        "gw-2": frozenset({"seat", "room", "heat", "link", "noise"}),
        "gw-3": frozenset({"heat", "link"}),
    },
    colocation=COLOCATION,
)
"""Three gateways, one base."""

SPREAD_TOPOLOGY = Topology.partitioned(
    3, sources=[scan.source for scan in STREAMS], colocation=COLOCATION
)
"""Three sites that are gateways and bases at once."""


# --- running a bundle on the reference evaluator -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Readings:
    """All events, and who has them."""

    whole: Database
    by_site: Mapping[str, Database]

    def at(self, site: str) -> Database:
        """Return what a site has."""
        return self.by_site.get(site, Database())


def evaluate_bundle(bundle: FragmentBundle, readings: Readings, now: int) -> Delta:
    """Return the result of a bundle: every fragment from scratch at each of its sites.

    A fragment with a recursion is evaluated once over what all its sites have, because its sites
    compute the recursion together.
    """
    arrived: dict[tuple[str, str], list[Row]] = {}
    for fragment in reversed(bundle.fragments):
        for site, rows in _outputs(fragment, readings, arrived, now):
            if not fragment.consumer:
                return _relation(rows)
            _send(fragment, site, rows, arrived)
    raise AssertionError("no fragment gives the result")


def _outputs(
    fragment: Fragment, readings: Readings, arrived: dict[tuple[str, str], list[Row]], now: int
) -> list[tuple[str, list[Row]]]:
    together = len(fragment.sites) > 1 and any(
        isinstance(node, Fixpoint) for node in walk_plan(fragment.plan)
    )
    names = [n.fragment for n in walk_plan(fragment.plan) if isinstance(n, RemoteSource)]
    groups = [fragment.sites] if together else [(site,) for site in fragment.sites]
    outputs: list[tuple[str, list[Row]]] = []
    for sites in groups:
        # A base fragment that scans a stream itself is given every event of it.
        own = readings.whole if fragment.engine == Engine.BASE else readings.at(sites[0])
        remote = {n: [row for s in sites for row in arrived.get((n, s), [])] for n in names}
        outputs.append((sites[0], list(expand(evaluate(fragment.plan, own, now, remote)))))
    return outputs


def _send(
    fragment: Fragment, _site: str, rows: list[Row], arrived: dict[tuple[str, str], list[Row]]
) -> None:
    for row in rows:
        targets = fragment.destinations
        if fragment.partition:
            key = tuple(row[p] for p in fragment.partition)
            targets = (site_of(key, fragment.destinations),)
        for target in targets:
            arrived.setdefault((fragment.id, target), []).append(row)


def _relation(rows: list[Row]) -> Delta:
    result: Delta = {}
    for row in rows:
        result[row] = result.get(row, 0) + 1
    return result


# --- readings ------------------------------------------------------------------------------------

_NAMES: st.SearchStrategy[Value] = st.sampled_from(["a", "b", "c"])
_NUMBERS: st.SearchStrategy[Value] = st.sampled_from([None, 0, 1, 2])


def _gateway_of(name: str | None, sites: tuple[str, ...]) -> str:
    return sites[0] if name is None else sites[ord(name[0]) % len(sites)]


@st.composite
def readings(draw: st.DrawFn, topology: Topology, *, least: int = 0) -> Readings:
    """Return events that keep the promises of keys and co-location.

    Args:
        draw: Given by Hypothesis.
        topology: Who owns which source.
        least: Fewest events of every stream; with some, all are recent and none is withdrawn.
    """
    whole = Database()
    by_site: dict[str, Database] = {}
    for scan in STREAMS:
        owners = topology.owners(scan.source)
        for row, ts, delete in draw(st.lists(_events(scan), min_size=least, max_size=8)):
            event = SourceEvent(row, NOW, delete=False) if least else SourceEvent(row, ts, delete)
            site = _owner(draw, scan, row, owners)
            for database in (whole, by_site.setdefault(site, Database())):
                database.append(scan.source, [event])
    for scan in TABLES:
        rows = [SourceEvent(row, 0) for row in draw(st.lists(_rows(scan), max_size=5))]
        for database in (whole, by_site.setdefault(topology.static, Database())):
            database.append(scan.source, rows)
    return Readings(whole, by_site)


def _owner(draw: st.DrawFn, scan: Scan, row: Row, owners: tuple[str, ...]) -> str:
    """Rows of one co-located value, and of one key, always come from one gateway."""
    names = scan.schema.names
    if "rid" in names and (scan.source, "rid") in COLOCATION:
        # Every owner of a co-located source must have the value's other rows, too.
        common = owners[:2]
        value = row[names.index("rid")]
        return _gateway_of(None if value is None else str(value), common)
    if scan.key:
        return _gateway_of(str(row[0]), owners)
    return draw(st.sampled_from(owners))


@lru_cache
def _rows(scan: Scan) -> st.SearchStrategy[Row]:
    columns: list[st.SearchStrategy[Value]] = [
        _NAMES if f.dtype == TEXT else _NUMBERS for f in scan.schema.fields
    ]
    if scan is SEAT:
        # A seat does not move: its room follows from it.
        return st.tuples(_NAMES, _NUMBERS).map(lambda pair: (pair[0], pair[0], pair[1]))
    if scan is HEAT:
        columns[1] = st.sampled_from([None, "a", "b"])
    return st.tuples(*columns)


@lru_cache
def _events(scan: Scan) -> st.SearchStrategy[tuple[Row, int, bool]]:
    # A reading is withdrawn where it came from; rows of NOISE do not tell where that was.
    deleted = st.just(value=False) if scan is NOISE else st.sampled_from([False, False, True])
    return st.tuples(_rows(scan), st.integers(0, NOW), deleted)


# --- plans ---------------------------------------------------------------------------------------


def plans(depth: int = 4) -> st.SearchStrategy[Plan]:
    """Return plans over the small federation."""
    return _plan(depth)


@st.composite
def decisions(draw: st.DrawFn) -> Plan:
    """Return small plans of streams that gateways can do or not, depending on the columns."""
    left = draw(_narrow_leaf())
    shape = draw(st.sampled_from(["distinct", "aggregate", "join", "aggregate join"]))
    if shape == "distinct":
        return Distinct(left)
    if shape == "aggregate":
        return _counted(draw, left)
    right = draw(_narrow_leaf())
    pairs = _key_pairs(left, right)
    if not pairs:
        return Distinct(left)
    keys = tuple(draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True)))
    join = Join(left, right, draw(st.sampled_from(list(JoinKind))), keys)
    return join if shape == "join" else _counted(draw, join)


@st.composite
def _narrow_leaf(draw: st.DrawFn) -> Plan:
    scan: Scan = draw(st.sampled_from(STREAMS))
    everything = list(range(len(scan.schema)))
    kept = draw(st.lists(st.sampled_from(everything), min_size=1, unique=True))
    columns = tuple(_column(scan, i) for i in sorted(kept))
    return Project(scan, columns, tuple(c.name for c in columns))


def _counted(draw: st.DrawFn, plan: Plan) -> Plan:
    group = draw(st.lists(st.sampled_from(range(len(plan.schema))), min_size=1, unique=True))
    calls = (AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),)
    return Aggregate(plan, tuple(group[:2]), calls)


def _key_pairs(left: Plan, right: Plan) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, a in enumerate(left.schema.fields)
        for j, b in enumerate(right.schema.fields)
        if a.dtype == b.dtype
    ]


@st.composite
def _plan(draw: st.DrawFn, depth: int) -> Plan:
    plan: Plan = draw(_shapes(depth))
    return plan


@lru_cache
def _shapes(depth: int) -> st.SearchStrategy[Plan]:
    """Return the plans of a depth; made once, because making strategies costs more than using."""
    if depth == 0:
        return _leaf()
    joins = [_join(depth), _join(depth)]
    others = [_aggregate(depth), _distinct(depth), _union(depth), _fixpoint(depth)]
    return st.one_of(_leaf(), _filter(depth), _project(depth), *joins, *others)


@st.composite
def _leaf(draw: st.DrawFn) -> Plan:
    scan: Scan = draw(st.sampled_from(STREAMS + TABLES))
    if scan in TABLES:
        return scan
    kind = draw(st.sampled_from([None, WindowKind.RANGE, WindowKind.ROWS, WindowKind.UNBOUNDED]))
    match kind:
        case None:
            return scan
        case WindowKind.RANGE:
            return Window(scan, kind, draw(st.integers(1, NOW)))
        case WindowKind.ROWS:
            columns = st.sampled_from(range(len(scan.schema)))
            partition = tuple(draw(st.lists(columns, max_size=2, unique=True)))
            return Window(scan, kind, draw(st.integers(1, 3)), partition=partition)
        case _:
            return Window(scan, kind)


def _column(plan: Plan, position: int) -> Column:
    field = plan.schema.fields[position]
    return Column(position, field.name, field.dtype)


@st.composite
def _predicate(draw: st.DrawFn, plan: Plan) -> Expression:
    count = draw(st.integers(1, 2))
    parts = [draw(_comparison(plan)) for _ in range(count)]
    if count == 1:
        return parts[0]
    return Call(draw(st.sampled_from(["AND", "AND", "OR"])), tuple(parts), BOOLEAN)


@st.composite
def _comparison(draw: st.DrawFn, plan: Plan) -> Expression:
    left = _column(plan, draw(st.integers(0, len(plan.schema) - 1)))
    same = [i for i, f in enumerate(plan.schema.fields) if f.dtype == left.dtype]
    shape = draw(st.sampled_from(["literal", "column", "null", "constant"]))
    match shape:
        case "column":
            right: Expression = _column(plan, draw(st.sampled_from(same)))
            return Call(draw(st.sampled_from(["=", "=", "<"])), (left, right), BOOLEAN)
        case "null":
            return Call(draw(st.sampled_from(["IS NULL", "IS NOT NULL"])), (left,), BOOLEAN)
        case "constant":
            one = Literal(1, INTEGER)
            other = Literal(draw(st.sampled_from([1, 2])), INTEGER)
            return Call("=", (one, other), BOOLEAN)
        case _:
            value = "b" if left.dtype == TEXT else 1
            literal = Literal(value, left.dtype)
            return Call(draw(st.sampled_from(["=", "<>", "<"])), (left, literal), BOOLEAN)


@st.composite
def _filter(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    return Filter(child, draw(_predicate(child)))


@st.composite
def _project(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    positions = draw(st.lists(st.integers(0, len(child.schema) - 1), min_size=1, max_size=4))
    expressions: list[Expression] = []
    for position in positions:
        column = _column(child, position)
        if column.dtype == INTEGER and draw(st.booleans()):
            expressions.append(Call("+", (column, Literal(1, INTEGER)), INTEGER))
        else:
            expressions.append(column)
    names = tuple(f"c{i}" for i in range(len(expressions)))
    return Project(child, tuple(expressions), names)


@st.composite
def _join(draw: st.DrawFn, depth: int) -> Plan:
    left, right = draw(_plan(depth - 1)), draw(_plan(depth - 1))
    if len(left.schema) + len(right.schema) > 12:
        return left
    pairs = _key_pairs(left, right)
    keys = tuple(draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True))) if pairs else ()
    kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.INNER, JoinKind.LEFT]))
    join = Join(left, right, kind, keys)
    if draw(st.booleans()):
        return Join(left, right, kind, keys, draw(_predicate(join)))
    return Filter(join, draw(_predicate(join))) if draw(st.booleans()) else join


@st.composite
def _aggregate(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    columns = st.sampled_from(range(len(child.schema)))
    group = tuple(draw(st.lists(columns, max_size=2, unique=True)))
    calls = [AggregateCall(AggregateFunction.COUNT_ALL, (), "n")]
    numbers = [i for i, f in enumerate(child.schema.fields) if f.dtype == INTEGER]
    if numbers:
        argument = _column(child, draw(st.sampled_from(numbers)))
        function = draw(st.sampled_from([AggregateFunction.SUM, AggregateFunction.MIN]))
        calls.append(AggregateCall(function, (argument,), "v"))
    return Aggregate(child, group, tuple(calls))


@st.composite
def _distinct(draw: st.DrawFn, depth: int) -> Plan:
    return Distinct(draw(_plan(depth - 1)))


@st.composite
def _union(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    values = st.tuples(*(_NAMES if f.dtype == TEXT else _NUMBERS for f in child.schema.fields))
    if any(f.dtype not in (TEXT, INTEGER) for f in child.schema.fields):
        return UnionAll((child, child))
    shape = draw(st.sampled_from(["same", "values", "other"]))
    if shape == "same":
        return UnionAll((child, child))
    if shape == "values":
        rows = tuple(draw(st.lists(values, max_size=2)))
        return UnionAll((child, Values(rows, child.schema)))
    other = draw(_plan(depth - 1))
    picked = [
        next((i for i, g in enumerate(other.schema.fields) if g.dtype == f.dtype), None)
        for f in child.schema.fields
    ]
    expressions = tuple(
        Literal(None, f.dtype) if p is None else _column(other, p)
        for p, f in zip(picked, child.schema.fields, strict=True)
    )
    return UnionAll((child, Project(other, expressions, child.schema.names)))


@st.composite
def _fixpoint(draw: st.DrawFn, depth: int) -> Plan:
    """Reachability over the first and the last TEXT column of any plan."""
    child = draw(_plan(min(depth - 1, 2)))
    texts = [i for i, f in enumerate(child.schema.fields) if f.dtype == TEXT]
    if not texts:
        return child
    ends = (_column(child, texts[0]), _column(child, texts[-1]))
    edges = Project(child, ends, ("src", "dst"))
    columns = edges.schema
    reached = RecursiveReference("reach", columns)
    step = Join(edges, reached, JoinKind.INNER, ((1, 0),))
    made = Project(step, (_column(step, 0), _column(step, 3)), ("src", "dst"))
    return Fixpoint("reach", columns, (edges,), (made,))
