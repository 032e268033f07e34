"""Names in a question about rows: the row, base rows to delete, a column of probabilities.

For questions that come as values, through the API; those written as statements are bound by
`streamsql.binder`.
"""

from collections.abc import Sequence

from streamsql.algebra.expressions import literal_text
from streamsql.algebra.operators import Plan
from streamsql.algebra.row_explanations import BaseRow, Chance, sources_of
from streamsql.binder import Deletion, SourceColumn
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import Row, Value, coerce
from streamsql.errors import BindingError


def row_text(schema: Schema, row: Sequence[Value]) -> str:
    """Return `('a', 3)`.

    Examples:
        >>> from streamsql.data.types import DataType
        >>> row_text(Schema.of(("name", DataType.TEXT), ("n", DataType.INTEGER)), ("a", None))
        "('a', NULL)"
    """
    values = (literal_text(v, t) for v, t in zip(row, schema.dtypes, strict=True))
    return f"({', '.join(values)})"


def base_text(base: BaseRow) -> str:
    """Return `link('a', 'b', 1.0)`; when a row with a key was measured is left out."""
    scan = base.scan
    shown = [p for p in range(len(base.row)) if not scan.key or p != scan.time_column]
    columns = scan.columns.select(tuple(shown))
    return f"{scan.source}{row_text(columns, [base.row[p] for p in shown])}"


def given_row(schema: Schema, values: Sequence[object]) -> Row:
    """Return values as a row of a result.

    Raises:
        BindingError: There are too many or too few, or one has another type.
    """
    try:
        return schema.coerce_row(list(values))
    except ValueError as error:
        raise BindingError(
            f"this is not a row of the result: {error}",
            hint=f"write one value per column, in this order: {schema}",
        ) from None


def deletion_of(catalog: Catalog, source: str, values: Sequence[object]) -> Deletion:
    """Return which base rows are meant by a source and values of its key or first columns.

    Raises:
        BindingError: There is no such source, or the values do not fit its columns.
    """
    definition = catalog.find(source)
    if not isinstance(definition, SourceDefinition):
        raise BindingError(
            f"there is no source or table {source!r:.60}",
            hint="SHOW SOURCES and SHOW TABLES list the relations with base rows",
        )
    width = len(definition.schema)
    if not 0 < len(values) <= width:
        raise BindingError(
            f"{len(values)} values for {definition.name} {definition.schema}",
            hint="write the values of its key, or of its first columns",
        )
    is_key = len(values) == len(definition.key)
    positions = definition.key if is_key else tuple(range(len(values)))
    wanted: list[Value] = [None] * (max(positions) + 1)
    for position, value in zip(positions, values, strict=True):
        field = definition.schema.fields[position]
        try:
            wanted[position] = coerce(value, field.dtype)
        except ValueError as error:
            raise BindingError(f"{definition.name}.{field.name}: {error}") from None
    return Deletion(definition, tuple(wanted))


def source_column(catalog: Catalog, plan: Plan, text: str) -> SourceColumn:
    """Return the column that `link.pdr` names.

    Raises:
        BindingError: The plan reads no such source, or it has no such column of numbers.
    """
    read = sources_of(plan)
    source, _, column = (part.strip() for part in text.partition("."))
    definition = catalog.find(source)
    known = isinstance(definition, SourceDefinition) and definition.name in read
    if not isinstance(definition, SourceDefinition) or not known or not column:
        raise BindingError(
            f"{text!r:.60} is not a column of a source that the query reads",
            hint=f"write source.column; the query reads {', '.join(read) or 'none'}",
        )
    for position, field in enumerate(definition.schema.fields):
        if field.name.lower() == column.lower() and field.dtype.is_numeric:
            return SourceColumn(definition, position)
    numbers = [f.name for f in definition.schema.fields if f.dtype.is_numeric]
    raise BindingError(
        f"{definition.name} has no numeric column {column!r:.60}",
        hint=f"its numeric columns are {', '.join(numbers)}"
        if numbers
        else "it has no numeric columns",
    )


def column_text(column: SourceColumn) -> str:
    """Return `link.pdr`."""
    return f"{column.definition.name}.{column.definition.schema.names[column.column]}"


def chance_by(column: SourceColumn) -> Chance:
    """Return the probability of a base row by a column; rows of other sources are certain.

    Asked for a row whose value is none from 0 to 1, the function raises a BindingError.
    """

    def chance(base: BaseRow) -> float | None:
        if base.scan.source != column.definition.name:
            return None
        value = base.row[column.column]
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            what = "no value" if value is None else f"{value}"
            raise BindingError(
                f"{column_text(column)} is {what} in {base_text(base)}; a probability "
                "ranges from 0 to 1",
                hint="name a column whose values are all probabilities",
            )
        return float(value)

    return chance
