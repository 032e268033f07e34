"""Progress of a source: the greatest watermark, and the known rows that have it.

Rows with equal watermarks may come in different polls: those of the greatest one are read again,
and known ones are left out by their digests.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal

Row = tuple[object, ...]

MAX_TIES = 1_000
"""Rows with one watermark."""

_DECODE: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "str": str,
    "Decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}


class WatermarkError(ValueError):
    """A column cannot be a watermark; the text says why."""


class Watermark:
    """Progress of a source; None: nothing read yet.

    Attributes:
        value: The greatest watermark.
    """

    def __init__(self, value: object = None, known: Iterable[str] = ()) -> None:
        self.value = value
        self._known = Counter(known)

    @property
    def ties(self) -> int:
        """Number of known rows that have the greatest watermark."""
        return self._known.total()

    def new_rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows that are not known, and know them from then on.

        Args:
            rows: In order of the watermark, which is their last value; from the greatest known.

        Raises:
            WatermarkError: A watermark is of no type that can be one, or too many rows share it.
        """
        known = self._known.copy()
        for row in rows:
            value = row[-1]
            if value != self.value:
                _check(value)
                self.value = value
                self._known.clear()
                known.clear()
            digest = _digest(row)
            if known[digest]:
                known[digest] -= 1
                continue
            if self.ties >= MAX_TIES:
                raise WatermarkError(
                    f"more than {MAX_TIES:,} rows have the watermark {value!s:.40}; take a column "
                    "that differs from row to row"
                )
            self._known[digest] += 1
            yield row

    def to_remember(self) -> list[object]:
        """Return plain values that `remembered` reads."""
        value = self.value
        text = value.isoformat() if isinstance(value, date) else str(value)
        return [type(value).__name__, text, *self._known.elements()]


def remembered(plain: object) -> Watermark | None:
    """Return what `to_remember` has returned, or None if this is nothing of the kind."""
    match plain:
        case ["NoneType", _]:
            return Watermark()
        case [str(kind), str(text), *known] if kind in _DECODE:
            try:
                return Watermark(_DECODE[kind](text), [str(digest) for digest in known])
            except (ArithmeticError, ValueError):
                return None
    return None


def _check(value: object) -> None:
    kind = type(value).__name__
    if kind not in _DECODE:
        raise WatermarkError(f"a watermark cannot be of type {kind}; take a number, text or time")
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise WatermarkError(f"a row has the watermark {value}: no row comes after it")


def _digest(row: Row) -> str:
    plain = tuple(bytes(each) if isinstance(each, memoryview) else each for each in row)
    return hashlib.blake2b(repr(plain).encode(), digest_size=8).hexdigest()
