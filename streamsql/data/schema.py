"""Schemas: the ordered, named and typed columns of a relation."""

import msgspec

from streamsql.data.types import DataType, Row, Value, coerce, display


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One column."""

    name: str
    dtype: DataType


class Schema(msgspec.Struct, frozen=True, array_like=True):
    """The columns of a relation, in order. Names need not be unique inside a plan."""

    fields: tuple[Field, ...]

    @staticmethod
    def of(*columns: tuple[str, DataType]) -> "Schema":
        """Build a schema from pairs.

        Examples:
            >>> Schema.of(("a", DataType.TEXT)).names
            ('a',)
        """
        return Schema(tuple(Field(name, dtype) for name, dtype in columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    @property
    def dtypes(self) -> tuple[DataType, ...]:
        """Column types in order."""
        return tuple(field.dtype for field in self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __add__(self, other: "Schema") -> "Schema":
        return Schema(self.fields + other.fields)

    def __str__(self) -> str:
        """Return `(name TYPE, …)`."""
        return "(" + ", ".join(f"{f.name} {f.dtype}" for f in self.fields) + ")"

    def index_of(self, name: str) -> int:
        """Return the position of a column.

        Raises:
            KeyError: There is none of that name.
        """
        for position, field in enumerate(self.fields):
            if field.name == name:
                return position
        raise KeyError(name)

    def select(self, positions: tuple[int, ...]) -> "Schema":
        """Return the schema of the given columns, in the given order."""
        return Schema(tuple(self.fields[position] for position in positions))

    def coerce_row(self, values: "dict[str, object] | list[object] | tuple[object, ...]") -> Row:
        """Turn values from outside into a legal row; missing named columns become NULL.

        Raises:
            ValueError: A value has the wrong type, a name is unknown, or the count is wrong.
        """
        if isinstance(values, dict):
            unknown = values.keys() - set(self.names)
            if unknown:
                raise ValueError(f"unknown column {min(map(str, unknown))!r:.60}; known: {self}")
            values = [values.get(field.name) for field in self.fields]
        if len(values) != len(self.fields):
            raise ValueError(f"{len(values)} values for {len(self.fields)} columns {self}")
        row: list[Value] = []
        for field, value in zip(self.fields, values, strict=True):
            try:
                row.append(coerce(value, field.dtype))
            except ValueError as error:
                raise ValueError(f"column {field.name}: {error}") from None
        return tuple(row)

    def to_object(self, row: Row) -> dict[str, Value]:
        """Return a row as the JSON object that people see."""
        return {
            field.name: display(value, field.dtype)
            for field, value in zip(self.fields, row, strict=True)
        }
