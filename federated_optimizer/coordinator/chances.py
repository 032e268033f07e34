"""What a question about rows names: base rows to delete, and columns that hold probabilities."""

from collections.abc import Callable, Sequence

from federated_optimizer.coordinator.explanations import BaseRow, Chance, Leaf
from streamsql.algebra.explain import describe
from streamsql.algebra.expressions import literal_text
from streamsql.algebra.operators import Scan, Window
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import Row, Value, coerce
from streamsql.errors import BindingError

Chosen = Callable[[str, Row], bool]
"""Whether a row of a source is meant."""


def row_text(schema: Schema, row: Sequence[Value]) -> str:
    """Return `('a', 3)`.

    Examples:
        >>> from streamsql.data.types import DataType
        >>> row_text(Schema.of(("name", DataType.TEXT), ("n", DataType.INTEGER)), ("a", None))
        "('a', NULL)"
    """
    values = (literal_text(v, t) for v, t in zip(row, schema.dtypes, strict=True))
    return f"({', '.join(values)})"


def given_row(schema: Schema, values: Sequence[object]) -> Row:
    """Return values as a row of a result.

    Raises:
        BindingError: There are too many or too few, or one has another type.
    """
    try:
        return schema.coerce_row(list(values))
    except ValueError as error:
        raise BindingError(
            f"this is no row of the result: {error}",
            hint=f"a value per column, in order: {schema}",
        ) from None


def base_row_named(catalog: Catalog, source: str, values: Sequence[object]) -> Chosen:
    """Return which base rows are meant by a source and values of its key or first columns.

    Raises:
        BindingError: There is no such source, or the values do not fit its columns.
    """
    definition = catalog.find(source)
    if not isinstance(definition, SourceDefinition):
        raise BindingError(
            f"there is no source or table {source!r}",
            hint="base rows are those of SHOW SOURCES and SHOW TABLES",
        )
    width = len(definition.schema)
    if not 0 < len(values) <= width:
        raise BindingError(
            f"{len(values)} values for {definition.name} {definition.schema}",
            hint="give the values of its key, or of its first columns",
        )
    is_key = len(values) == len(definition.key)
    positions = definition.key if is_key else tuple(range(len(values)))
    wanted: list[Value] = []
    for position, value in zip(positions, values, strict=True):
        field = definition.schema.fields[position]
        try:
            wanted.append(coerce(value, field.dtype))
        except ValueError as error:
            raise BindingError(f"{definition.name}.{field.name}: {error}") from None
    name = definition.name

    def chosen(read: str, row: Row) -> bool:
        return read == name and all(row[p] == v for p, v in zip(positions, wanted, strict=True))

    return chosen


def chance_of(columns: str, leaves: Sequence[Leaf]) -> Chance | None:
    """Return the probability of a base row by columns such as `link.pdr`, separated by commas.

    Rows of other sources are certain.

    Raises:
        BindingError: There is no such column, or it holds no numbers. Asked for a row later: it has
            no probability there.
    """
    if not columns.strip():
        return None
    scans = {scan.source.lower(): scan for scan in map(_scan_of, leaves)}
    chosen: dict[str, int] = {}
    for text in columns.split(","):
        scan, position = _column(text.strip(), scans)
        chosen[scan.source] = position

    def chance(base: BaseRow) -> float | None:
        position = chosen.get(base.source)
        if position is None:
            return None
        value = base.row[position]
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            column = f"{base.source}.{base.columns.names[position]}"
            what = "no value" if value is None else f"{value}"
            raise BindingError(
                f"{column} is {what} in {base.source}{row_text(base.columns, base.row)}; "
                "a probability is from 0 to 1",
                hint="name another column, or a source whose rows all have one",
            )
        return float(value)

    return chance


def _column(text: str, scans: dict[str, Scan]) -> tuple[Scan, int]:
    source, _, column = text.partition(".")
    scan = scans.get(source.strip().lower())
    if scan is None or not column:
        raise BindingError(
            f"confidence {text!r:.60} names no column of a source that the query reads",
            hint=f"write source.column; the query reads {', '.join(sorted(scans)) or 'none'}",
        )
    for position, field in enumerate(scan.columns.fields):
        if field.name.lower() == column.strip().lower() and field.dtype.is_numeric:
            return scan, position
    numbers = [f.name for f in scan.columns.fields if f.dtype.is_numeric]
    raise BindingError(
        f"{describe(scan)} has no numeric column {column.strip()!r:.60}",
        hint=f"its numbers are {', '.join(numbers)}" if numbers else "it has no numbers at all",
    )


def _scan_of(leaf: Leaf) -> Scan:
    return leaf.input if isinstance(leaf, Window) else leaf
