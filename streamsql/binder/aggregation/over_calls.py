"""Window functions of a SELECT, and the OverWindow operators that compute them.

Hidden columns of the query hold the arguments, which may contain aggregates of its groups. An
expression around a function is computed over its result.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, map_columns
from streamsql.algebra.operators import (
    AggregateFunction,
    Frame,
    OverWindow,
    Plan,
    SortKey,
    WindowCall,
    WindowFunction,
)
from streamsql.algebra.over_windows import FRAMED_AGGREGATES
from streamsql.binder.aggregation.aggregate_binder import Aggregation
from streamsql.binder.aggregation.aggregate_bodies import expanded_aggregate
from streamsql.binder.aggregation.aggregate_types import check_types
from streamsql.binder.aggregation.order_and_limit import sort_key
from streamsql.binder.aggregation.over_specs import number_of, positive_number, spec_of
from streamsql.binder.expressions.aggregate_calls import Written, is_aggregate, written
from streamsql.binder.expressions.coercion import unified
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope
from streamsql.binder.names.refused_clauses import only, queries_refused

_NUMBERING: dict[type[exp.Expr], WindowFunction] = {
    exp.RowNumber: WindowFunction.ROW_NUMBER,
    exp.Rank: WindowFunction.RANK,
    exp.DenseRank: WindowFunction.DENSE_RANK,
    exp.PercentRank: WindowFunction.PERCENT_RANK,
    exp.CumeDist: WindowFunction.CUME_DIST,
}
_VALUED: dict[type[exp.Expr], WindowFunction] = {
    exp.Lag: WindowFunction.LAG,
    exp.Lead: WindowFunction.LEAD,
    exp.FirstValue: WindowFunction.FIRST_VALUE,
    exp.LastValue: WindowFunction.LAST_VALUE,
}
_HINT = (
    "window functions are ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, "
    "FIRST_VALUE, LAST_VALUE, NTH_VALUE, and COUNT, SUM, AVG, MIN, MAX, ANY_VALUE of single values"
)
Placed = Callable[[exp.Expr], int]


def windows_in(node: exp.Expr) -> Iterator[exp.Window]:
    """Yield the window functions of a tree that are not those of a query inside it."""
    for part in node.walk(prune=lambda n: isinstance(n, exp.Query | exp.Window)):
        if isinstance(part, exp.Window):
            yield part


@dataclass(frozen=True, slots=True)
class Called:
    """The call before OVER, as parsed.

    Attributes:
        function: Which.
        arguments: Of LAG and LEAD the value and the default.
        distance: Of LAG and LEAD.
        aggregate: Which one, of AGGREGATE.
        number: Of NTILE and NTH_VALUE.
        written: Of an aggregate with a body, whose own aggregates have the same OVER.
    """

    function: WindowFunction
    arguments: tuple[exp.Expr, ...] = ()
    distance: int = 1
    aggregate: AggregateFunction | None = None
    number: int = 1
    written: Written | None = None

    @property
    def read(self) -> tuple[exp.Expr, ...]:
        """All that it reads."""
        conditions = () if self.written is None else self.written.conditions
        return (*self.arguments, *conditions)


@dataclass(frozen=True, slots=True)
class Over:
    """One window function.

    Attributes:
        partition: Places of the expressions of PARTITION BY among those of the query.
        order: Keys of ORDER BY, by places.
    """

    node: exp.Window
    call: Called
    frame: Frame
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]


def over_of(node: exp.Window, select: exp.Select, environment: Environment, placed: Placed) -> Over:
    """Return a window function, with what it reads added to the query.

    `placed` gives an expression its place among those that the query computes.
    """
    refuse = queries_refused(environment, "a window function")
    for part in node.walk():
        refuse(part)
        if isinstance(part, exp.Window) and part is not node:
            raise environment.error(
                part,
                "a window function is not allowed inside a window function",
                hint="compute the inner one in a query in FROM",
                code="nested_aggregate",
            )
    spec = spec_of(node, select, environment)
    call = _written(node, environment)
    for part in call.read:
        place_parts(part, placed, environment)
    return Over(
        node,
        call,
        spec.frame,
        tuple(map(placed, spec.partition)),
        tuple(sort_key(key, placed(key.this)) for key in spec.order),
    )


def place_parts(node: exp.Expr, placed: Placed, environment: Environment) -> None:
    """Add the largest parts of an expression without window functions to the query."""
    if isinstance(node, exp.Window):
        return
    if next(windows_in(node), None) is None:
        if _reads(node, environment):
            placed(node)
        return
    for part in node.iter_expressions():
        place_parts(part, placed, environment)


def _reads(node: exp.Expr, environment: Environment) -> bool:
    """Whether an expression has to be computed from rows."""
    return any(
        isinstance(part, exp.Column | exp.Query | exp.Dot) or is_aggregate(part, environment)
        for part in node.walk()
    )


def _written(node: exp.Window, environment: Environment) -> Called:
    """Return what stands before OVER."""
    call = node.this
    if type(call) in _NUMBERING:
        only(call, environment)
        return Called(_NUMBERING[type(call)])
    if isinstance(call, exp.Ntile):
        only(call, environment, "this")
        number = positive_number(call.this, call, environment, "NTILE(4): four runs of rows")
        return Called(WindowFunction.NTILE, number=number)
    if isinstance(call, exp.NthValue):
        only(call, environment, "this", "offset")
        hint = "NTH_VALUE(x, 2): x of the second row of the frame"
        number = positive_number(call.args.get("offset"), call, environment, hint)
        return Called(WindowFunction.NTH_VALUE, (call.this,), number=number)
    if type(call) in _VALUED:
        only(call, environment, "this", "offset", "default")
        offset = call.args.get("offset")
        distance = 1 if offset is None else number_of(offset, offset, environment)
        default = call.args.get("default")
        return Called(
            _VALUED[type(call)], (call.this, *(() if default is None else (default,))), distance
        )
    return _aggregate(call, node, environment)


def _aggregate(call: exp.Expr, node: exp.Window, environment: Environment) -> Called:
    meant = written(call, environment)
    definition = None if meant is None or meant.distinct else meant.definition
    if meant is not None and definition is not None and definition.body:
        return Called(WindowFunction.AGGREGATE, meant.arguments, written=meant)
    if meant is None or meant.function not in FRAMED_AGGREGATES or meant.distinct:
        what = "DISTINCT" if meant is not None and meant.distinct else call.sql()
        raise environment.unsupported(
            node, f"{what:.60} is not supported before OVER", hint=_HINT, code="unsupported_window"
        )
    if len(meant.arguments) != 1:
        raise environment.wrong_arguments(
            node, f"{meant.function} takes one value", f"{meant.function}(x) OVER (…)"
        )
    (argument,) = meant.arguments
    star = isinstance(argument, exp.Star)
    if star and meant.function != AggregateFunction.COUNT:
        raise environment.wrong_arguments(node, "* is not a value in this place", "name the column")
    if star and not meant.conditions:
        every = AggregateFunction.COUNT_ALL
        return Called(WindowFunction.AGGREGATE, aggregate=every)
    if meant.conditions:
        value = exp.Literal.number(1) if star else argument.copy()
        for condition in meant.conditions:
            value = exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])
            value.meta.update(node.meta)
        argument = value
    return Called(WindowFunction.AGGREGATE, (argument,), aggregate=meant.function)


@dataclass(slots=True)
class OverWindows:
    """Computes the window functions of a query over the rows it computes.

    Attributes:
        overs: The functions, each once.
        place_of: Gives an expression that the rows hold its place, None for another one.
    """

    environment: Environment
    overs: list[Over]
    place_of: Callable[[exp.Expr], int | None]

    def applied(
        self, plan: Plan, positions: dict[int, int], keys: tuple[int, ...]
    ) -> tuple[Plan, ExpressionBinder]:
        """Return the rows with a column per function, and a binder for what is made of them.

        `positions` are those of the places in the rows; `keys` are columns that keep the rows of
        different outer rows apart.
        """
        columns: dict[exp.Expr, Expression] = {}
        fields = plan.schema.fields

        def hook(node: exp.Expr) -> Expression | None:
            if node in columns:
                return columns[node]
            place = self.place_of(node)
            if place is None:
                return None
            position = positions[place]
            return Column(position, fields[position].name, fields[position].dtype)

        binder = ExpressionBinder(self.environment, Scope(), hook)
        together: dict[tuple[tuple[int, ...], tuple[SortKey, ...]], list[Over]] = {}
        for over in self.overs:
            together.setdefault((over.partition, over.order), []).append(over)
        number = 0
        for (partition, order), group in together.items():
            calls: list[WindowCall] = []
            width = len(plan.schema)
            for over in group:
                made, value = self._calls(over, binder)
                first = width + len(calls)
                named = [
                    msgspec.structs.replace(call, name=f"over_{n}")
                    for n, call in enumerate(made, number + 1)
                ]
                number += len(named)
                columns[over.node] = _over_results(value, named, first)
                calls += named
            by = (*keys, *(positions[place] for place in partition))
            sorts = tuple(
                msgspec.structs.replace(key, position=positions[key.position]) for key in order
            )
            plan = OverWindow(plan, by, sorts, tuple(calls))
        return plan, binder

    def _calls(
        self, over: Over, binder: ExpressionBinder
    ) -> tuple[tuple[WindowCall, ...], Expression]:
        """Return the functions that one as written stands for, and its value over theirs."""
        if over.call.written is None or over.call.written.definition is None:
            call = self._call(over, binder)
            return (call,), Column(0, call.name, call.dtype)
        meant, definition = over.call.written, over.call.written.definition
        made = expanded_aggregate(meant, definition, binder, Aggregation)
        for part in made.calls:
            if part.function not in FRAMED_AGGREGATES or part.distinct:
                what = "DISTINCT" if part.distinct else part.function
                raise self.environment.unsupported(
                    over.node,
                    f"{what}, which {definition.name} calls, is not supported before OVER",
                    hint=_HINT,
                    code="unsupported_window",
                )
        every = WindowFunction.AGGREGATE
        return tuple(
            WindowCall(every, part.name, part.arguments, 1, over.frame, part.function)
            for part in made.calls
        ), made.value

    def _call(self, over: Over, binder: ExpressionBinder) -> WindowCall:
        call, node = over.call, over.node
        arguments = [binder.bind(argument) for argument in call.arguments]
        if len(arguments) == 2:
            arguments = unified(arguments, node, self.environment, str(call.function))
        if call.aggregate is not None and arguments:
            check_types(call.aggregate, tuple(arguments), node, self.environment)
        return WindowCall(
            call.function,
            "over",
            tuple(arguments),
            call.distance,
            over.frame,
            call.aggregate,
            call.number,
        )


def _over_results(value: Expression, calls: Sequence[WindowCall], first: int) -> Expression:
    """Return a value over the n-th of some functions over their columns, which begin at `first`."""
    columns = [Column(first + n, call.name, call.dtype) for n, call in enumerate(calls)]
    return map_columns(value, lambda column: columns[column.position])
