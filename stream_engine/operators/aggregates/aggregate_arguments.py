"""The arguments of aggregates, as a row of their own."""

from collections.abc import Callable

from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.scalar import compile_row
from streamsql.data.types import Row


def row_of(expressions: tuple[Expression, ...]) -> Callable[[Row], Row]:
    """Return a function from a row to the row of expressions; columns alone are only picked."""
    columns = tuple(part.position for part in expressions if isinstance(part, Column))
    return picker(columns) if len(columns) == len(expressions) else compile_row(expressions)
