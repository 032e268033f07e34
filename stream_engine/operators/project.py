"""Projection."""

from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.scalar import compile_row
from streamsql.data.delta import Delta


class ProjectOperator:
    """One expression per output column, duplicates kept.

    Linear. State: none. Work: one evaluation of each expression a changed row.

        input   {(a, 1): 1, (a, 2): 1}    {(a, 2): -1}      first column
        output  {a: 2}                    {a: -1}
    """

    def __init__(self, expressions: tuple[Expression, ...]) -> None:
        columns = tuple(e.position for e in expressions if isinstance(e, Column))
        plain = len(columns) == len(expressions)
        self._row_of = picker(columns) if plain else compile_row(expressions)

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, _port: int, delta: Delta) -> Delta:
        """Return the change of the projected bag."""
        row_of = self._row_of
        result: Delta = {}
        get = result.get
        for row, weight in delta.items():
            projected = row_of(row)
            new = get(projected, 0) + weight
            if new:
                result[projected] = new
            else:
                del result[projected]
        return result

    def state_rows(self) -> int:
        """Return 0."""
        return 0
