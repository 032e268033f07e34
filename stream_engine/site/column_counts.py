"""Counts of what is in the columns of a site's sources, from a sample of their readings.

A step only appends its changes to a short queue, in place of each text a number that also has its
size. Once in ten seconds the queue is looked at: at most `RECENT` changes of a source, however many
there were, and so few sources at once that the site hardly waits.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from math import isfinite
from zlib import crc32

from stream_engine.state.columns import picker
from stream_engine.state.source_relation import TimedDelta, TimedRow
from streamsql.algebra.operators import Scan
from streamsql.data.types import MICROSECONDS, DataType, Row, Value
from streamsql.wire.site_messages import (
    DECILES,
    HASH_BYTES,
    MOST_COLUMNS,
    MOST_HASHES,
    ColumnCount,
    SourceCount,
)

RECENT = 256
"""Changes of a source that one look sees: the last ones."""
SAMPLE = 256
"""Readings in the sample of a source."""
RECENT_VALUES = 2_048
"""Values in those changes: of sources of many columns there are fewer changes."""
SAMPLE_VALUES = 4_096
"""Values in the sample."""
LOOK_VALUES = 1_024
"""Values after which a look at several sources ends; the others wait for the next one."""
REMEMBERED = 4_096
"""A reading displaces one of the sample as if there had been so many at most: it gets newer."""
LOOK_MICROSECONDS = 10 * MICROSECONDS
"""Between two looks at a source."""
LEAST = 16
"""Readings before the first report."""
AGAIN_MICROSECONDS = 600 * MICROSECONDS
"""A report is made when the readings have doubled, and otherwise so long after the last one."""
MAX_SOURCES = 100
"""Sources of a site that are counted: the first ones with readings."""
_NUMBERS = (DataType.INTEGER, DataType.DOUBLE)
_HASHED = 32
"""Bits of the number that is in place of a text; those above are the size of the text in bytes."""


class ColumnCounts:
    """Counts of the columns of declared sources of a site.

    State, of each source: the queue, a sample of readings, and of each column at most `MOST_HASHES`
    hashes; no text.
    """

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}  # first those that wait longest for a look

    def note(self, scan: Scan, delta: TimedDelta) -> None:
        """Note the change of a declared source in one step."""
        source = self._sources.get(scan.source)
        if source is None or (source.scan is not scan and source.scan != scan):
            if source is None and len(self._sources) >= MAX_SOURCES:
                return
            source = self._sources[scan.source] = _Source(scan)
        source.note(delta)

    def forget(self, name: str) -> None:
        """Discard a source that is declared no more."""
        self._sources.pop(name, None)

    def report(self, now: int) -> dict[str, SourceCount]:
        """Look at a few sources; return the counts that are news, by source, once.

        Args:
            now: Wall-clock microseconds.
        """
        told: dict[str, SourceCount] = {}
        values = 0
        for name, source in list(self._sources.items()):
            if source.looked_at is not None and 0 <= now - source.looked_at < LOOK_MICROSECONDS:
                continue
            if values >= LOOK_VALUES:
                break
            self._sources[name] = self._sources.pop(name)
            values += source.look(now)
            if source.is_due(now):
                told[name] = source.told(now)
                values = LOOK_VALUES
        return told


class _Source:
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.looked_at: int | None = None
        width = len(scan.columns)
        places = list(range(min(width, MOST_COLUMNS)))
        self.fields = [scan.columns.fields[place] for place in places]
        places += [place for place in scan.key if place >= MOST_COLUMNS]
        self._picked = None if len(places) == width else picker(tuple(places))
        self._has_text = any(scan.columns.fields[p].dtype == DataType.TEXT for p in places)
        self._key_of = picker(tuple(places.index(place) for place in scan.key))
        kept = max(len(places), 1)
        recent = min(RECENT, max(RECENT_VALUES // kept, 1))
        self._recent: deque[tuple[TimedRow, int]] = deque(maxlen=recent)
        self._rows = 0
        self._sample: list[Row] = []
        self._most = min(SAMPLE, max(SAMPLE_VALUES // kept, 1))
        self._chance = 1
        self._compared = 0
        self._same = [0] * len(self.fields)
        self._hashes = [_Hashes() for _ in self.fields]
        self._told: tuple[int, int] | None = None  # rows, and when

    def note(self, delta: TimedDelta) -> None:
        """Put the last changes of a step into the queue."""
        most = self._recent.maxlen or 0
        items: Iterable[tuple[TimedRow, int]] = delta.items()
        if len(delta) > most:
            items = islice(items, len(delta) - most, None)
        if self._has_text or self._picked:
            items = [((time, self._cut(row)), weight) for (time, row), weight in items]
        self._recent.extend(items)

    def _cut(self, row: Row) -> Row:
        """Return the values that are counted, a number for each text."""
        kept = row if self._picked is None else self._picked(row)
        return tuple([_number_of(value) if type(value) is str else value for value in kept])

    def look(self, now: int) -> int:
        """Take what is in the queue; return how many values were in it."""
        self.looked_at = now
        came: list[Row] = []
        pairs: list[tuple[Row, Row]] = []
        gone: dict[Row, TimedRow] = {}
        new: dict[Row, TimedRow] = {}
        for timed, weight in self._recent:
            row = timed[1]
            if weight > 0:
                came += [row] * min(weight, RECENT - len(came))
            if self.scan.key:
                # A reading and the one in whose place it is stand in one change, in any order.
                key = self._key_of(row)
                mine, others = (new, gone) if weight > 0 else (gone, new)
                other = others.pop(key, None)
                if other is None:
                    mine[key] = timed
                elif other != timed:  # else its time to live is over
                    pairs.append((row, other[1]))
        looked = len(self._recent) * len(self.fields)
        self._recent.clear()
        self._take_pairs(pairs)
        self._take_rows(came)
        return looked

    def _take_pairs(self, pairs: Iterable[tuple[Row, Row]]) -> None:
        for one, other in pairs:
            self._compared += 1
            for position in range(len(self.fields)):
                self._same[position] += one[position] == other[position]
        if self._compared > REMEMBERED:
            self._compared //= 2
            self._same = [same // 2 for same in self._same]

    def _take_rows(self, rows: Sequence[Row]) -> None:
        columns = zip(*rows, strict=True)
        for field, hashes, values in zip(self.fields, self._hashes, columns, strict=False):
            if field.dtype != DataType.TIMESTAMP:
                hashes.add(set(values))
        for row in rows:
            self._rows += 1
            if len(self._sample) < self._most:
                self._sample.append(row)
                continue
            place = self._random() % min(self._rows, REMEMBERED)
            if place < self._most:
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
                    each.to_bytes(HASH_BYTES, "big") for each in self._hashes[position].values
                ),
                *_most_common([row[position] for row in self._sample]),
                sum(row[position] is None for row in self._sample),
                min(self._same[position], self._compared),
                _deciles([row[position] for row in self._sample])
                if field.dtype in _NUMBERS
                else (),
                _size([row[position] for row in self._sample])
                if field.dtype == DataType.TEXT
                else None,
            )
            for position, field in enumerate(self.fields)
            # Times are always others.
            if field.dtype != DataType.TIMESTAMP
        }
        name = self.scan.source
        return SourceCount(self._rows, len(self._sample), self._compared, columns, name)


class _Hashes:
    """The least hashes of the distinct values of a column: how many there are follows from them."""

    def __init__(self) -> None:
        self.values: list[int] = []  # sorted

    def add(self, values: Iterable[Value]) -> None:
        below = self.values[-1] if len(self.values) == MOST_HASHES else 256**HASH_BYTES
        new = {h for v in values if v is not None and (h := _hash(v)) < below}
        if new:
            self.values = sorted(new.union(self.values))[:MOST_HASHES]


def _number_of(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    # A cryptographic hash takes ten times as long; a look makes one of this number.
    return (len(data) << _HASHED) + crc32(data)


def _size(numbers: Sequence[Value]) -> int:
    """Return the bytes of the texts whose numbers these are."""
    return sum(number >> _HASHED for number in numbers if isinstance(number, int))


def _hash(value: Value) -> int:
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=HASH_BYTES).digest(), "big")


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
