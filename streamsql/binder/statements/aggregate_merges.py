"""MERGED BY of CREATE AGGREGATE: how results of parts of the rows make the result of all."""

from streamsql.algebra.aggregates import AggregateFunction
from streamsql.data.types import DataType
from streamsql.errors import BindingError
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.statements import CreateFunction, Name

F = AggregateFunction
_TYPES: dict[AggregateFunction, DataType | None] = {
    # Sums of DOUBLE are rounded once, of all values: a sum of rounded parts would differ.
    F.SUM: DataType.INTEGER,
    F.MIN: None,
    F.MAX: None,
    F.BOOL_AND: DataType.BOOLEAN,
    F.BOOL_OR: DataType.BOOLEAN,
}
"""Functions that merge, and of which results; None: of any."""


def merge_of(statement: CreateFunction) -> AggregateFunction | None:
    """Return the function that merges results of parts, USER for the aggregate itself.

    Raises:
        BindingError: The function, or the type of the result, is none that merges.
    """
    written = statement.merged_by
    if written is None:
        return None
    if written.text.casefold() == statement.name.text.casefold():
        return _itself(statement, written)
    known = {function.value: dtype for function, dtype in _TYPES.items()}
    word = written.text.upper()
    if word not in known:
        names = (*known, statement.name.text)
        raise _refused(
            written,
            f"{word} does not merge results of parts",
            did_you_mean(word, known, f"MERGED BY takes one of {', '.join(names)}"),
        )
    wanted = known[word]
    if wanted is not None and statement.result != wanted:
        raise _refused(
            written,
            f"MERGED BY {word} is for results of {wanted}, but {statement.name.text!r} returns "
            f"{statement.result}",
            f"write RETURNS {wanted}, or leave out MERGED BY",
        )
    return F(word)


def _itself(statement: CreateFunction, written: Name) -> AggregateFunction:
    types = [column.dtype for column in statement.parameters]
    name = statement.name.text
    if types != [statement.result]:
        raise _refused(
            written,
            f"{name!r} cannot merge its own results: it does not take one {statement.result}",
            f"name SUM, MIN, MAX, BOOL_AND or BOOL_OR, or write {name}(x {statement.result})",
        )
    if statement.on_null:
        raise _refused(
            written,
            f"{name!r} would be called with NULL for a part without a result",
            "leave out CALLED ON NULL INPUT, or MERGED BY",
        )
    return F.USER


def _refused(written: Name, message: str, hint: str) -> BindingError:
    return BindingError(message, span=written.span, hint=hint, code="bad_merge")
