"""Packs of readings as typed rows of kept sources; what cannot be one is a dead letter.

A pack is kept whole or not at all: gateway, epoch and seq name it, so a pack that becomes good when
it is replayed adds nothing twice.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from static_engine.lake.kept_readings import OWN_NAMES, TIME
from static_engine.pipeline.pack_numbers import PackNumbers
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.keep_options import DAY
from streamsql.catalog.system import SYS_STREAM
from streamsql.data.schema import Schema
from streamsql.data.types import EARLIEST, LATEST, DataType, Row
from streamsql.errors import FederationError, WireError
from streamsql.wire.bounds import MAX_OBSERVED_BYTES
from streamsql.wire.codec import decode_compressed_json, decode_json
from streamsql.wire.messages import ObservationPack, SystemRows
from streamsql.wire.senml import microseconds, row_from, rows_of
from streamsql.wire.topics import Topics, check_id

MAX_REASON = 500
MAX_DAYS = 2_000
"""Days of event time in one pack: each is a file of the lake."""
LANES = ("obs", "hist")
_EXACT = 2**53

DefinitionOf = Callable[[str, int], SourceDefinition | None]
"""Returns the definition of a source by name and layout; layout 0: whichever there is now."""


@dataclass(frozen=True, slots=True)
class Landed:
    """A message as it was landed; `arrived` in microseconds since 1970."""

    topic: str
    payload: bytes
    arrived: int


@dataclass(frozen=True, slots=True)
class DeadPack:
    """A message that is not kept, and why."""

    message: Landed
    reason: str


@dataclass(slots=True)
class SourceRows:
    """Rows of one definition, column by column; the last columns are `kept_readings.OWN_NAMES`."""

    definition: SourceDefinition
    columns: list[list[Any]] = field(init=False)
    packs: PackNumbers = field(default_factory=PackNumbers)

    def __post_init__(self) -> None:
        self.columns = [[] for _ in range(len(self.definition.schema) + len(OWN_NAMES))]

    def __len__(self) -> int:
        return len(self.columns[-1])

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the rows in the schema of the source's files (`Lake.schema_of`)."""
        arrays = []
        for values, kept in zip(self.columns, schema, strict=True):
            plain = pa.array(values, pa.int64() if kept.type == TIME else kept.type)
            arrays.append(plain.cast(kept.type))
        return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class KeptRows:
    """Yield of packs: rows per definition, and dead letters.

    Attributes:
        sources: By name and layout.
        seen: Packs whose rows are not to be kept, since they are already; grows by those read.
        repeated: How many packs came again.
    """

    sources: dict[tuple[str, int], SourceRows] = field(default_factory=dict)
    dead: list[DeadPack] = field(default_factory=list)
    seen: PackNumbers = field(default_factory=PackNumbers)
    repeated: int = 0


def rows_of_packs(
    messages: Iterable[Landed],
    topics: Topics,
    definition_of: DefinitionOf,
    into: KeptRows | None = None,
) -> KeptRows:
    """Return the rows of packs on observation lanes; other messages are dead letters.

    Nothing that a message holds stops the others.

    Args:
        messages: In the order of arrival; a pack that comes again gives nothing.
        topics: Of the federation.
        definition_of: By which packs are read.
        into: What rows are appended to; None: to nothing.
    """
    kept = KeptRows() if into is None else into
    for message in messages:
        try:
            _take(message, topics, definition_of, kept)
        except FederationError as error:
            kept.dead.append(DeadPack(message, error.message[:MAX_REASON]))
        except Exception as error:  # noqa: BLE001 - a parser's fault is no reason to lose a pack
            reason = f"reading it failed: {type(error).__name__}: {error}"
            kept.dead.append(DeadPack(message, reason[:MAX_REASON]))
    return kept


def _take(message: Landed, topics: Topics, definition_of: DefinitionOf, kept: KeptRows) -> None:
    match topics.parts(message.topic):
        case ["gw", gateway, lane, stream] if lane in LANES:
            check_id(gateway, "gateway")
        case _:
            raise WireError(f"{message.topic!r:.120} is no observation lane")
    pack = _pack(message.payload, stream)
    if kept.seen.has(gateway, pack.epoch, pack.seq):
        kept.repeated += 1
        return
    layout = pack.layout if isinstance(pack, ObservationPack) else 0
    definition = definition_of(stream, layout)
    if definition is None:
        known = definition_of(stream, 0) is not None
        raise WireError(
            f"the pack was made by another definition of source {stream!r:.80} than any known here"
            if known
            else f"there is no source {stream!r:.80}"
        )
    rows: list[tuple[int, Row]]
    if isinstance(pack, ObservationPack):
        rows = list(_rows(pack, definition, stream))
        withdrawn = frozenset(pack.d)
        if withdrawn and max(withdrawn) >= len(rows):
            raise WireError(
                f"row {max(withdrawn)} of {len(rows)} in a pack of {stream} is withdrawn"
            )
        days = len({ts // DAY for ts, _ in rows})
        if days > MAX_DAYS:
            raise WireError(
                f"the readings of a pack of {stream} are of {days:,} days; "
                f"the max is {MAX_DAYS:,}: see whether a clock jumps, or send fewer in a pack"
            )
    else:
        # As base sites read them: the sender's rows, at their arrival.
        rows = [(message.arrived, (message.arrived, gateway, *row)) for row in pack.rows]
        withdrawn = frozenset()
    of_source = kept.sources.setdefault((stream, layout), SourceRows(definition))
    columns = of_source.columns
    for place, (ts, row) in enumerate(rows):
        own = (gateway, pack.epoch, pack.seq, place, ts, place in withdrawn, message.arrived)
        for column, value in zip(columns, (*row, *own), strict=True):
            column.append(value)
    of_source.packs.add(gateway, pack.epoch, pack.seq)
    kept.seen.add(gateway, pack.epoch, pack.seq)


def _pack(payload: bytes, stream: str) -> ObservationPack | SystemRows:
    try:
        return decode_compressed_json(payload, ObservationPack, limit=MAX_OBSERVED_BYTES)
    except WireError:
        if stream != SYS_STREAM.name:
            raise
        return decode_json(payload, SystemRows, limit=MAX_OBSERVED_BYTES)


def _rows(
    pack: ObservationPack, definition: SourceDefinition, stream: str
) -> Iterator[tuple[int, Row]]:
    """Yield event time and row of each reading.

    Raises:
        WireError: One is not of the source.
    """
    schema = definition.schema
    number = 0
    try:
        for _device, seconds, values in rows_of(pack.e):
            number += 1
            yield _event_time(seconds), _row(values, schema)
    except (ValueError, OverflowError) as error:
        where = f"row {number} of a pack of {stream}" if number else f"a pack of {stream}"
        raise WireError(f"{where}: {error}") from error


def _row(values: dict[str, Any], schema: Schema) -> Row:
    """Return the row of a schema; most are of doubles and texts, which need no conversion."""
    found: list[Any] = []
    seen = 0
    for each in schema.fields:
        value = values.get(each.name)
        seen += value is not None
        if value is not None:
            match each.dtype:
                case DataType.DOUBLE if type(value) is float:
                    pass
                case DataType.TEXT if type(value) is str:
                    pass
                case DataType.INTEGER if (
                    type(value) is float and value.is_integer() and (abs(value) <= _EXACT)
                ):
                    value = int(value)
                case DataType.TIMESTAMP if type(value) is float:
                    value = _event_time(value)
                case DataType.INTERVAL if type(value) is float:
                    value = microseconds(value)
                case _:
                    return row_from(values, schema)
        found.append(value)
    if seen != len(values):
        return row_from(values, schema)  # names the column that is unknown
    return tuple(found)


def _event_time(seconds: float) -> int:
    time = microseconds(seconds)
    if not EARLIEST <= time < LATEST:
        raise ValueError(f"{seconds} s since 1970 is outside the years 1 to 9999")
    return time
