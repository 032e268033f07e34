"""CQL's operators from a relation to a stream."""

import enum

import msgspec

from streamsql.algebra.leaves import EVENT_COLUMNS, PROGRESS_COLUMNS, Scan, SourceKind, require
from streamsql.algebra.operators import plan
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType


class StreamKind(enum.StrEnum):
    """CQL's operators from relations to streams."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"


class ToStream(msgspec.Struct, frozen=True, tag="to_stream"):
    """The changes of a relation, instant by instant, as a stream to which rows are only added.

    Let R(t) be the relation of `query` at time t over the events that count by then. At each
    instant t that is final ISTREAM gives R(t) - R(before t), DSTREAM R(before t) - R(t), as bags,
    and RSTREAM, if these differ, all of R(t); every row with t behind it. Instants before the least
    watermark of all sources are final: nothing that arrives can change them. Until each source has
    a watermark none is.

    `query` is no input: it is evaluated once per instant. Stored tables in it count as they are
    when an instant is worked on, and make no instants.

    Attributes:
        kind: Which of the three.
        query: Closed; its sources are `scans`.
        scans: The distinct scans in the query, of streams and tables.
        feeds: Per scan its EVENTS; of a table its rows.
        progress: Per stream (site, watermark) of every site that reads it.
        name: Of the column with the instant.
    """

    kind: StreamKind
    query: "plan.Plan"
    scans: tuple[Scan, ...]
    feeds: tuple["plan.Plan", ...]
    progress: tuple["plan.Plan", ...]
    name: str = "ts"

    def __post_init__(self) -> None:
        require(len(self.scans) == len(self.feeds), "one feed per scan")
        for scan, feed in zip(self.scans, self.feeds, strict=True):
            before = 0 if scan.kind == SourceKind.TABLE else len(EVENT_COLUMNS)
            require(feed.schema.dtypes[before:] == scan.schema.dtypes, "feed columns")
        for part in self.progress:
            require(part.schema.dtypes == PROGRESS_COLUMNS.dtypes, "progress columns")

    @property
    def schema(self) -> Schema:
        """The query's columns and the instant."""
        return self.query.schema + Schema((Field(self.name, DataType.TIMESTAMP),))

    @property
    def inputs(self) -> tuple["plan.Plan", ...]:
        """Feeds, then progress."""
        return self.feeds + self.progress
