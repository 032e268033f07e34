"""Counts of what is in the columns of a site's sources, from a sample of their readings.

A step only appends its changes to a short queue. Once in ten seconds the queue is looked at: at
most `RECENT` changes of a source, however many there were.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from math import isfinite

from stream_engine.state.columns import picker
from stream_engine.state.source_relation import TimedDelta, TimedRow
from streamsql.algebra.operators import Scan
from streamsql.data.types import MICROSECONDS, DataType, Row, Value
from streamsql.wire.site_messages import (
    DECILES,
    HASH_BYTES,
    MOST_HASHES,
    ColumnCount,
    SourceCount,
)

RECENT = 512
"""Changes of a source that one look sees: the last ones."""
SAMPLE = 256
"""Readings in the sample of a source."""
REMEMBERED = 4_096
"""A reading displaces one of the sample as if there had been so many at most: it gets newer."""
LOOK_MICROSECONDS = 10 * MICROSECONDS
LEAST = 16
"""Readings before the first report."""
AGAIN_MICROSECONDS = 600 * MICROSECONDS
"""A report is made when the readings have doubled, and otherwise so long after the last one."""
TOLD_MICROSECONDS = 15 * MICROSECONDS
"""A report stands in the site's states for so long: in one or two, as one is sent each 10 s."""
MAX_REPORTED = 200
"""Sources that a site reports on."""
_NUMBERS = (DataType.INTEGER, DataType.DOUBLE)


class ColumnCounts:
    """Counts of the columns of all declared sources of a site.

    State, of each source: the queue, a sample of readings, and of each column at most twice
    `MOST_HASHES` hashes.
    """

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
        self._looked_at: int | None = None
        self._told_at = 0
        self._told: dict[str, SourceCount] = {}

    def note(self, scan: Scan, delta: TimedDelta) -> None:
        """Note the change of a declared source in one step."""
        source = self._sources.get(scan.source)
        if source is None or (source.scan is not scan and source.scan != scan):
            source = self._sources[scan.source] = _Source(scan)
        # 0.05 µs a change.
        source.recent.extend(delta.items())

    def forget(self, name: str) -> None:
        """Discard a source that is declared no more."""
        self._sources.pop(name, None)
        self._told = {of: count for of, count in self._told.items() if of != name}

    def report(self, now: int) -> dict[str, SourceCount]:
        """Return the counts that are news, by source; the same ones for a few seconds.

        Args:
            now: Wall-clock microseconds.
        """
        if self._looked_at is not None and 0 <= now - self._looked_at < LOOK_MICROSECONDS:
            return self._told
        self._looked_at = now
        for source in self._sources.values():
            source.look()
        due = [name for name, source in self._sources.items() if source.is_due(now)]
        if due:
            self._told_at = now
            self._told = {name: self._sources[name].told(now) for name in due[:MAX_REPORTED]}
        elif now - self._told_at >= TOLD_MICROSECONDS:
            self._told = {}
        return self._told


class _Source:
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.recent: deque[tuple[TimedRow, int]] = deque(maxlen=RECENT)
        self._key_of = picker(scan.key)
        self._rows = 0
        self._sample: list[Row] = []
        self._chance = 1
        self._compared = 0
        width = len(scan.columns)
        self._same = [0] * width
        self._hashes = [_Hashes() for _ in range(width)]
        self._told: tuple[int, int] | None = None  # rows, and when

    def look(self) -> None:
        """Take what is in the queue."""
        came: list[Row] = []
        pairs: list[tuple[Row, Row]] = []
        gone: dict[Row, TimedRow] = {}
        new: dict[Row, TimedRow] = {}
        for timed, weight in self.recent:
            row = timed[1]
            if weight > 0:
                came += [row] * min(weight, RECENT)
            if self.scan.key:
                # A reading and the one in whose place it is stand in one change, in any order.
                key = self._key_of(row)
                mine, others = (new, gone) if weight > 0 else (gone, new)
                other = others.pop(key, None)
                if other is None:
                    mine[key] = timed
                elif other != timed:  # else its time to live is over
                    pairs.append((row, other[1]))
        self.recent.clear()
        self._take_pairs(pairs)
        self._take_rows(came)

    def _take_pairs(self, pairs: Iterable[tuple[Row, Row]]) -> None:
        for one, other in pairs:
            self._compared += 1
            for position, value in enumerate(one):
                self._same[position] += value == other[position]
        if self._compared > REMEMBERED:
            self._compared //= 2
            self._same = [same // 2 for same in self._same]

    def _take_rows(self, rows: Sequence[Row]) -> None:
        for hashes, values in zip(self._hashes, zip(*rows, strict=True), strict=False):
            hashes.add(set(values))
        for row in rows:
            self._rows += 1
            if len(self._sample) < SAMPLE:
                self._sample.append(row)
                continue
            place = self._random() % min(self._rows, REMEMBERED)
            if place < SAMPLE:
                self._sample[place] = row

    def _random(self) -> int:
        # Knuth's MMIX: a gateway has no other use for the module `random`.
        self._chance = (self._chance * 6364136223846793005 + 1442695040888963407) % 2**64
        return self._chance >> 33

    def is_due(self, now: int) -> bool:
        if self._rows < LEAST:
            return False
        if self._told is None:
            return True
        rows, at = self._told
        return self._rows >= 2 * rows or (self._rows > rows and now - at >= AGAIN_MICROSECONDS)

    def told(self, now: int) -> SourceCount:
        """Return the counts, and note that they are told."""
        self._told = (self._rows, now)
        columns = {
            field.name: ColumnCount(
                b"".join(
                    each.to_bytes(HASH_BYTES, "big")
                    for each in sorted(self._hashes[position].values)[:MOST_HASHES]
                ),
                *_most_common([row[position] for row in self._sample]),
                sum(row[position] is None for row in self._sample),
                min(self._same[position], self._compared),
                _deciles([row[position] for row in self._sample])
                if field.dtype in _NUMBERS
                else (),
            )
            for position, field in enumerate(self.scan.columns.fields)
            # Times are always others.
            if field.dtype != DataType.TIMESTAMP
        }
        return SourceCount(self._rows, len(self._sample), self._compared, columns)


class _Hashes:
    """The least hashes of the distinct values of a column: how many there are follows from them."""

    def __init__(self) -> None:
        self.values: set[int] = set()
        self._below = 256**HASH_BYTES

    def add(self, values: Iterable[Value]) -> None:
        self.values.update([h for v in values if v is not None and (h := _hash(v)) < self._below])
        if len(self.values) > 2 * MOST_HASHES:
            self.values = set(sorted(self.values)[:MOST_HASHES])
            self._below = max(self.values)


def _hash(value: Value) -> int:
    text = repr(value).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=HASH_BYTES).digest(), "big")


def _most_common(values: Sequence[Value]) -> tuple[int, int]:
    """Return the hash of the most common value, and how often it is there; (0, 0): all are NULL."""
    found = Counter(value for value in values if value is not None).most_common(1)
    return (_hash(found[0][0]), found[0][1]) if found else (0, 0)


def _deciles(values: Sequence[Value]) -> tuple[float, ...]:
    numbers = sorted(float(v) for v in values if isinstance(v, int | float) and isfinite(v))
    if not numbers:
        return ()
    last = len(numbers) - 1
    return tuple(numbers[round(part * last / (DECILES - 1))] for part in range(DECILES))
