"""Branches of a UNION or a recursion under one list of types."""

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import Plan, Project
from streamsql.binder.expressions.coercion import converted
from streamsql.binder.names.environment import Environment
from streamsql.data.types import DataType, common_type


def aligned(
    branches: list[Plan], node: exp.Expr, environment: Environment, what: str
) -> list[Plan]:
    """Return the branches with equal types.

    Raises:
        BindingError: They have different numbers of columns, or types without a common one.
    """
    types = common_types([b.schema.dtypes for b in branches], branches, node, environment, what)
    return [with_types(branch, types) for branch in branches]


def common_types(
    rows: list[tuple[DataType, ...]],
    branches: list[Plan],
    node: exp.Expr,
    environment: Environment,
    what: str,
) -> tuple[DataType, ...]:
    """Return the column types that all branches convert to.

    Raises:
        BindingError: There are none.
    """
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
                raise environment.error(
                    node,
                    f"column {name!r} of this {what} is {dtype} in one branch and "
                    f"{row[position]} in branch {number}",
                    hint=f"CAST(… AS {dtype}) in one of them",
                    code="type_mismatch",
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
