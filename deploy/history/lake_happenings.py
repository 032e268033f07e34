"""Readings of the lake in the order in which they became known.

The lake gives rows by event time, in slices of bounded size; a reading becomes known at its event
time or later, so rows that were late wait for their turn. Base sites know a reading when it
arrives. A gateway knows its own before: while it was away its readings arrived much later than it
had them, so they are known there at their event times; those of other times when they arrive,
which is a moment later than they were there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deploy.history.happenings import Readings
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType
from streamsql.wire.past_packs import PAST_EPOCH

TARGET_ROWS = 200_000
SHORTEST, LONGEST = 1_000_000, 86_400_000_000
_FIRST = 600_000_000
SKEW = 60_000_000
"""Microseconds that clocks of devices may be ahead; and how late a lost connection is noticed."""

Times = NDArray[np.int64]
_Pack = tuple[int, int]
Absences = Mapping[str, Sequence[tuple[int, int]]]
"""By gateway: when it was away, from and until, in microseconds."""

_MARKS = ("_gateway", "_epoch", "_seq", "_place", "_event_time", "_withdrawn", "_arrived")


class KeptScan(Protocol):
    """Rows of a source in an interval of event time."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield exactly those rows."""
        ...


class KeptReadings(Protocol):
    """A lake, as far as trials read it."""

    def plan(
        self, source: str, since: int, until: int, columns: Sequence[str] | None = None
    ) -> KeptScan:
        """Return the rows of a source with event time in [since, until), in microseconds."""
        ...


@dataclass(slots=True)
class KeptSource:
    """The readings of one source.

    Args:
        lake: Where they are kept.
        definition: Its columns as they are now; those that a reading lacks are NULL.
        direct: Whether base sites read the source themselves.
        absences: When gateways were away.
    """

    lake: KeptReadings
    definition: SourceDefinition
    direct: bool
    absences: Absences = field(default_factory=dict)
    _firsts: dict[tuple[str, int], _Pack | None] = field(default_factory=dict)

    def gateways(self, since: int, until: int) -> set[str]:
        """Return the gateways that have readings in an interval of event time."""
        found: set[str] = set()
        for batch in self.lake.plan(self.definition.name, since, until, ("_gateway",)).batches():
            found.update(batch.column("_gateway").unique().to_pylist())
        return found

    def readings(self, since: int, until: int) -> Iterator[Readings]:
        """Yield the readings with event time in an interval by when they became known.

        Args:
            since: In microseconds; what is older was known by then, or counts as if it were.
            until: Readings that became known later are left out.
        """
        waiting: pa.Table | None = None
        begin, length = since, _FIRST
        while begin < until:
            end = min(begin + length, until)
            tables = [table for table in (waiting, self._table(begin, end)) if table is not None]
            rows = 0 if not tables else tables[-1].num_rows
            if tables:
                table = pa.concat_tables(tables)
                ready, waiting = self._split(table, None if end >= until else end - SKEW)
                yield from self._grouped(ready, until)
            factor = TARGET_ROWS / max(rows, 1)
            length = int(min(max(length * min(factor, 4.0), SHORTEST), LONGEST))
            begin = end

    def _table(self, since: int, until: int) -> pa.Table | None:
        columns = (*self.definition.schema.names, *_MARKS)
        scan = self.lake.plan(self.definition.name, since, until, columns)
        batches = [batch.select(columns) for batch in scan.batches()]
        if not batches:
            return None
        table = pa.Table.from_batches(batches)
        return table.append_column("_known", pa.array(self._known(table)))

    def _known(self, table: pa.Table) -> Times:
        """Return when each row became known where it is read."""
        arrived, happened = _times(table, "_arrived"), _times(table, "_event_time")
        # What was simulated of the past was never on its way: it was known when it happened.
        was = np.asarray(table.column("_epoch").combine_chunks()) == PAST_EPOCH
        known = np.where(was, happened, arrived)
        if self.direct or not self.absences:
            return known
        gateways = table.column("_gateway").combine_chunks().dictionary_encode()
        names, codes = gateways.dictionary.to_pylist(), np.asarray(gateways.indices)
        for code, gateway in enumerate(names):
            own = codes == code
            for left, back in self.absences.get(gateway, ()):
                # Taken while it was away, or just before, and sent when it was back.
                held = own & (happened >= left - SKEW) & (happened < back) & (known >= back)
                if not held.any():
                    continue
                held &= ~_made_after(table, self._first_after(gateway, back))
                known[held] = np.maximum(happened[held], left - SKEW)
        return known

    def _first_after(self, gateway: str, back: int) -> _Pack | None:
        """Return the first pack with a reading that a gateway took when it was back.

        What is late of itself, and was taken then, is told by its number.
        """
        key = (gateway, back)
        if key not in self._firsts:
            columns = ("_gateway", "_epoch", "_seq")
            scan = self.lake.plan(self.definition.name, back, back + _FIRST, columns)
            packs: set[_Pack] = set()
            for batch in scan.batches():
                mine = batch.filter(pc.equal(batch.column("_gateway"), gateway))
                numbers = (mine.column(name).to_pylist() for name in columns[1:])
                packs.update(zip(*numbers, strict=True))
            self._firsts[key] = min(packs, default=None)
        return self._firsts[key]

    @staticmethod
    def _split(table: pa.Table, before: int | None) -> tuple[pa.Table, pa.Table | None]:
        """Return the rows that no later slice can come before, and the others."""
        if before is None or not table.num_rows:
            return table, None
        ready = _times(table, "_known") < before
        return table.filter(pa.array(ready)), table.filter(pa.array(~ready))

    def _grouped(self, table: pa.Table, until: int) -> Iterator[Readings]:
        """Yield rows as readings, each gateway's of one time together."""
        if not table.num_rows:
            return
        orders = [
            (name, "ascending") for name in ("_known", "_gateway", "_epoch", "_seq", "_place")
        ]
        table = table.sort_by(orders)
        known = _times(table, "_known")
        gateways: list[str] = table.column("_gateway").to_pylist()
        events = self._events(table)
        begin = 0
        for end in range(1, len(events) + 1):
            if end < len(events) and (known[end], gateways[end]) == (known[begin], gateways[begin]):
                continue
            if known[begin] <= until:
                at, name = int(known[begin]), self.definition.name
                run = tuple(events[begin:end])
                yield Readings(at, gateways[begin], name, run, self.direct)
            begin = end

    def _events(self, table: pa.Table) -> list[SourceEvent]:
        fields = self.definition.schema.fields
        columns = [_values(table.column(f.name), f.dtype) for f in fields]
        rows = zip(*columns, strict=True)
        times = _times(table, "_event_time").tolist()
        withdrawn = table.column("_withdrawn").to_pylist()
        return [
            SourceEvent(row, ts, delete=bool(gone))
            for row, ts, gone in zip(rows, times, withdrawn, strict=True)
        ]


def _made_after(table: pa.Table, first: _Pack | None) -> NDArray[np.bool_]:
    """Return which rows are in a pack or in later ones of the same gateway."""
    if first is None:
        return np.zeros(table.num_rows, dtype=np.bool_)
    epochs = np.asarray(table.column("_epoch").combine_chunks())
    numbers = np.asarray(table.column("_seq").combine_chunks())
    later: NDArray[np.bool_] = (epochs > first[0]) | ((epochs == first[0]) & (numbers >= first[1]))
    return later


def _times(table: pa.Table, column: str) -> Times:
    """Return a column of times as microseconds since 1970 UTC."""
    found = table.column(column)
    if pa.types.is_timestamp(found.type):
        found = found.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return np.asarray(found.combine_chunks(), dtype=np.int64)


def _values(column: pa.ChunkedArray, dtype: DataType) -> list[Any]:
    if dtype == DataType.TIMESTAMP and pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
