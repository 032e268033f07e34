"""Trying a source at a gateway before it is created: what the coordinator asks, what comes back.

The request is the command `sample`, a `SourceTrial` as JSON in its argument; reports come as
MessagePack on the topic of responses while the trial runs, the last one with `done`.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from streamsql.mapping.offers import MAX_RECORDS, OfferedRecord
from streamsql.wire.bounds import MANY, Count, Name, Names, Packed, RowValue, Text, Time, WireRow
from streamsql.wire.source_orders import SourceOrder

SAMPLE = "sample"
"""The verb of the command."""
TRIAL, STOP = "trial", "stop"
"""Its arguments: a trial as JSON, or true to end the trial of the command's id."""

MAX_SOURCES = 10
MAX_SECONDS = 30.0
MAX_PAYLOADS = 100
MAX_BYTES = 200_000
MAX_SHOWN = 20_000
"""Bytes of a payload in a report; the rest is cut off."""
MAX_WHOLE_PAYLOADS = 2_000
MAX_WHOLE_BYTES = 4_000_000
"""Bounds of a trial that wants payloads whole, to read what devices announce."""

Facts = Annotated[dict[Name, RowValue], Meta(max_length=100)]


class SourceTrial(msgspec.Struct, frozen=True):
    """What to try.

    Attributes:
        orders: The sources as they would be declared, of one endpoint; they are not.
        seconds: How long.
        payloads: After so many it ends.
        whole: Report payloads uncut, and more of them.
        browse: List what the device offers instead: of the one order only connector, endpoint and
            options count.
    """

    orders: Annotated[tuple[SourceOrder, ...], Meta(min_length=1, max_length=MAX_SOURCES)]
    seconds: Annotated[float, Meta(gt=0, le=MAX_SECONDS)] = 10.0
    payloads: Annotated[int, Meta(ge=1, le=MAX_WHOLE_PAYLOADS)] = MAX_PAYLOADS
    whole: bool = False
    browse: bool = False


class TrialSample(msgspec.Struct, frozen=True):
    """A payload that has come, and what the definition makes of it.

    Attributes:
        arrival: Microseconds since 1970.
        source: Whose it is.
        payload: Cut to `MAX_SHOWN` bytes unless all was wanted.
        size: Bytes that came.
        is_record: The connector hands over values, no payload; `payload` is them as JSON.
        facts: Of the message, by name: topic, levels of the topic, ….
        rows: In the order of the definition's columns.
        problems: What was wrong.
        ignored: The option `only` leaves it out.
    """

    arrival: Time
    source: Name
    payload: Packed
    size: Count
    is_record: bool = False
    facts: Facts = {}
    rows: Annotated[tuple[WireRow, ...], MANY] = ()
    problems: Names = ()
    ignored: bool = False


class TrialReport(msgspec.Struct, frozen=True):
    """What a trial has found since its last report.

    Attributes:
        id: Of the command.
        number: Of the report, from 0.
        offers: Records that the device offers, each of them also a sample.
        dropped: Payloads so far that are in no report, since there were too many alike.
        notes: What the connector has come to.
        problem: Why nothing comes, or empty.
        hint: What to do about it, or empty.
        done: It has ended.
    """

    id: Name
    number: Count
    samples: Annotated[tuple[TrialSample, ...], MANY] = ()
    offers: Annotated[tuple[OfferedRecord, ...], Meta(max_length=MAX_RECORDS)] = ()
    dropped: Count = 0
    notes: Names = ()
    problem: Text = ""
    hint: Text = ""
    done: bool = False
