"""Definitions: frozen values that CREATE statements produce and binders read."""

import msgspec

from streamsql.algebra.operators import Scan, SourceKind
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.refresh_times import RefreshSchedule
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.data.schema import Schema
from streamsql.mapping.source_mapping import SourceMapping


class SourceDefinition(msgspec.Struct, frozen=True):
    """A stream, a link stream, a stored table or a view that is refreshed at times of day.

    Attributes:
        key: Positions of the upsert key (stream), of source and destination (link), or of the
            primary key (table); empty for a bag.
        time_column: Position of the event time, or None when rows are stamped on arrival.
        ttl: Lifetime of a row in microseconds, or None.
        lateness: Allowed lateness in microseconds from WATERMARK, or None.
        options: The WITH clause as written, e.g. {"connector": "motes"} or {"source": "csv"}.
        text: The CREATE statement.
        refresh: Of a table that is a view's answer as of its last refresh: when that is.
        mapping: How its rows come from devices; None: no connector feeds it.
        version: Counts its definitions under this name; 0: no connector feeds it.
    """

    name: str
    kind: SourceKind
    schema: Schema
    key: tuple[int, ...] = ()
    time_column: int | None = None
    ttl: int | None = None
    lateness: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    text: str = ""
    refresh: RefreshSchedule | None = None
    mapping: SourceMapping | None = None
    version: int = 0

    @property
    def is_table(self) -> bool:
        """Whether the static engine answers it."""
        return self.kind == SourceKind.TABLE

    def option(self, name: str) -> str | None:
        """Return an option of the WITH clause."""
        return dict(self.options).get(name)

    @property
    def units(self) -> tuple[str, ...]:
        """The units of its columns, "" for none."""
        if self.mapping is None:
            return ("",) * len(self.schema)
        return tuple(column.unit for column in self.mapping.columns)

    def scan(self) -> Scan:
        """Return the plan that reads it.

        The newest row per key is that whenever it comes: only events of a bag can be late.
        """
        lateness = None if self.key or self.kind != SourceKind.STREAM else self.lateness
        return Scan(
            self.name,
            self.kind,
            self.schema,
            self.key,
            self.time_column,
            self.ttl,
            lateness,
            units=self.units if any(self.units) else (),
        )


class ViewDefinition(msgspec.Struct, frozen=True):
    """A named query; it keeps its text and is bound where it is used.

    Attributes:
        columns: Column names given in CREATE VIEW, or empty.
        query: The text after AS.
        text: The whole CREATE statement.
    """

    name: str
    query: str
    columns: tuple[str, ...] = ()
    recursive: bool = False
    text: str = ""
    library: bool = False


Definition = (
    SourceDefinition
    | ViewDefinition
    | FunctionDefinition
    | DisplayDefinition
    | AlarmDefinition
    | SinkDefinition
)
