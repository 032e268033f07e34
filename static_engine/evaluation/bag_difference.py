"""The difference of two relations in Arrow columns, without a Python object per row.

Law: `old.delta()` plus `difference(new, old).delta()` is `new.delta()`, whatever hashes are equal.

Method: rows that stand at the same place in both are compared there; a file that is read again
mostly has them. Of the rest each row gets a hash. The k-th entry of a hash on one side is paired
with the k-th on the other, and pairs are compared as rows. What has no equal partner is the change.

Work: linear in the rows, n log n in those that have moved. Memory beyond the columns: 40 bytes for
each row that has moved.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from static_engine.evaluation.bags import Bag, Places
from static_engine.sources.values.row_hashes import Hashes, row_hashes, same_values

_COMPARED_ROWS = 1 << 16
_SORTED_ROWS = 1 << 20
"""About so many rows are compared, and hashes sorted, at a time."""


def difference(new: Bag, old: Bag) -> Bag:
    """Return the change that turns `old` into `new`; both have the same schema."""
    added, removed = _moved(new, old)
    hashes = _hashes(new, added), _hashes(old, removed)
    parts = np.uint64(1 + (len(added) + len(removed)) // _SORTED_ROWS)
    changes = _Changes(new, old)
    for part in range(int(parts)):
        chosen = [h % parts == part for h in hashes]
        left, right = added[chosen[0]], removed[chosen[1]]
        pairs = _paired(hashes[0][chosen[0]], hashes[1][chosen[1]])
        changes.compare(left[pairs[0]], right[pairs[1]])
        changes.add(np.delete(left, pairs[0]))
        changes.remove(np.delete(right, pairs[1]))
    return changes.result()


class _Changes:
    """The entries of two bags that make the difference, as they are found."""

    def __init__(self, new: Bag, old: Bag) -> None:
        self._new, self._old = new, old
        self._added: list[tuple[Places, Places]] = []
        self._removed: list[tuple[Places, Places]] = []

    def add(self, places: Places) -> None:
        """Count entries of the new bag."""
        self._added.append((places, self._new.weights[places]))

    def remove(self, places: Places) -> None:
        """Count entries of the old bag, negatively."""
        self._removed.append((places, -self._old.weights[places]))

    def compare(self, left: Places, right: Places) -> None:
        """Count pairs whose rows differ, and the difference in weight of the others."""
        for at in range(0, len(left), _COMPARED_ROWS):
            news, olds = left[at : at + _COMPARED_ROWS], right[at : at + _COMPARED_ROWS]
            same = _same_rows(_taken(self._new, news), _taken(self._old, olds), len(news))
            self.add(news[~same])
            self.remove(olds[~same])
            weights = self._new.weights[news] - self._old.weights[olds]
            other = same & (weights != 0)
            self._added.append((news[other], weights[other]))

    def result(self) -> Bag:
        """Return the difference, in the order of the rows."""
        sides = []
        for bag, found in ((self._old, self._removed), (self._new, self._added)):
            places = np.concatenate([places for places, _ in found])
            order = np.argsort(places, kind="stable")
            weights = np.concatenate([weights for _, weights in found])
            sides.append(bag.take(places[order], weights[order]))
        pairs = zip(*(side.columns for side in sides), strict=True)
        columns = tuple(pa.concat_arrays(pair) for pair in pairs)
        return Bag(self._new.schema, columns, np.concatenate([side.weights for side in sides]))


def _moved(new: Bag, old: Bag) -> tuple[Places, Places]:
    """Return the entries on both sides that do not stand at the same place on the other."""
    both = min(len(new), len(old))
    found = []
    for at in range(0, both, _COMPARED_ROWS):
        rows = min(_COMPARED_ROWS, both - at)
        left, right = ([c.slice(at, rows) for c in bag.columns] for bag in (new, old))
        same = _same_rows(left, right, rows)
        same &= new.weights[at : at + rows] == old.weights[at : at + rows]
        found.append(np.flatnonzero(~same) + at)
    added, removed = (
        np.concatenate([*found, np.arange(both, len(bag))]).astype(np.int64) for bag in (new, old)
    )
    return added, removed


def _same_rows(left: list[pa.Array], right: list[pa.Array], rows: int) -> npt.NDArray[np.bool_]:
    pairs = zip(left, right, strict=True)
    return reduce(np.logical_and, (same_values(*pair) for pair in pairs), np.ones(rows, np.bool_))


def _hashes(bag: Bag, places: Places) -> Hashes:
    def parts() -> Iterator[Hashes]:
        for at in range(0, len(places), _COMPARED_ROWS):
            some = places[at : at + _COMPARED_ROWS]
            yield row_hashes(_taken(bag, some), len(some))

    return np.concatenate([np.empty(0, np.uint64), *parts()])


def _taken(bag: Bag, places: Places) -> list[pa.Array]:
    indices = pa.array(places)
    return [column.take(indices) for column in bag.columns]


def _paired(left: Hashes, right: Hashes) -> tuple[Places, Places]:
    """Return places on both sides of equal hashes, the k-th of a hash with the k-th."""
    orders = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    left, right = left[orders[0]], right[orders[1]]
    rank = np.arange(len(left)) - np.searchsorted(left, left)
    places = np.searchsorted(right, left) + rank
    paired = places < np.searchsorted(right, left, side="right")
    return orders[0][paired], orders[1][places[paired]]
