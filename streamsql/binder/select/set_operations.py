"""UNION, INTERSECT, EXCEPT and VALUES, and the common column types of their branches."""

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import (
    Distinct,
    Plan,
    Project,
    SetKind,
    SetOperation,
    UnionAll,
    Values,
)
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.binder.aggregation.order_and_limit import extent, output_order, topped
from streamsql.binder.expressions.coercion import converted, unified
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope
from streamsql.binder.names.refused_clauses import only
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType, common_type


def aligned(
    branches: list[Plan], node: exp.Expr, environment: Environment, what: str
) -> list[Plan]:
    """Return the branches with equal types."""
    types = common_types([b.schema.dtypes for b in branches], branches, node, environment, what)
    return [with_types(branch, types) for branch in branches]


def common_types(
    rows: list[tuple[DataType, ...]],
    branches: list[Plan],
    node: exp.Expr,
    environment: Environment,
    what: str,
) -> tuple[DataType, ...]:
    """Return the column types that all branches convert to."""
    first = rows[0]
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(first):
            raise environment.error(
                node,
                f"branch {number} of this {what} has {len(row)} columns, branch 1 has {len(first)}",
                hint=f"branch 1 gives {', '.join(branches[0].schema.names)}",
                code="column_count",
            )
    result: list[DataType] = []
    for position in range(len(first)):
        dtype = DataType.NULL
        for number, row in enumerate(rows, start=1):
            common = common_type(dtype, row[position])
            if common is None:
                name = branches[0].schema.names[position]
                raise environment.type_mismatch(
                    node,
                    f"column {name!r} of this {what} is {dtype} in one branch and "
                    f"{row[position]} in branch {number}",
                    f"CAST(… AS {dtype}) in one of them",
                )
            dtype = common
        result.append(dtype)
    return tuple(result)


def with_types(plan: Plan, types: tuple[DataType, ...]) -> Plan:
    """Return the plan with its columns converted."""
    schema = plan.schema
    if schema.dtypes == types:
        return plan
    if isinstance(plan, Project):
        expressions = tuple(
            converted(e, dtype) for e, dtype in zip(plan.expressions, types, strict=True)
        )
        return Project(plan.input, expressions, plan.names)
    columns: list[Expression] = []
    for position, (field, dtype) in enumerate(zip(schema.fields, types, strict=True)):
        column: Expression = Column(position, field.name, field.dtype)
        if field.dtype == DataType.NULL and dtype != DataType.NULL:
            column = Literal(None, dtype)
        columns.append(converted(column, dtype))
    return Project(plan, tuple(columns), schema.names)


_CLAUSES = ("this", "expression", "distinct", "with_", "limit", "offset")


def bind_set_operation(tree: exp.Expr, environment: Environment) -> Plan:
    """Return the plan of a set operation.

    INTERSECT binds stronger than UNION and EXCEPT, which are taken from left to right; the parser
    has seen to that.
    """
    has_extent = tree.args.get("limit") is not None or tree.args.get("offset") is not None
    only(tree, environment, *_CLAUSES, *(("order",) if has_extent else ()))
    branches = [environment.plan_of(tree.this), environment.plan_of(tree.expression)]
    plan = with_extent(_combined(branches, tree, environment), tree, environment)
    environment.binding.note_doubled(plan, environment.binding.doubled_of(branches[0]))
    return plan


def _combined(branches: list[Plan], tree: exp.Expr, environment: Environment) -> Plan:
    distinct = bool(tree.args.get("distinct"))
    if isinstance(tree, exp.Union):
        return _union(branches, tree, environment, distinct=distinct)
    kind = SetKind.INTERSECT if isinstance(tree, exp.Intersect) else SetKind.EXCEPT
    left, right = aligned(branches, tree, environment, kind.value)
    return SetOperation(left, right, kind, not distinct)


def with_extent(plan: Plan, tree: exp.Expr, environment: Environment) -> Plan:
    """Return the rows that ORDER BY, LIMIT and OFFSET behind a whole query leave."""
    window = extent(tree, environment)
    if window is None:
        if tree.args.get("order") is not None:
            only(tree, environment, "this", "expression", "distinct", "with_", "alias")
        return plan
    return topped(plan, output_order(tree, plan.schema, environment), window)


def _union(
    branches: list[Plan], tree: exp.Union, environment: Environment, *, distinct: bool
) -> Plan:
    flat: list[Plan] = []
    for branch in branches:
        flat += _absorbed(branch, distinct=distinct)
    union = UnionAll(tuple(aligned(flat, tree, environment, "UNION")))
    return Distinct(union) if distinct else union


def _absorbed(plan: Plan, *, distinct: bool) -> list[Plan]:
    """Merge a union below a union where that does not change the answer."""
    if distinct and isinstance(plan, Distinct) and isinstance(plan.input, UnionAll):
        return list(plan.input.branches)
    return list(plan.branches) if isinstance(plan, UnionAll) else [plan]


MAX_ROWS = 10_000


def bind_values(node: exp.Values, environment: Environment) -> Plan:
    """Return the rows of VALUES with columns `column1`, `column2` and so on."""
    only(node, environment, "expressions", "alias")
    trees = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    if not trees or not trees[0]:
        raise environment.error(
            node, "VALUES needs rows", hint="VALUES (1, 'a'), (2, 'b')", code="column_count"
        )
    if len(trees) > MAX_ROWS:
        raise environment.unsupported(
            node,
            f"more than {MAX_ROWS} rows of VALUES",
            hint="load them into a table",
            code="limit_exceeded",
        )
    width = len(trees[0])
    for written, row in zip(node.expressions, trees, strict=True):
        if len(row) != width:
            raise environment.error(
                written,
                f"this row has {len(row)} values, the first one {width}",
                hint="write NULL for a missing value",
                code="column_count",
            )
    binder = ExpressionBinder(environment.without_outer("and VALUES cannot read it"), Scope())
    bound = [[binder.bind(value) for value in row] for row in trees]
    columns = [
        unified([row[n] for row in bound], trees[0][n], environment, f"column {n + 1} of VALUES")
        for n in range(width)
    ]
    schema = Schema(
        tuple(Field(f"column{n + 1}", column[0].dtype) for n, column in enumerate(columns))
    )
    values = [[compile_expression(e)(()) for e in column] for column in columns]
    return Values(tuple(zip(*values, strict=True)), schema)
