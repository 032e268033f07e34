"""The messages services exchange. Times are microseconds since 1970 UTC unless said otherwise.

JSON where people read them (state, birth, observations, links, commands), MessagePack between
engine sites (fragments, delta batches, flow).
"""

from typing import Annotated

import msgspec

from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.keep_options import keep_of, rollups_of
from streamsql.wire.bounds import (
    MANY,
    MAX_ITEMS,
    Count,
    Counts,
    Epoch,
    Integer,
    Name,
    Names,
    Number,
    Packed,
    RowValues,
    Text,
    Time,
    Token,
    WireRow,
)

MAX_ROWS_PER_BATCH = MAX_ITEMS


class SenmlRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A SenML record (RFC 8428 section 4); times `bt` and `t` are seconds."""

    n: Name = ""
    bn: Name = ""
    bt: Number | None = None
    t: Number | None = None
    u: Name = ""
    v: Number | None = None
    vs: Text | None = None
    vb: bool | None = None


class ObservationPack(msgspec.Struct, frozen=True, omit_defaults=True):
    """Readings of one stream.

    No SenML pack: `e` holds SenML records, and the fields around it are ours.

    Attributes:
        epoch: Of the gateway when the pack was made.
        seq: Counts the packs of all streams in that epoch; a repeated number is a repeated pack.
        n: Counts the packs of this stream in one incarnation of the gateway; None: not counted.
        life: The epoch of that incarnation; None: `epoch`.
        version: Of the definition that the rows were made by; 0: it stands in a gateway's settings.
        layout: Of that definition (`streamsql.wire.source_shapes.layout_of`).
        d: Places of the rows that are withdrawals, counted from 0 in the order of `e`, ascending.
    """

    epoch: Epoch
    seq: Count
    e: Annotated[tuple[SenmlRecord, ...], MANY]
    n: Count | None = None
    life: Epoch | None = None
    version: Count = 0
    layout: Count = 0
    d: Annotated[tuple[Count, ...], MANY] = ()


class LinkMessage(msgspec.Struct, frozen=True):
    """A directed link as a NetJSON link object.

    Attributes:
        cost: None: the source has no column of that name, or it is NULL or no number.
    """

    source: Name
    target: Name
    cost: Number | None = None
    properties: RowValues = {}


class WeightedRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of a delta; the garbage collector need not look at what holds only plain values."""

    row: WireRow
    weight: Integer


class AnnotatedRow(msgspec.Struct, frozen=True, array_like=True):
    """A row inside a recursion with its encoded provenance annotation."""

    row: WireRow
    annotation: Packed


class DeltaBatch(msgspec.Struct, frozen=True, array_like=True):
    """Changes from one site to another, or of a query's result.

    Attributes:
        version: Of the fragment bundle.
        epoch: Of the sending site; grows with every restart.
        seq: 0, 1, 2, … per channel and epoch.
        port: Sending fragment's id; inside a recursion the fixpoint's port.
        reset: The batch begins a full snapshot that replaces all rows of this sender and port.
        more: The change or snapshot goes on in the next batch; it counts as a whole, with its last.
        annotated: Rows inside a recursion.
        kills: Tokens of dead base tuples, inside a recursion.
        watermark: Of a snapshot: windows that ended by then have closed, and the sender has
            discarded their rows. None: none.
        ts: Oldest reading that caused the batch, for latency figures.
        now: The sender's time when it was made.
    """

    version: Count
    epoch: Epoch
    seq: Count
    port: Name
    deltas: Annotated[tuple[WeightedRow, ...], MANY] = ()
    reset: bool = False
    more: bool = False
    annotated: Annotated[tuple[AnnotatedRow, ...], MANY] = ()
    kills: Annotated[tuple[Token, ...], MANY] = ()
    watermark: Time | None = None
    ts: Time | None = None
    now: Time = 0


class RecursionReport(msgspec.Struct, frozen=True, array_like=True):
    """Counts of a recursion at one site since the query was installed there.

    Attributes:
        name: Of the relation.
        description: How it is maintained, in words.
        leaf_rows: Rows it reads that arrived here.
        leaf_changes: Rows of those that came or went.
        view_rows: Rows of its view shown here.
        view_changes: Rows of those that came or went.
        settles: Changes worked on, in this incarnation (see `lives`; so are all that follow).
        rounds: Rounds of evaluation they took.
        most_rounds: Of one change.
        derivations: Rule results, absorbed ones too.
        rederived: Rows derived again because alternatives had been dropped.
        recomputed: Times the view was computed again instead of repaired.
        received_rows: Rows from other sites.
        sent_rows: Rows to other sites.
        sent_kills: Dead tokens announced, counted per receiver.
        lives: Incarnations, the first included; a new one starts after a peer was given up.
        trace: Rows derived and deleted here in each round of the last change; many rounds at the
            end are added up.
        derived: Rows derived in all.
        deleted: Rows deleted in all.
        beyond: Rows here that need more rounds than the query allows.
        allowed: Rounds that it allows, or 0 where rows of more are left out or welcome.
    """

    name: Name
    description: Text = ""
    leaf_rows: Count = 0
    leaf_changes: Count = 0
    view_rows: Count = 0
    view_changes: Count = 0
    settles: Count = 0
    rounds: Count = 0
    most_rounds: Count = 0
    derivations: Count = 0
    rederived: Count = 0
    recomputed: Count = 0
    received_rows: Count = 0
    sent_rows: Count = 0
    sent_kills: Count = 0
    lives: Count = 1
    trace: Annotated[tuple[tuple[Count, Count], ...], MANY] = ()
    derived: Count = 0
    deleted: Count = 0
    beyond: Count = 0
    allowed: Count = 0


class PartTraffic(msgspec.Struct, frozen=True, array_like=True):
    """The counts of a `TrafficReport` that are of one fragment."""

    fragment: Name
    batches: Count = 0
    bytes: Count = 0
    snapshots: Count = 0
    snapshot_bytes: Count = 0
    rows: Count = 0
    timed: Count = 0
    milliseconds: Count = 0


class TrafficReport(msgspec.Struct, frozen=True, array_like=True):
    """Traffic of a query's channels at a site since the query was installed there.

    Attributes:
        batches: Sent.
        bytes: Payloads of those, without MQTT's headers and topics.
        snapshots: Batches of those that repeated what had been sent before.
        snapshot_bytes: Payloads of those.
        resyncs: Times a channel to here was out of step, the beginning too, and got a snapshot.
        resync_milliseconds: How long they waited for it, all together.
        longest_resync: The longest of those waits, in milliseconds.
        rows: Changed rows in the batches sent.
        parts: Of each fragment, where more than one sends.
        timed: Batches that say when the reading was that caused them; no snapshots.
        milliseconds: From that reading until the batch was made, of all of those together.
    """

    batches: Count = 0
    bytes: Count = 0
    snapshots: Count = 0
    snapshot_bytes: Count = 0
    resyncs: Count = 0
    resync_milliseconds: Count = 0
    longest_resync: Count = 0
    rows: Count = 0
    parts: Annotated[tuple[PartTraffic, ...], MANY] = ()
    timed: Count = 0
    milliseconds: Count = 0


class SlowSite(msgspec.Struct, frozen=True, array_like=True):
    """A site whose watermark holds back the windows of a query.

    Attributes:
        behind: Seconds of event time by which it is behind the foremost site.
        since: Since when, in microseconds since 1970 UTC by the clock of the reporting site.
    """

    site: Name
    behind: Integer
    since: Time


class FilterReport(msgspec.Struct, frozen=True, array_like=True):
    """Rows that a filter right over a source has read and passed since the query was installed.

    Told again only when it has read twice as many, so that counts change few reports.

    Attributes:
        fragment: Its id.
        number: In `source_filters` of the fragment's plan.
        rows_in: Changed rows read.
        rows_out: Of those the ones that passed.
    """

    fragment: Name
    number: Count
    rows_in: Count
    rows_out: Count


class FlowReport(msgspec.Struct, frozen=True, array_like=True):
    """Counts of a query per channel, for quiescence: `sent["to"]`, `received["from"]`.

    Attributes:
        busy: Whether something waits for the site's next step.
        recursions: What the recursions have done here.
        traffic: What the channels have cost.
        lives: The sender's epoch for each count of `received`: every incarnation counts from 0, so
            that counts of two of them may agree by chance. Empty where the host does not know.
        slow: The sites that hold windows back which close here, the slowest first.
        first: The number with which this query's channels began: those below were used by what ran
            here before.
        state_rows: Rows that its operators keep here, rounded up so that few changes are reported.
        filters: What filters have read here; none: as told before, by the same incarnation.
    """

    version: Count
    epoch: Epoch
    sent: Counts
    received: Counts
    busy: bool = False
    recursions: Annotated[tuple[RecursionReport, ...], MANY] = ()
    traffic: TrafficReport = TrafficReport()
    lives: Counts = {}
    slow: Annotated[tuple[SlowSite, ...], MANY] = ()
    first: Count = 0
    state_rows: Count = 0
    filters: Annotated[tuple[FilterReport, ...], MANY] = ()


CREDENTIALS = "credentials"
"""Command of the coordinator to a gateway: make a new key, or take new credentials."""


class Command(msgspec.Struct, frozen=True):
    """A command to a site; the verb is in the topic.

    Attributes:
        query: With verb resync: send a fresh snapshot of this query's channel.
        channel: With verb resync: the requesting site, or "out" for the result.
    """

    id: Name = ""
    query: Name = ""
    channel: Name = ""
    arguments: RowValues = {}


class KeptSource(msgspec.Struct, frozen=True):
    """The options of a source on its readings in the lake.

    Attributes:
        name: Of the source.
        keep: Its option `keep`; empty: the lake's default.
        rollup: Its option `rollup`; likewise.
        keys: Columns of its key.
    """

    name: Name
    keep: Name = ""
    rollup: Name = ""
    keys: Names = ()

    def __post_init__(self) -> None:
        """Check that the options can be read.

        Raises:
            ValueError: One cannot.
        """
        if self.keep:
            keep_of(self.keep)
        if self.rollup:
            rollups_of(self.rollup)


class TableSet(msgspec.Struct, frozen=True):
    """All stored tables of the federation, from the coordinator to the static engine.

    Attributes:
        tables: What it reads.
        refreshed: Views that it computes at times of day: a packed `RefreshOrder` each.
        kept: What sources say of their readings in the lake.
    """

    tables: Annotated[tuple[SourceDefinition, ...], MANY] = ()
    refreshed: Annotated[tuple[Packed, ...], MANY] = ()
    kept: Annotated[tuple[KeptSource, ...], MANY] = ()


SystemRow = tuple[Name, Name, Name, Name, Number]
"""Query, entity, kind, property and value of a row of `sys_stream`."""


class SystemRows(msgspec.Struct, frozen=True):
    """Rows of `sys_stream` from a host that is no engine site, on its observation lane.

    Attributes:
        epoch: Of the host.
        seq: 0, 1, 2, … in that epoch.
        rows: Site is the sender; the time is that of arrival, by the clock of the base site.
    """

    epoch: Epoch
    seq: Count
    rows: Annotated[tuple[SystemRow, ...], MANY]


class QueryProblem(msgspec.Struct, frozen=True):
    """Why a site cannot answer its part of a query now; its last rows stay valid meanwhile.

    Attributes:
        code: Stable identifier of the error, e.g. "deployment_error".
        hint: What to do about it, or empty.
    """

    code: Name
    message: Text
    hint: Text
    ts: Time
    site: Name


class DeadLetter(msgspec.Struct, frozen=True):
    """A payload that could not be decoded, cut to 2 kB."""

    topic: Name
    error: Text
    ts: Time
    payload: Text
