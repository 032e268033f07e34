"""64-bit hashes of rows in Arrow columns, computed column by column.

Rows that are equal in the language have equal hashes: NULL is NULL, 0.0 is -0.0, and NaN is NaN.
Unequal rows may have equal hashes, so whoever finds two compares the rows.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

# Nobody outside can prepare rows of equal hashes: the seed differs by process, as that of texts.
_SEED = np.uint64(int.from_bytes(os.urandom(8), "little"))
_NULL = np.uint64(0x9E3779B97F4A7C15)
_TEXTS = 16_384
_TEXT_BYTES = 4 << 20
"""So many texts, of so many bytes, are Python objects at a time."""


def row_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Return one hash per row.

    Args:
        columns: Of the types of `arrow_schema`, or large texts.
        rows: The length of each column, which counts where there is none.
    """
    hashes = np.full(rows, _SEED, dtype=np.uint64)
    for column in columns:
        values = _bits(column)
        if column.null_count:
            values = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, values)
        hashes = _mixed(hashes * np.uint64(31) + values)
    return hashes


def same_values(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    """Return where two columns hold the same value, or both NULL, or both NaN."""
    same = pc.fill_null(pc.equal(left, right), False)
    if left.null_count and right.null_count:
        same = pc.or_(same, pc.and_(left.is_null(), right.is_null()))
    if pa.types.is_floating(left.type):
        nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
        same = pc.or_(same, pc.fill_null(nan, False))
    return np.asarray(same.to_numpy(zero_copy_only=False))


def _bits(column: pa.Array) -> Hashes:
    """Return 64 bits per value, the same for equal ones; anything for NULL."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        size = max(1, min(_TEXTS, len(column) * _TEXT_BYTES // max(column.nbytes, 1)))
        parts = (column.slice(at, size) for at in range(0, len(column), size))
        found = [np.fromiter(map(hash, p.to_pylist()), np.int64, len(p)) for p in parts]
        return np.concatenate([np.empty(0, np.int64), *found]).view(np.uint64)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    values: npt.NDArray[Any] = column.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        values = values + 0.0  # of -0.0 that makes 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.uint64)
    return values.astype(np.int64, copy=False).view(np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """Return values all of whose bits depend on all bits (the last step of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
