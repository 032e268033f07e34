"""More recursive views written in the algebra, for tests: the shapes that are not plain paths."""

from stream_engine.testing.recursion_programs import INTEGER, LINK, TEXT, column, equals, project
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    AggregateSelection,
    Best,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Project,
    RecursiveReference,
)
from streamsql.data.schema import Schema

_PAIR = (("src", TEXT), ("dst", TEXT))


def _path(
    name: str, base: tuple[Expression, ...], step: tuple[Expression, ...], *bests: Best
) -> Fixpoint:
    """Return paths by links: the head's columns over a link, and over a link and a path."""
    values = tuple((f"value{number}", value.dtype) for number, value in enumerate(base[2:]))
    schema = Schema.of(*_PAIR, *values)
    joined = Join(LINK, RecursiveReference(name, schema), JoinKind.INNER, ((1, 0),))
    return Fixpoint(
        name,
        schema,
        (Project(LINK, base, schema.names),),
        (Project(joined, step, schema.names),),
        selection=AggregateSelection(group=(0, 1), bests=bests),
    )


def _integer(position: int) -> Column:
    return Column(position, "", INTEGER)


_BASE = (column(LINK, "src"), column(LINK, "dst"))
_STEP = (Column(0, "src", TEXT), Column(4, "dst", TEXT))


def widest_path() -> Fixpoint:
    """Return the width of the widest path between pairs of nodes: MAX of LEAST."""
    width = Call("LEAST", (_integer(2), _integer(5)), INTEGER)
    return _path("widest", (*_BASE, _integer(2)), (*_STEP, width), Best(2, minimum=False))


def extreme_label(*, minimum: bool) -> Fixpoint:
    """Return the least or greatest label on any walk between pairs of nodes: MIN or MAX of TEXT.

    The labels are given in place of the links' costs.
    """
    label, rest = Column(2, "", TEXT), Column(5, "", TEXT)
    value = Call("LEAST" if minimum else "GREATEST", (label, rest), TEXT)
    name = "least" if minimum else "greatest"
    return _path(name, (*_BASE, label), (*_STEP, value), Best(2, minimum=minimum))


def cheapest_and_shortest() -> Fixpoint:
    """Return paths that are cheapest or have the fewest hops, with both values (digest Q3)."""
    cost = Call("+", (_integer(2), _integer(5)), INTEGER)
    hops = Call("+", (_integer(6), Literal(1, INTEGER)), INTEGER)
    base = (*_BASE, _integer(2), Literal(1, INTEGER))
    return _path("both", base, (*_STEP, cost, hops), Best(2), Best(3))


def same_generation() -> Fixpoint:
    """Return pairs of nodes equally far below a common one; links lead from parent to child."""
    schema = Schema.of(*_PAIR)
    reference = RecursiveReference("same", schema)
    siblings = Join(LINK, LINK, JoinKind.INNER, ((0, 0),))
    base = project(siblings, src=Column(1, "", TEXT), dst=Column(4, "", TEXT))
    left = Join(LINK, reference, JoinKind.INNER, ((0, 0),))
    both = Join(left, LINK, JoinKind.INNER, ((4, 0),))
    step = project(both, src=Column(1, "", TEXT), dst=Column(6, "", TEXT))
    return Fixpoint("same", schema, (base,), (step,))


def odd_and_even() -> Fixpoint:
    """Return pairs of nodes connected in an odd and in an even number of hops, tagged."""
    schema = Schema.of(("tag", TEXT), *_PAIR)
    reference = RecursiveReference("walks", schema)

    def tagged(tag: str, other: str) -> Project:
        here = Filter(reference, equals(Column(0, "tag", TEXT), Literal(other, TEXT)))
        joined = Join(LINK, here, JoinKind.INNER, ((1, 1),))
        head = (Literal(tag, TEXT), Column(0, "src", TEXT), Column(5, "dst", TEXT))
        return Project(joined, head, schema.names)

    base = Project(LINK, (Literal("odd", TEXT), *_BASE), schema.names)
    return Fixpoint("walks", schema, (base,), (tagged("odd", "even"), tagged("even", "odd")))
