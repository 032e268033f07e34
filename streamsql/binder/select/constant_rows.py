"""VALUES: constant rows as a relation."""

from sqlglot import exp

from streamsql.algebra.operators import Plan, Values
from streamsql.algebra.scalar import compile_expression
from streamsql.binder.expressions.coercion import unified
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment
from streamsql.binder.names.outer_names import without_outer
from streamsql.binder.names.refused_clauses import only
from streamsql.binder.names.scope import Scope
from streamsql.data.schema import Field, Schema

MAX_ROWS = 10_000


def bind_values(node: exp.Values, environment: Environment) -> Plan:
    """Return the rows of `VALUES (1, 'a'), (2, 'b')` with columns `column1`, `column2` and so on.

    Raises:
        BindingError: Rows have different numbers of values, or values of a column no common type.
    """
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
    binder = ExpressionBinder(without_outer(environment, "and VALUES cannot read it"), Scope())
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
