"""GROUP BY, aggregates and HAVING: the Aggregate operator below a select list."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET
from sqlglot import exp

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    map_columns,
)
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Plan,
    Project,
    identity_columns,
)
from streamsql.binder.aggregation.aggregate_bodies import expanded_aggregate
from streamsql.binder.aggregation.aggregate_types import (
    IDEMPOTENT,
    check_types,
    combined,
    fraction,
    readable,
    separator,
)
from streamsql.binder.aggregation.grouping_sets import Bits, levels_of, together, united
from streamsql.binder.aggregation.select_items import SelectItem
from streamsql.binder.expressions.aggregate_calls import Written, is_aggregate, written
from streamsql.binder.expressions.conditions import filtered
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.expressions.function_calls import checked_arguments, implementation_of
from streamsql.binder.names.environment import Environment, Scope, identifier_text
from streamsql.binder.names.outer_names import owner_of
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.types import DataType

_TWO_VALUES = (AggregateFunction.ARG_MIN, AggregateFunction.ARG_MAX)


def has_aggregate(node: exp.Expr, environment: Environment) -> bool:
    """Whether a tree contains an aggregate of its own query."""
    select = node.find_ancestor(exp.Select)
    return any(
        is_aggregate(part, environment) and not _is_over(part) and owner_of(part) is select
        for part in node.walk()
    )


def _is_over(node: exp.Expr) -> bool:
    """Whether an aggregate stands before OVER."""
    while isinstance(node.parent, exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
        if node.parent.this is not node:
            return False
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.parent.this is node


@dataclass(slots=True)
class Aggregation:
    """Collects the aggregates of one SELECT while its expressions are bound.

    Expressions bound with `hook` read the input row extended by one column per aggregate;
    `finish` builds the operator and `rewrite` turns such expressions into ones over its output.

    Attributes:
        levels: Of GROUPING SETS, ROLLUP and CUBE: per level its places in `group`.
        grouping: Calls that stand for GROUPING(…); see `grouping_sets`.
    """

    environment: Environment
    plan: Plan
    scope: Scope
    group: list[Expression] = field(default_factory=list)
    calls: list[AggregateCall] = field(default_factory=list)
    levels: tuple[tuple[int, ...], ...] | None = None
    grouping: Bits = field(default_factory=dict)
    _numbers: dict[bytes, int] = field(default_factory=dict)

    def hook(self, node: exp.Expr) -> Expression | None:
        """Return what stands for an aggregate, or None for another node.

        It is a column, or of an aggregate with a body an expression over columns.
        """
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        call = written(node, self.environment)
        if call is None:
            return None
        if call.definition is not None and call.definition.body:
            return self._expanded(call, call.definition)
        return self._column(self._call(call))

    def _column(self, bound: AggregateCall) -> Column:
        # By its bytes: calls of aggregates with a body may be thousands.
        said = msgspec.msgpack.encode(msgspec.structs.replace(bound, name=""))
        if said not in self._numbers:
            self._numbers[said] = len(self.calls)
            self.calls.append(bound)
        number = self._numbers[said]
        return Column(len(self.plan.schema) + number, self.calls[number].name, bound.dtype)

    def group_all(self, items: list[SelectItem]) -> None:
        """Group by what GROUP BY ALL means: the items without aggregates and window functions.

        Constants are the same in every group anyway. So are subqueries, if what they read is
        grouped by.
        """
        binder = ExpressionBinder(self.environment, self.scope)
        for item in items:
            is_computed = has_aggregate(item.node, self.environment) or any(
                isinstance(part, exp.Window | exp.Query) for part in item.node.walk()
            )
            if is_computed:
                continue
            bound = item.column or binder.bind(item.node)
            if columns_of(bound) and bound not in self.group:
                self.group.append(bound)

    def _grouping(self, node: exp.Grouping) -> Expression:
        """Return the column of GROUPING(a, …)."""
        binder = ExpressionBinder(self.environment, self.scope)
        bound = [binder.bind(argument) for argument in node.expressions]
        if self.levels is None or not bound or any(value not in self.group for value in bound):
            raise self.environment.wrong_arguments(
                node,
                "GROUPING takes values of the GROUP BY around it",
                "SELECT a, GROUPING(a) … GROUP BY ROLLUP (a)",
            )
        number = len(self.calls)
        self.grouping[number] = tuple(map(self.group.index, bound))
        nothing = (Literal(None, DataType.INTEGER),)
        self.calls.append(AggregateCall(AggregateFunction.MIN, nothing, f"grouping_{number + 1}"))
        return Column(len(self.plan.schema) + number, f"grouping_{number + 1}", DataType.INTEGER)

    def _expanded(self, call: Written, definition: FunctionDefinition) -> Expression:
        """Return the body of an aggregate over the columns of its own aggregates."""
        binder = ExpressionBinder(self.environment, self.scope, self._refuse_nested)
        made = expanded_aggregate(call, definition, binder, Aggregation)
        columns = [
            self._column(
                part
                if part.function == AggregateFunction.USER
                else msgspec.structs.replace(part, name=self._name(part.function))
            )
            for part in made.calls
        ]
        return map_columns(made.value, lambda column: columns[column.position])

    def _name(self, function: AggregateFunction) -> str:
        return f"{function.value.split('(', maxsplit=1)[0].lower()}_{len(self.calls) + 1}"

    def _call(self, call: Written) -> AggregateCall:
        function, node = call.function, call.node
        name = self._name(function)
        binder = ExpressionBinder(self.environment, self.scope, self._refuse_nested)
        condition = conjunction([binder.predicate(c, "FILTER (WHERE …)") for c in call.conditions])
        star = call.arguments[:1] and isinstance(call.arguments[0], exp.Star)
        if function == AggregateFunction.COUNT and star:
            return self._count_rows(call, condition, name)
        self._check_number(call)
        bound = tuple(binder.bind(argument) for argument in call.arguments)
        if call.definition is not None:
            return self._user_call(call, call.definition, bound, condition)
        check_types(function, bound, node, self.environment)
        if function == AggregateFunction.COUNT and len(bound) > 1:
            bound = (combined(bound),)
        bound = readable(function, bound)
        # ARG_MIN and ARG_MAX skip rows without the value they compare by, all others rows without
        # their only value.
        bound = (*bound[:-1], filtered(condition, bound[-1]))
        distinct = call.distinct and function not in IDEMPOTENT
        parameter = None
        if function in (AggregateFunction.PERCENTILE_CONT, AggregateFunction.PERCENTILE_DISC):
            parameter = fraction(call, binder)
        return AggregateCall(
            function,
            bound,
            name,
            distinct,
            parameter,
            descending=call.descending and function == AggregateFunction.PERCENTILE_DISC,
            separator=separator(call, binder) if function == AggregateFunction.STRING_AGG else "",
        )

    def _user_call(
        self,
        call: Written,
        definition: FunctionDefinition,
        arguments: tuple[Expression, ...],
        condition: Expression | None,
    ) -> AggregateCall:
        bound = checked_arguments(definition, arguments, call.node, self.environment)
        if condition is not None and definition.on_null:
            raise self.environment.unsupported(
                call.node,
                f"{definition.name} accepts NULLs, so FILTER cannot skip rows",
                hint="filter in WHERE, or in a query in FROM",
                code="unsupported_aggregate",
            )
        return AggregateCall(
            call.function,
            (filtered(condition, bound[0]), *bound[1:]),
            definition.name,
            call.distinct,
            implementation=implementation_of(definition),
            result=definition.result,
            merged_by=UNSET if definition.merged_by is None else definition.merged_by,
        )

    def _count_rows(self, call: Written, condition: Expression | None, name: str) -> AggregateCall:
        if call.distinct:
            raise self.environment.wrong_arguments(
                call.node, "COUNT(DISTINCT *) is not defined", "COUNT(DISTINCT column)"
            )
        if condition is None:
            return AggregateCall(AggregateFunction.COUNT_ALL, (), name)
        one = filtered(condition, Literal(1, DataType.INTEGER))
        return AggregateCall(AggregateFunction.COUNT, (one,), name)

    def _check_number(self, call: Written) -> None:
        function, given = call.function, len(call.arguments)
        if call.definition is not None:
            return
        wanted = 2 if function in _TWO_VALUES else 1
        combination = function == AggregateFunction.COUNT and call.distinct
        if given == wanted or (combination and given > 1):
            return
        word = function.value
        hint = f"write {word}(value, by)" if wanted == 2 else f"write {word}(value)"
        if word in ("MIN", "MAX"):
            hint += "; the smaller or larger of two values is LEAST(a, b) or GREATEST(a, b)"
        if word == "COUNT":
            hint = "write COUNT(*), COUNT(value) or COUNT(DISTINCT a, b)"
        raise self.environment.wrong_arguments(
            call.node, f"{word} takes {'two values' if wanted == 2 else 'one value'}", hint
        )

    def _refuse_nested(self, node: exp.Expr) -> None:
        if is_aggregate(node, self.environment):
            raise self.environment.error(
                node,
                "an aggregate is not allowed inside an aggregate",
                hint="aggregate a query in FROM: SELECT MAX(n) FROM (SELECT COUNT(*) AS n …) AS q",
                code="nested_aggregate",
            )

    def finish(self) -> Plan:
        """Return the Aggregate operator over the input."""
        plan, schema = self.plan, self.plan.schema
        computed = [g for g in self.group if not isinstance(g, Column)]
        if computed:
            names = (*schema.names, *(f"group_{n + 1}" for n in range(len(computed))))
            plan = Project(plan, (*identity_columns(schema), *computed), names)
        group = tuple(
            g.position if isinstance(g, Column) else len(schema) + computed.index(g)
            for g in self.group
        )
        if self.levels is not None:
            return united(plan, group, tuple(self.calls), self.levels, self.grouping)
        return Aggregate(plan, group, tuple(self.calls))

    def rewrite(self, expression: Expression, node: exp.Expr) -> Expression:
        """Return an expression over the Aggregate's output row."""
        if expression in self.group:
            position = self.group.index(expression)
            name = expression.name if isinstance(expression, Column) else f"group_{position + 1}"
            return Column(position, name, expression.dtype)
        match expression:
            case Column(position=position, name=name, dtype=dtype):
                width = len(self.plan.schema)
                if position >= width:
                    return Column(len(self.group) + position - width, name, dtype)
                raise self._not_grouped(name, node)
            case Call(function=function, arguments=arguments, dtype=dtype):
                parts = tuple(self.rewrite(argument, node) for argument in arguments)
                return Call(function, parts, dtype)
            case _:
                return expression

    def _not_grouped(self, name: str, node: exp.Expr) -> Exception:
        bare = name.rsplit(".", maxsplit=1)[-1]
        place = next(
            (
                column
                for column in node.find_all(exp.Column)
                if not isinstance(column.this, exp.Star)
                and identifier_text(column.this) == bare
                and column.find_ancestor(exp.AggFunc, exp.WithinGroup) is None
            ),
            node,
        )
        return self.environment.error(
            place,
            f"column {name!r} is neither in GROUP BY nor inside an aggregate",
            hint=f"add {name} to GROUP BY, or write MIN({name}) or COUNT({name})",
            code="not_grouped",
        )


GroupTarget = Callable[[exp.Expr], exp.Expr | None]


def group_expressions(
    aggregation: Aggregation, clause: exp.Expr | None, target: GroupTarget
) -> None:
    """Bind the GROUP BY list into the aggregation.

    `target` returns the select item that a position or an alias means, or None.
    """
    if clause is None:
        return
    if not any(clause.args.values()):
        raise aggregation.environment.error(
            clause,
            "GROUP BY has no columns",
            hint="GROUP BY column, or leave GROUP BY out for one group of all rows",
            code="unexpected_end",
        )
    levels = levels_of(clause, aggregation.environment)
    if levels is None:
        for node in clause.expressions:
            for part in together(node):
                _place(aggregation, part, target)
        return
    if aggregation.group:
        raise aggregation.environment.unsupported(
            clause,
            "GROUPING SETS, ROLLUP and CUBE are not supported in a correlated subquery",
            hint="group in a query in FROM and compare its columns",
            code="unsupported_subquery",
        )
    aggregation.levels = tuple(
        tuple(_place(aggregation, node, target) for node in level) for level in levels
    )


def _place(aggregation: Aggregation, node: exp.Expr, target: GroupTarget) -> int:
    """Return the place of a value in the group, where it is put if it is not there yet."""
    meant = target(node)
    chosen = node if meant is None else meant
    if has_aggregate(chosen, aggregation.environment):
        raise aggregation.environment.error(
            node,
            "GROUP BY cannot contain an aggregate",
            hint="put conditions into HAVING",
            code="misplaced_aggregate",
        )
    bound = ExpressionBinder(aggregation.environment, aggregation.scope).bind(chosen)
    if bound not in aggregation.group:
        aggregation.group.append(bound)
    return aggregation.group.index(bound)
