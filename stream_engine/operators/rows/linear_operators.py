"""Operators whose output follows from the changed rows alone: selection, projection, bag union."""

from collections.abc import Iterable

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.scalar_functions.scalar import compile_filter, compile_row
from streamsql.data.delta import Delta, from_rows
from streamsql.data.types import Row
from streamsql.errors import InternalError


class FilterOperator(Operator):
    """The rows for which a predicate is TRUE.

    Linear: filter(a + b) = filter(a) + filter(b). State: none. Work: one evaluation a changed row.

        input   {3: 1, 7: 1}    {7: -1}      predicate: > 5
        output  {7: 1}          {7: -1}
    """

    def __init__(self, predicate: Expression) -> None:
        self._kept = compile_filter(predicate)

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        return self._kept(delta)


class ProjectOperator(Operator):
    """One expression per output column, duplicates kept.

    Linear. State: none. Work: one evaluation of each expression a changed row; none where the
    columns only get other names, and no sum where they only get another order.

        input   {(a, 1): 1, (a, 2): 1}    {(a, 2): -1}      first column
        output  {a: 2}                    {a: -1}
    """

    def __init__(self, expressions: tuple[Expression, ...], width: int) -> None:
        """Compile the expressions."""
        columns = tuple(e.position for e in expressions if isinstance(e, Column))
        plain = len(columns) == len(expressions)
        self._row_of = picker(columns) if plain else compile_row(expressions)
        self._is_identity = plain and columns == tuple(range(width))
        self._keeps_rows_apart = plain and set(columns) == set(range(width))
        self._adds_up = False  # whether the last change had rows that became equal

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        if self._is_identity:
            return delta
        row_of = self._row_of
        if self._keeps_rows_apart:
            return dict(zip(map(row_of, delta), delta.values(), strict=True))
        result: Delta = {}
        if not self._adds_up:
            result = dict(zip(map(row_of, delta), delta.values(), strict=True))
            if len(result) == len(delta):
                return result
            result = {}
        get = result.get
        for row, weight in delta.items():
            projected = row_of(row)
            new = get(projected, 0) + weight
            if new:
                result[projected] = new
            else:
                del result[projected]
        self._adds_up = len(result) < len(delta)
        return result


class UnionAllOperator(Operator):
    """The bag sum of its inputs.

    Linear in every input. State: none. Work: none; the circuit adds the changes of the ports.
    """

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        return delta


class ValuesOperator(Operator):
    """A constant relation: everything comes out at the start and nothing ever changes."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = from_rows(rows)

    @override
    def initial(self) -> Delta:
        return self._rows

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        raise InternalError(f"constant rows have no input port {port}; got {len(delta)} rows")

    @override
    def state_rows(self) -> int:
        return len(self._rows)
