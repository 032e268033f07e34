"""GROUP BY, aggregates and HAVING: the Aggregate operator below a select list."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Plan,
    Project,
    identity_columns,
)
from streamsql.binder.environment import Environment, identifier_text
from streamsql.binder.expressions import ExpressionBinder
from streamsql.binder.scope import Scope
from streamsql.data.types import DataType

_FUNCTIONS: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: AggregateFunction.COUNT,
    exp.Sum: AggregateFunction.SUM,
    exp.Avg: AggregateFunction.AVG,
    exp.Min: AggregateFunction.MIN,
    exp.Max: AggregateFunction.MAX,
    exp.ArgMin: AggregateFunction.ARG_MIN,
    exp.ArgMax: AggregateFunction.ARG_MAX,
}
_ARGUMENTS = ("this", "expression")


def has_aggregate(node: exp.Expr) -> bool:
    """Whether a tree contains an aggregate of its own query."""
    return any(isinstance(part, exp.AggFunc) for part in node.walk())


@dataclass(slots=True)
class Aggregation:
    """Collects the aggregates of one SELECT while its expressions are bound.

    Expressions bound with `hook` read the input row extended by one column per aggregate;
    `finish` builds the operator and `rewrite` turns such expressions into ones over its output.
    """

    environment: Environment
    plan: Plan
    scope: Scope
    group: list[Expression] = field(default_factory=list)
    calls: list[AggregateCall] = field(default_factory=list)

    def hook(self, node: exp.Expr) -> Expression | None:
        """Return the column that stands for an aggregate, or None for another node."""
        function = _FUNCTIONS.get(type(node))
        if function is None:
            return None
        call = self._call(node, function)
        width = len(self.plan.schema)
        for number, known in enumerate(self.calls):
            same = (known.function, known.arguments, known.distinct)
            if same == (call.function, call.arguments, call.distinct):
                return Column(width + number, known.name, known.dtype)
        self.calls.append(call)
        return Column(width + len(self.calls) - 1, call.name, call.dtype)

    def _call(self, node: exp.Expr, function: AggregateFunction) -> AggregateCall:
        distinct, arguments = self._arguments(node, function)
        name = f"{function.value.split('(', maxsplit=1)[0].lower()}_{len(self.calls) + 1}"
        if function == AggregateFunction.COUNT and isinstance(arguments[0], exp.Star):
            if distinct:
                raise self.environment.error(
                    node, "COUNT(DISTINCT *) is not defined", hint="COUNT(DISTINCT column)"
                )
            return AggregateCall(AggregateFunction.COUNT_ALL, (), name)
        binder = ExpressionBinder(self.environment, self.scope, self._refuse_nested)
        bound = tuple(binder.bind(argument) for argument in arguments)
        self._check_types(node, function, bound)
        # Repetitions change neither the smallest nor the largest value.
        distinct = distinct and function not in (AggregateFunction.MIN, AggregateFunction.MAX)
        return AggregateCall(function, bound, name, distinct)

    def _arguments(
        self, node: exp.Expr, function: AggregateFunction
    ) -> tuple[bool, list[exp.Expr]]:
        wanted = 2 if function in (AggregateFunction.ARG_MIN, AggregateFunction.ARG_MAX) else 1
        given = [node.args[key] for key in _ARGUMENTS if node.args.get(key) is not None]
        extra = node.args.get("expressions") or node.args.get("count")
        distinct = False
        if len(given) == 1 and isinstance(given[0], exp.Distinct):
            distinct, given = True, list(given[0].expressions)
        if len(given) != wanted or extra:
            word = function.value
            usage = f"{word}(value, by)" if wanted == 2 else f"{word}(value)"
            hint = f"write {usage}"
            if word in ("MIN", "MAX"):
                hint += "; the smaller or larger of two values is LEAST(a, b) or GREATEST(a, b)"
            raise self.environment.error(
                node, f"{word} takes {'two values' if wanted == 2 else 'one value'}", hint=hint
            )
        return distinct, given

    def _check_types(
        self, node: exp.Expr, function: AggregateFunction, bound: tuple[Expression, ...]
    ) -> None:
        numbers = (DataType.INTEGER, DataType.DOUBLE, DataType.NULL)
        sums = (*numbers, DataType.INTERVAL)
        accepted = {AggregateFunction.SUM: sums, AggregateFunction.AVG: numbers}.get(function)
        if accepted is not None and bound[0].dtype not in accepted:
            raise self.environment.error(
                node,
                f"{function.value} takes numbers, but this is {bound[0].dtype}",
                hint="CAST(… AS DOUBLE), or COUNT to count rows",
            )

    def _refuse_nested(self, node: exp.Expr) -> None:
        if isinstance(node, exp.AggFunc):
            raise self.environment.error(
                node,
                "an aggregate inside an aggregate",
                hint="aggregate a query in FROM: SELECT MAX(n) FROM (SELECT COUNT(*) AS n …) AS q",
            )

    def binder(self) -> ExpressionBinder:
        """Return a binder for expressions that may contain aggregates."""
        return ExpressionBinder(self.environment, self.scope, self.hook)

    def finish(self) -> Plan:
        """Return the Aggregate operator over the input."""
        plan, positions = self.plan, []
        computed = [g for g in self.group if not isinstance(g, Column)]
        if computed:
            schema = plan.schema
            names = (*schema.names, *(f"group_{n + 1}" for n in range(len(computed))))
            plan = Project(plan, (*identity_columns(schema), *computed), names)
        for expression in self.group:
            if isinstance(expression, Column):
                positions.append(expression.position)
            else:
                positions.append(len(self.plan.schema) + computed.index(expression))
        return Aggregate(plan, tuple(positions), tuple(self.calls))

    def rewrite(self, expression: Expression, node: exp.Expr) -> Expression:
        """Return an expression over the Aggregate's output row.

        Raises:
            BindingError: It reads a column that is neither grouped nor aggregated.
        """
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
                and column.find_ancestor(exp.AggFunc) is None
            ),
            node,
        )
        return self.environment.error(
            place,
            f"column {name!r} is neither in GROUP BY nor inside an aggregate",
            hint=f"add {name} to GROUP BY, or write MIN({name}) or COUNT({name})",
        )


GroupTarget = Callable[[exp.Expr], exp.Expr | None]


def group_expressions(
    aggregation: Aggregation, clause: exp.Expr | None, target: GroupTarget
) -> None:
    """Bind the GROUP BY list into the aggregation.

    Args:
        aggregation: Where the group expressions go.
        clause: The GROUP BY, or None.
        target: Returns the select item that a position or an alias means, or None.

    Raises:
        BindingError: An item is an aggregate, or its position does not exist.
    """
    if clause is None:
        return
    for node in clause.expressions:
        meant = target(node)
        chosen = node if meant is None else meant
        if has_aggregate(chosen):
            raise aggregation.environment.error(
                node, "GROUP BY cannot contain an aggregate", hint="put conditions into HAVING"
            )
        bound = ExpressionBinder(aggregation.environment, aggregation.scope).bind(chosen)
        if bound not in aggregation.group:
            aggregation.group.append(bound)
