"""Parts of stored tables: some of the columns, the rows that may pass conditions."""

from dataclasses import dataclass

from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A part of a table, which is read as if it were one.

    Attributes:
        table: The table's name.
        definition: Some of its columns, under the part's name.
        conditions: Over these columns; rows that fail one may be left out.
    """

    table: str
    definition: SourceDefinition
    conditions: tuple[Expression, ...]
