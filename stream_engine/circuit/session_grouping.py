"""Groupings of session windows that run as one operator."""

from dataclasses import dataclass

from msgspec.structs import replace

from stream_engine.circuit.nodes import Wiring
from stream_engine.operators.sessions.session_cells import SessionGroups
from streamsql.algebra.explain import describe
from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns
from streamsql.algebra.operators import Aggregate, Filter, Plan, Project, SessionWindow


@dataclass(slots=True)
class SessionWiring(Wiring):
    """The wiring of a node of a grouping and its session window."""

    window: str = ""

    def label(self) -> str:
        """Return what EXPLAIN writes for the grouping and for the window."""
        return f"{Wiring.label(self)} of {self.window}"


def session_groups(plan: Aggregate) -> tuple[SessionGroups, SessionWindow] | None:
    """Return the groups of a session window as one step, or None where it has to stay two.

    Projections and filters between the two are included. The groups must be parts of one session
    each: all columns of the partition, and the start or the end, are grouped by. Nothing else may
    read the bounds; an aggregate of them would change with every row after all.

    A window that another operator reads is kept as well: a group that follows its session is worth
    more than a window that is kept once.
    """
    below = _below(plan.input)
    if below is None:
        return None
    window, columns, predicates = below
    width = len(window.input.schema)
    group = [columns[position] for position in plan.group]
    outer: dict[int, int] = {}  # place in (*partition, start, end) by column of the window
    for place, position in enumerate((*window.partition, width, width + 1)):
        outer.setdefault(position, place)
    inner: list[Expression] = []
    places: list[tuple[bool, int]] = []
    for expression in group:
        if isinstance(expression, Column) and expression.position in outer:
            places.append((True, outer[expression.position]))
        else:
            places.append((False, len(inner)))
            inner.append(expression)
    grouped = {expression.position for expression in group if isinstance(expression, Column)}
    if not (grouped >= {*window.partition} and grouped & {width, width + 1}):
        return None
    calls = tuple(
        replace(call, arguments=tuple(_over(columns, a) for a in call.arguments))
        for call in plan.aggregates
    )
    read = [*inner, *predicates, *(argument for call in calls for argument in call.arguments)]
    if any(position >= width for expression in read for position in columns_of(expression)):
        return None
    output = tuple(place + len(inner) if is_outer else place for is_outer, place in places)
    spec = SessionGroups(
        window.time,
        window.gap,
        window.partition,
        tuple(inner),
        tuple(predicates),
        calls,
        output,
    )
    return spec, window


def wiring_of(plan: Plan, window: SessionWindow) -> SessionWiring:
    """Return the wiring of a node that stands for both."""
    return SessionWiring(plan, window=describe(window))


def _below(plan: Plan) -> tuple[SessionWindow, list[Expression], list[Expression]] | None:
    """Return the window below a plan, and the plan's columns and filters over the window's."""
    match plan:
        case SessionWindow():
            fields = enumerate(plan.schema.fields)
            return plan, [Column(i, field.name, field.dtype) for i, field in fields], []
        case Project(input=child, expressions=expressions):
            below = _below(child)
            if below is None:
                return None
            window, columns, predicates = below
            return window, [_over(columns, expression) for expression in expressions], predicates
        case Filter(input=child, predicate=predicate):
            below = _below(child)
            if below is None:
                return None
            window, columns, predicates = below
            return window, columns, [*predicates, _over(columns, predicate)]
        case _:
            return None


def _over(columns: list[Expression], expression: Expression) -> Expression:
    """Return an expression over columns as one over what these are made of."""
    return map_columns(expression, lambda column: columns[column.position])
