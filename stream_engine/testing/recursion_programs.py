"""Recursive views written in the algebra, for tests and benchmarks."""

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    AggregateSelection,
    Best,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    Scan,
    SourceKind,
    identity_columns,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

TEXT, DOUBLE, INTEGER = DataType.TEXT, DataType.DOUBLE, DataType.INTEGER

LINK = Scan("link", SourceKind.LINK, Schema.of(("src", TEXT), ("dst", TEXT), ("cost", INTEGER)))
SENSOR = Scan("sensor", SourceKind.TABLE, Schema.of(("id", INTEGER), ("x", DOUBLE), ("y", DOUBLE)))
TRIGGERED = Scan("triggered", SourceKind.STREAM, Schema.of(("id", INTEGER)))
SEED = Scan("seed", SourceKind.TABLE, Schema.of(("region", INTEGER), ("id", INTEGER)))


def column(plan: Plan, name: str, offset: int = 0) -> Column:
    """Return a column of a plan by name, `offset` columns to the right."""
    position = plan.schema.index_of(name)
    return Column(position + offset, name, plan.schema.fields[position].dtype)


def project(plan: Plan, **expressions: Expression) -> Project:
    """Return a projection with named columns."""
    return Project(plan, tuple(expressions.values()), tuple(expressions))


def equals(left: Expression, right: Expression) -> Call:
    """Return left = right."""
    return Call("=", (left, right), DataType.BOOLEAN)


def reachable(limit: int = 1_000_000) -> Fixpoint:
    """Return pairs of nodes connected by directed links (digest Q1)."""
    schema = Schema.of(("src", TEXT), ("dst", TEXT))
    reference = RecursiveReference("reachable", schema)
    base = project(LINK, src=column(LINK, "src"), dst=column(LINK, "dst"))
    pairs = Join(base, reference, JoinKind.INNER, ((1, 0),))
    step = project(pairs, src=Column(0, "src", TEXT), dst=Column(3, "dst", TEXT))
    return Fixpoint("reachable", schema, (base,), (step,), limit=limit)


def cheapest_path(*, limit: int = 1_000_000, via: bool = False) -> Fixpoint:
    """Return the least cost between pairs of nodes; with `via` also the first hop (ties kept)."""
    names = (("src", TEXT), ("dst", TEXT), ("cost", INTEGER), ("via", TEXT))
    schema = Schema.of(*(names if via else names[:3]))
    reference = RecursiveReference("path", schema)
    base = identity_columns(LINK.schema)
    joined = Join(LINK, reference, JoinKind.INNER, ((1, 0),))
    cost = Call("+", (Column(2, "cost", INTEGER), Column(5, "cost", INTEGER)), INTEGER)
    step: tuple[Expression, ...] = (Column(0, "src", TEXT), Column(4, "dst", TEXT), cost)
    if via:
        base += (Column(1, "dst", TEXT),)
        step += (Column(1, "dst", TEXT),)
    return Fixpoint(
        "path",
        schema,
        (Project(LINK, base, schema.names),),
        (Project(joined, step, schema.names),),
        limit=limit,
        selection=AggregateSelection(group=(0, 1), bests=(Best(2),)),
    )


def region(distance: float) -> Fixpoint:
    """Return contiguous regions of triggered sensors (digest Q8, both sensors triggered).

    The step joins four leaves, one of them by distance only.
    """
    schema = Schema.of(("region", INTEGER), ("id", INTEGER))
    reference = RecursiveReference("region", schema)
    seeds = Join(SEED, TRIGGERED, JoinKind.INNER, ((1, 0),))
    base = project(seeds, region=Column(0, "region", INTEGER), id=Column(1, "id", INTEGER))
    here = Join(reference, SENSOR, JoinKind.INNER, ((1, 0),))
    far = Call("DISTANCE", tuple(Column(p, "", DOUBLE) for p in (3, 4, 6, 7)), DOUBLE)
    near = Call("<", (far, Literal(distance, DOUBLE)), DataType.BOOLEAN)
    there = Join(here, SENSOR, JoinKind.INNER, (), near)
    lit = Join(there, TRIGGERED, JoinKind.INNER, ((5, 0),))
    step = project(lit, region=Column(0, "region", INTEGER), id=Column(5, "id", INTEGER))
    return Fixpoint("region", schema, (base,), (step,))


def two_ways() -> Fixpoint:
    """Return nodes reached along links or, at any cost above 2, against them (two step rules)."""
    schema = Schema.of(("start", TEXT), ("node", TEXT))
    reference = RecursiveReference("two_ways", schema)
    start, node = Column(3, "start", TEXT), Column(4, "node", TEXT)
    base = Project(LINK, (column(LINK, "src"), column(LINK, "dst")), schema.names)
    forth = Join(LINK, reference, JoinKind.INNER, ((0, 1),))
    back = Join(LINK, reference, JoinKind.INNER, ((1, 1),))
    dear = Call(">", (Column(2, "cost", INTEGER), Literal(2, INTEGER)), DataType.BOOLEAN)
    steps = (
        project(forth, start=start, node=Column(1, "dst", TEXT)),
        project(Filter(back, dear), start=start, node=Column(0, "src", TEXT)),
        project(Filter(back, equals(node, start)), start=node, node=Column(0, "src", TEXT)),
    )
    return Fixpoint("two_ways", schema, (base,), steps)


def doubling() -> Fixpoint:
    """Return connected pairs by joining the relation with itself: a non-linear recursion."""
    schema = Schema.of(("src", TEXT), ("dst", TEXT))
    reference = RecursiveReference("doubling", schema)
    base = project(LINK, src=column(LINK, "src"), dst=column(LINK, "dst"))
    pairs = Join(reference, reference, JoinKind.INNER, ((1, 0),))
    step = project(pairs, src=Column(0, "src", TEXT), dst=Column(3, "dst", TEXT))
    return Fixpoint("doubling", schema, (base,), (step,))


def doubling_cheapest() -> Fixpoint:
    """Return the least cost between pairs of nodes, non-linear."""
    schema = Schema.of(("src", TEXT), ("dst", TEXT), ("cost", INTEGER))
    reference = RecursiveReference("doubling_cheapest", schema)
    pairs = Join(reference, reference, JoinKind.INNER, ((1, 0),))
    cost = Call("+", (Column(2, "cost", INTEGER), Column(5, "cost", INTEGER)), INTEGER)
    step = (Column(0, "src", TEXT), Column(4, "dst", TEXT), cost)
    return Fixpoint(
        "doubling_cheapest",
        schema,
        (Project(LINK, identity_columns(LINK.schema), schema.names),),
        (Project(pairs, step, schema.names),),
        selection=AggregateSelection(group=(0, 1), bests=(Best(2),)),
    )


def bridged() -> Fixpoint:
    """Return pairs that grow over gaps: two pairs whose inner ends ascend, without an equality."""
    schema = Schema.of(("src", TEXT), ("dst", TEXT))
    reference = RecursiveReference("bridged", schema)
    dear = Call(">", (Column(2, "cost", INTEGER), Literal(2, INTEGER)), DataType.BOOLEAN)
    links = Filter(LINK, dear)
    base = Project(links, (column(LINK, "src"), column(LINK, "dst")), schema.names)
    gap = Call("<", (Column(1, "dst", TEXT), Column(2, "src", TEXT)), DataType.BOOLEAN)
    pairs = Join(reference, reference, JoinKind.INNER, (), gap)
    step = project(pairs, src=Column(0, "src", TEXT), dst=Column(3, "dst", TEXT))
    return Fixpoint("bridged", schema, (base,), (step,))


def odd_and_even() -> Fixpoint:
    """Return pairs connected by walks of odd and of even length: mutual recursion, and non-linear.

    The first column says which relation a row belongs to. Odd walks grow by a link in front, even
    ones are two odd ones, or an even and a dear link behind.
    """
    schema = Schema.of(("relation", TEXT), ("src", TEXT), ("dst", TEXT))
    reference = RecursiveReference("odd_and_even", schema)

    def relation(name: str) -> Plan:
        is_it = equals(Column(0, "relation", TEXT), Literal(name, TEXT))
        return Filter(reference, is_it)

    def tagged(name: str, plan: Plan, src: int, dst: int) -> Project:
        columns = (Literal(name, TEXT), Column(src, "src", TEXT), Column(dst, "dst", TEXT))
        return Project(plan, columns, schema.names)

    dear = Call(">", (Column(5, "cost", INTEGER), Literal(2, INTEGER)), DataType.BOOLEAN)
    base = tagged("odd", LINK, 0, 1)
    steps = (
        tagged("odd", Join(LINK, relation("even"), JoinKind.INNER, ((1, 1),)), 0, 5),
        tagged("even", Join(relation("odd"), relation("odd"), JoinKind.INNER, ((2, 1),)), 1, 5),
        tagged(
            "odd",
            Filter(Join(relation("even"), LINK, JoinKind.INNER, ((2, 0),)), dear),
            1,
            4,
        ),
    )
    return Fixpoint("odd_and_even", schema, (base,), steps)
