"""Which columns of the lake a definition means, when definitions have changed.

Rules. A column that is new is added; rows from before have NULL there. A column that is gone stays,
with NULL from then on. A column of another type or in another unit is another column, `name__2`,
`name__3`, …: values of two kinds never meet in one. A column that comes back as it was is the one
that was. What stands for what is in the table's property `pando.columns`.
"""

from collections.abc import Iterable, Sequence
from itertools import count

import msgspec

from static_engine.lake.kept_readings import OWN_NAMES
from static_engine.lake.lake_errors import LakeError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType

PROPERTY = "pando.columns"
MAX_COLUMNS = 2_000


class KeptColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column of the lake.

    Attributes:
        name: Of the source's column.
        type: Of the source's column.
        unit: Of its values, or empty.
        column: Its name in the lake.
    """

    name: str
    type: DataType
    column: str
    unit: str = ""

    @property
    def words(self) -> str:
        """Name, type and unit, for people who read the lake without Pando."""
        unit = f", in {self.unit}" if self.unit else ""
        return f"{self.name} {self.type}{unit}"


class KeptColumns(msgspec.Struct, frozen=True):
    """All columns of a kept source, those of former definitions too."""

    columns: tuple[KeptColumn, ...] = ()

    @classmethod
    def of_property(cls, text: str | None) -> "KeptColumns":
        """Return what the property says.

        Raises:
            msgspec.MsgspecError: It was not written by `as_property`.
        """
        if not text:
            return cls()
        return cls(msgspec.json.decode(text, type=tuple[KeptColumn, ...]))

    def as_property(self) -> str:
        """Return the value of the property."""
        return msgspec.json.encode(self.columns).decode()

    def find(self, name: str, dtype: DataType, unit: str) -> KeptColumn | None:
        """Return the column for a source's column, or None."""
        for column in self.columns:
            if (column.name, column.type, column.unit) == (name, dtype, unit):
                return column
        return None

    def of(self, definition: SourceDefinition) -> list[KeptColumn | None]:
        """Return the column for each of a definition's columns; None where there is none yet."""
        return [self.find(*each) for each in _described(definition)]

    def grown(self, definition: SourceDefinition) -> tuple["KeptColumns", tuple[KeptColumn, ...]]:
        """Return the columns with those that a definition adds, and these alone.

        Raises:
            LakeError: There would be more than `MAX_COLUMNS`.
        """
        added: list[KeptColumn] = []
        taken = {column.column for column in self.columns} | set(OWN_NAMES)
        for name, dtype, unit in _described(definition):
            if self.find(name, dtype, unit) is None:
                column = _free(name, taken)
                taken.add(column)
                added.append(KeptColumn(name, dtype, column, unit))
        if added and len(self.columns) + len(added) > MAX_COLUMNS:
            raise LakeError(
                f"source {definition.name!r:.80} would have {len(self.columns) + len(added):,} "
                f"columns in the lake, those of former definitions counted; the max is "
                f"{MAX_COLUMNS:,}",
                hint="set keep = 'no' for it, or declare it under another name",
            )
        return KeptColumns((*self.columns, *added)), tuple(added)


def drift_words(before: KeptColumns, added: Sequence[KeptColumn]) -> list[str]:
    """Return what has changed of a source, a sentence per column; nothing for a new source."""
    if not before.columns:
        return []
    known = {column.name for column in before.columns}
    return [
        f"column {column.name} is now {column.words}; it is kept as {column.column}"
        if column.name in known
        else f"column {column.name} is new"
        for column in added
    ]


def _described(definition: SourceDefinition) -> Iterable[tuple[str, DataType, str]]:
    for field, unit in zip(definition.schema.fields, definition.units, strict=True):
        yield field.name, field.dtype, unit


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    return next(each for n in count(2) if (each := f"{name}__{n}") not in taken)
