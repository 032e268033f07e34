"""Reports of a site about itself: states and births. Times are microseconds since 1970 UTC."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated

import msgspec

from streamsql.wire.bounds import (
    MANY,
    Count,
    Counts,
    Epoch,
    Integer,
    Name,
    Names,
    Number,
    Text,
    Time,
    WireRow,
)
from streamsql.wire.codec import encode_compressed_packed
from streamsql.wire.messages import FlowReport
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.source_shapes import SourceShape


class BufferState(msgspec.Struct, frozen=True):
    """Fill of a gateway's disk buffer.

    Attributes:
        waiting: Packs that were not sent while the broker was away, and follow as history.
    """

    stored: Count = 0
    bytes: Count = 0
    dropped: Count = 0
    hours_left: Number | None = None
    waiting: Count = 0


class ConnectorState(msgspec.Struct, frozen=True):
    """State of the connector of an endpoint.

    Attributes:
        note: A condition that is no fault, in words: "the replay is over".
    """

    name: Name
    kind: Name
    streams: Names
    readings: Count = 0
    errors: Count = 0
    last_error: Text = ""
    note: Text = ""


class ClockState(msgspec.Struct, frozen=True):
    """What a site knows about its clock.

    Attributes:
        offset_ms: Milliseconds by which the coordinator's clock is ahead of it; None: not known.
        error_ms: Max error of `offset_ms`.
        corrected_ms: How much of it the site adds to its times.
    """

    offset_ms: Number | None = None
    error_ms: Number = 0.0
    corrected_ms: Number = 0.0


class ConnectionProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason why a site had no connection to its broker, and when. Times are microseconds.

    Attributes:
        reason: In words; the last one, if there were several.
        until: When it was over; None: it goes on.
    """

    reason: Text
    since: Time
    until: Time | None = None


class RefreshState(msgspec.Struct, frozen=True):
    """State of a view of `REFRESH AT` at the static engine. Times are microseconds.

    Attributes:
        last: When its rows were computed; None: it has none yet.
        next: When it is computed again.
        seconds: How long the last computation took.
        rows: How many rows there are.
        problem: Why the refresh after `last` has failed, or empty.
        failed: When it did.
    """

    view: Name
    last: Time | None = None
    next: Time | None = None
    seconds: Number | None = None
    rows: Count = 0
    problem: Text = ""
    failed: Time | None = None


class TableProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored table whose rows of before are served, because of what its source is like now.

    Attributes:
        shrunken: It has lost nearly all of its rows; else it cannot be read.
        served: How many rows queries have; None: there are none of before.
        found: How many rows its source has, where it has been read.
        detail: What is wrong, and what to do about it.
    """

    table: Name
    shrunken: bool = False
    served: Count | None = None
    found: Count | None = None
    detail: Text = ""


class PipelineState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the pipeline into the lake does. Counts are those of this incarnation of its process.

    Attributes:
        running: Whether segments are taken now.
        batches: Done so far.
        rows: Readings kept.
        rate: Readings kept a second, over the last minute.
        lag: Seconds from the arrival of the last batch's first message to its commit.
        batch_seconds: That the last batch took.
        repeated: Packs that came again, and were not kept twice.
        dead: Dead letters.
        waiting: Segments that are not kept yet.
        waiting_bytes: Of these.
        last: When the last batch was committed; None: there was none.
        problem: Why it does not run, or empty.
        drift: Columns that sources had not before, the last ones, a sentence each.
        damaged: Segments that could not be read, the last ones, a sentence each.
    """

    running: bool = False
    batches: Count = 0
    rows: Count = 0
    rate: Number = 0.0
    lag: Number | None = None
    batch_seconds: Number | None = None
    repeated: Count = 0
    dead: Count = 0
    waiting: Count = 0
    waiting_bytes: Count = 0
    last: Time | None = None
    problem: Text = ""
    drift: Annotated[tuple[Text, ...], MANY] = ()
    damaged: Annotated[tuple[Text, ...], MANY] = ()


class SiteRole(StrEnum):
    """Purpose of a site. GATEWAY has devices; BASE hosts top fragments; STATIC reads tables."""

    GATEWAY = "gateway"
    BASE = "base"
    STATIC = "static"
    COORDINATOR = "coordinator"
    LANDER = "lander"  # writes what gateways publish to disk, for the lake


ENGINE_ROLES = (SiteRole.GATEWAY, SiteRole.BASE)
"""Roles of sites that run the stream engine."""


class DeclaredState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a gateway is doing with a source that the catalog declares.

    Attributes:
        version: Of the definition that it holds.
        problem: Why its rows are missing; empty: it is served.
        endpoint: That it is read from.
        rows: Made so far, in this life of the gateway.
        bad: Payloads, rows and values refused so far.
        last_bad: Why the last one was.
    """

    name: Name
    version: Count
    problem: Text = ""
    endpoint: Name = ""
    rows: Count = 0
    bad: Count = 0
    last_bad: Text = ""


class EndpointState(msgspec.Struct, frozen=True):
    """What a gateway may connect to.

    Attributes:
        connector: The kind of connector that does it.
        listens: Devices send payloads by themselves, or show them when asked: they can be looked at
            before a source says which columns there are.
        browses: The connector can list what the device offers.
    """

    name: Name
    connector: Name
    listens: bool = False
    browses: bool = False


LOCAL_ROWS = "local_rows"
"""The counter of a static engine that says up to how many rows it evaluates without Spark."""
ENGINES = ("local", "spark")
"""The engines that evaluate stored parts of queries: the static engine's own process, and Spark."""
FLOOR_US = "_floor_us"
"""Ends the name of the counter of microseconds that an engine's shortest evaluation took."""
ROWS_A_SECOND = "_rows_per_s"
"""Likewise of rows of tables that an engine reads a second beyond that, in large evaluations."""
PAST_ROW_COST = 5
"""So many rows count for one of the past: it is read from a file and passes some more operators."""

HASH_BYTES = 4
MOST_HASHES = 64
"""Of the distinct values of a column: the least ones, from which their number is estimated."""
DECILES = 11
"""Least value, nine deciles, greatest value."""
MOST_COLUMNS = 50
"""Columns of a source that are counted: the first ones."""


class ColumnCount(msgspec.Struct, frozen=True, array_like=True):
    """Counts of a column of a source at a gateway, or of a stored table.

    Attributes:
        hashes: The least hashes of its distinct values, each of `HASH_BYTES`, sorted; all there are
            if fewer than `MOST_HASHES`.
        common: The hash of the most common value in a sample.
        often: How often the sample has it.
        nulls: How often the sample has NULL.
        same: Of the compared readings those that have the value of the one before them.
        deciles: Of a number, in the sample; sorted.
        size: Of a text: the bytes of all in the sample together; None: nobody says.
        distinct: Of a stored table: about how many values there are; None: the hashes say it.
    """

    hashes: Annotated[bytes, msgspec.Meta(max_length=HASH_BYTES * MOST_HASHES)] = b""
    common: Count = 0
    often: Count = 0
    nulls: Count = 0
    same: Count = 0
    deciles: Annotated[tuple[Number, ...], msgspec.Meta(max_length=DECILES)] = ()
    size: Count | None = None
    distinct: Number | None = None

    def __post_init__(self) -> None:
        """Refuse deciles that are not sorted: `ValueError`."""
        if self.deciles and self.deciles != tuple(sorted(self.deciles)):
            raise ValueError("the deciles of a column are not sorted")


class SourceCount(msgspec.Struct, frozen=True, array_like=True):
    """Counts of the columns of a source at a gateway.

    Attributes:
        rows: Readings that were looked at.
        sampled: Readings in the sample.
        compared: Readings that were compared with the one of the same key before them.
        columns: By name.
    """

    rows: Count
    sampled: Count
    compared: Count
    columns: Annotated[dict[Name, ColumnCount], msgspec.Meta(max_length=MOST_COLUMNS)]
    source: Name = ""


class SiteState(msgspec.Struct, frozen=True):
    """Online or offline. The will is the same message with `online` false and the same epoch.

    Attributes:
        reason: "stopped" after a clean stop, "lost" in a will.
        detail: What the console shows, e.g. "Spark is warming up".
        ready: Whether it answers already.
        instance: Random per process start; distinguishes a stolen id from one's own.
        started: When the process started; of two with one id and epoch the later one stays.
        connectors: State of each connector that runs; empty where not reported.
        settings: Of an engine site: those in use.
        clock: How far its clock is from the coordinator's.
        views: Of the static engine: the views that it refreshes.
        tables: Likewise about how many rows tables have, as far as it knows.
        sources: Of a gateway: the sources that it has, in its will too; empty where nobody says.
        declared: Of a gateway: the declared sources that concern it.
        endpoints: Of a gateway: what declared sources may name.
        compared: Likewise columns of large tables of databases that compare exactly as we do.
        fills: Of the static engine: whether it has a lake from which windows begin full.
        connection: Of an engine site: why it was last cut off from the broker, now that it is back.
        pipeline: Of the static engine: what its pipeline does; None: it has none.
        table_problems: Of the static engine: the tables whose sources are not as they should be.
        counted: Of a gateway: events read and rows that came or went, by source, in this life.
    """

    online: bool
    epoch: Epoch
    ts: Time
    role: SiteRole = SiteRole.GATEWAY
    reason: Name = ""
    detail: Text = ""
    ready: bool = True
    instance: Name = ""
    buffer: BufferState = BufferState()
    counters: Counts = {}
    started: Time = 0
    connectors: Annotated[tuple[ConnectorState, ...], MANY] = ()
    settings: SiteSettings | None = None
    clock: ClockState = ClockState()
    views: Annotated[tuple[RefreshState, ...], MANY] = ()
    sources: Names = ()
    declared: Annotated[tuple[DeclaredState, ...], MANY] = ()
    endpoints: Annotated[tuple[EndpointState, ...], MANY] = ()
    connection: ConnectionProblem | None = None
    tables: Counts = {}
    compared: Annotated[dict[Name, Names], MANY] = {}
    fills: bool = False
    pipeline: PipelineState | None = None
    table_problems: Annotated[tuple[TableProblem, ...], MANY] = ()
    counted: Annotated[dict[Name, tuple[Count, Count]], MANY] = {}


MAX_FLOWS = 1_000
"""Queries of one message of counts."""
MAX_FLOW_BYTES = 200_000
"""About how large a message of counts of several queries is at most."""


class SiteFlows(msgspec.Struct, frozen=True, array_like=True):
    """Counts of those queries at a site for which they have changed, in one message.

    Attributes:
        reports: By query.
    """

    reports: Annotated[dict[Name, FlowReport], msgspec.Meta(min_length=1, max_length=MAX_FLOWS)]


def packed_flows(reports: Mapping[str, FlowReport]) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Yield the messages that report these counts, each with the queries in it."""
    waiting = [tuple(reports)] if reports else []
    while waiting:
        queries = waiting.pop()
        payload = b""
        if len(queries) <= MAX_FLOWS:
            flows = SiteFlows({query: reports[query] for query in queries})
            payload = encode_compressed_packed(flows)
        if payload and (len(payload) <= MAX_FLOW_BYTES or len(queries) == 1):
            yield queries, payload
        else:
            half = len(queries) // 2
            waiting += [queries[half:], queries[:half]]


class SensorDescription(msgspec.Struct, frozen=True):
    """A sensor behind a gateway."""

    name: Name
    stream: Name
    unit: Name = ""
    kind: Name = ""
    room: Name = ""
    level: Integer = 0
    x: Number = 0.0
    y: Number = 0.0


class SourceRows(msgspec.Struct, frozen=True):
    """The current rows of one source at a gateway."""

    source: Name
    rows: Annotated[tuple[WireRow, ...], MANY]


class Birth(msgspec.Struct, frozen=True):
    """Everything a gateway has; whatever follows is a delta to it.

    Attributes:
        shapes: What each of its sources looks like there.
    """

    gateway: Name
    epoch: Epoch
    seq: Count
    ts: Time
    role: SiteRole = SiteRole.GATEWAY
    sensors: Annotated[tuple[SensorDescription, ...], MANY] = ()
    connectors: Annotated[tuple[ConnectorState, ...], MANY] = ()
    sources: Names = ()
    rooms: Names = ()
    current: Annotated[tuple[SourceRows, ...], MANY] = ()
    capabilities: Names = ()
    clock_offset: Integer = 0
    shapes: Annotated[tuple[SourceShape, ...], MANY] = ()
