"""Parts of stored tables: some of the columns, the rows that may pass conditions, or groups."""

from dataclasses import dataclass

from streamsql.algebra.aggregates import AggregateCall
from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition


@dataclass(frozen=True, slots=True)
class Groups:
    """GROUP BY over a part's rows, which the table's database computes.

    Attributes:
        rows: The columns that are grouped and aggregated, or in conditions.
        group: Of these, by position.
        calls: Aggregates over these.
    """

    rows: SourceDefinition
    group: tuple[int, ...]
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A part of a table, which is read as if it were one.

    Attributes:
        table: The table's name.
        definition: Under the part's name: some of the table's columns, or of groups the group
            columns and then the aggregates.
        conditions: Over these columns; rows that fail one may be left out. Of groups: over the
            columns that these are made of; rows that fail one are left out.
        groups: What is read instead of rows.
    """

    table: str
    definition: SourceDefinition
    conditions: tuple[Expression, ...]
    groups: Groups | None = None
