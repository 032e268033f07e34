"""Check of declared primary keys: plans rely on it that no two rows share one.

Keys stay Arrow columns, with a hash of eight bytes each: as Python rows in a dictionary they took
five times the memory and three times the time (docs/decisions/0096-rows-are-compared-by-hash.md).
Only where two hashes are equal are keys compared.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from static_engine.sources.table_errors import TableError
from static_engine.sources.values.row_hashes import Hashes, row_hashes
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row

_SORTED_ROWS = 1 << 20
"""About so many hashes are sorted at a time."""


def unique_rows(
    definition: SourceDefinition, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows, whose declared primary key is checked: behind the last one.

    Args:
        definition: A table with a primary key.
        batches: Its rows.

    Raises:
        TableError: Two rows have the same key, or one has NULL in it.
    """
    names = ", ".join(definition.schema.names[k] for k in definition.key)
    keys = _Keys()
    for batch in batches:
        columns = [batch.column(k) for k in definition.key]
        if any(column.null_count for column in columns):
            first = min(pc.index(c.is_null(), True).as_py() for c in columns if c.null_count)
            raise TableError(
                f"table {definition.name}: row {keys.count + first + 1} has NULL in its primary "
                f"key ({names})"
            )
        keys.add(columns, batch.num_rows)
        yield batch
    twice = keys.first_twice()
    if twice is not None:
        first, second = twice
        shown = ", ".join(map(repr, keys.key(second)))
        raise TableError(
            f"table {definition.name}: rows {first + 1} and {second + 1} have the same primary key "
            f"({names}) = ({shown:.120})",
            hint="remove one, or declare the table without PRIMARY KEY",
        )


class _Keys:
    """The keys of a table so far. Rows count from 0.

    Attributes:
        count: How many.
    """

    def __init__(self) -> None:
        self._columns: list[list[pa.Array]] = []
        self._hashes: list[Hashes] = []
        self._starts: list[int] = []
        self.count = 0

    def add(self, columns: list[pa.Array], rows: int) -> None:
        """Add the keys of some rows."""
        self._columns.append(columns)
        self._hashes.append(row_hashes(columns, rows))
        self._starts.append(self.count)
        self.count += rows

    def key(self, row: int) -> Row:
        """Return the key of a row."""
        batch = int(np.searchsorted(self._starts, row, side="right")) - 1
        return tuple(c[row - self._starts[batch]].as_py() for c in self._columns[batch])

    def first_twice(self) -> tuple[int, int] | None:
        """Return the first row whose key an earlier one has, behind the first such; or None."""
        repeated = self._repeated_hashes()
        if not len(repeated):
            return None
        rows, hashes = self._rows_with(repeated)
        order = np.argsort(hashes, kind="stable")
        later = order[1:][hashes[order][1:] == hashes[order][:-1]]
        for place in np.sort(later):
            key = self.key(int(rows[place]))
            for earlier in np.flatnonzero(hashes[:place] == hashes[place]):
                if self.key(int(rows[earlier])) == key:
                    return int(rows[earlier]), int(rows[place])
        return None

    def _repeated_hashes(self) -> Hashes:
        parts = 1 + self.count // _SORTED_ROWS
        found = [np.empty(0, np.uint64)]
        for part in range(parts):
            chosen = [h if parts == 1 else h[h % np.uint64(parts) == part] for h in self._hashes]
            hashes = np.sort(np.concatenate([found[0], *chosen]))
            found.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
        return np.sort(np.concatenate(found))

    def _rows_with(self, wanted: Hashes) -> tuple[npt.NDArray[np.int64], Hashes]:
        """Return the rows with one of some sorted hashes, in their order, and their hashes."""
        rows, hashes = [], []
        for start, found in zip(self._starts, self._hashes, strict=True):
            nearest = np.minimum(np.searchsorted(wanted, found), len(wanted) - 1)
            places = np.flatnonzero(wanted[nearest] == found)
            rows.append(places + start)
            hashes.append(found[places])
        return np.concatenate(rows), np.concatenate(hashes)
