"""A fact: a measured number, with its range, when it was measured, how sure it is, and its origin.

Times are microseconds since 1970 UTC; rates are per second.
"""

from enum import StrEnum
from math import isfinite
from typing import NamedTuple

import msgspec

from streamsql.data.types import MICROSECONDS

HOUR = 3_600 * MICROSECONDS
DAY = 24 * HOUR


class SubjectKind(StrEnum):
    """Kinds of things that facts are about."""

    SOURCE = "source"
    TABLE = "table"
    COLUMN = "column"
    PREDICATE = "predicate"
    RECURSION = "recursion"
    ENGINE = "engine"
    SITE = "site"

    # An Enum's own is a function in Python: keys of facts are hashed twice as fast with this.
    __hash__ = str.__hash__


class Subject(NamedTuple):
    """The thing that a fact is about.

    Attributes:
        name: Of the source or table in lower case, the key of the recursion, or the engine.
        part: The gateway whose part of a source it is; of a column or predicate its text.
    """

    kind: SubjectKind
    name: str
    part: str = ""


class Quantity(StrEnum):
    """Quantities that facts give."""

    ROWS = "rows"
    SENSORS = "sensors"
    INSERTS = "inserts a second"
    CHANGES = "changes a second"
    ROW_BYTES = "bytes a row"
    TEXT_BYTES = "bytes of a text"
    DISTINCT = "distinct values"
    LOCAL_DISTINCT = "distinct values at a gateway"
    COMMON = "share of the most common value"
    NULLS = "share of NULL"
    SAME = "share of readings that keep the value"
    LEAST = "least value"
    DECILE_1 = "value that 10 % are at most"
    DECILE_2 = "value that 20 % are at most"
    DECILE_3 = "value that 30 % are at most"
    DECILE_4 = "value that 40 % are at most"
    MEDIAN = "median"
    DECILE_6 = "value that 60 % are at most"
    DECILE_7 = "value that 70 % are at most"
    DECILE_8 = "value that 80 % are at most"
    DECILE_9 = "value that 90 % are at most"
    GREATEST = "greatest value"
    SELECTIVITY = "selectivity"
    LINK_COST = "cost of a link"
    VIEW_ROWS = "rows of the view"
    VIEW_CHANGES = "changes of the view a change"
    ROWS_A_SECOND = "rows a second"
    FLOOR_SECONDS = "seconds of the smallest evaluation"
    CONSTANT = "constant of the optimizer"
    DELIVERED = "share of batches that need no repetition"

    __hash__ = str.__hash__


DECILES = (
    Quantity.LEAST,
    Quantity.DECILE_1,
    Quantity.DECILE_2,
    Quantity.DECILE_3,
    Quantity.DECILE_4,
    Quantity.MEDIAN,
    Quantity.DECILE_6,
    Quantity.DECILE_7,
    Quantity.DECILE_8,
    Quantity.DECILE_9,
    Quantity.GREATEST,
)
"""Quantiles of a column of numbers, in order."""

HALF_LIVES = {
    Quantity.INSERTS: HOUR,
    Quantity.CHANGES: HOUR,
    Quantity.DELIVERED: HOUR,
    Quantity.ROWS_A_SECOND: 30 * DAY,
    Quantity.FLOOR_SECONDS: 30 * DAY,
    Quantity.CONSTANT: 30 * DAY,
}
"""Time in which the confidence of a fact halves, where it is not a day: rates follow the hour of
the day, engines stay as they are."""


class Origin(StrEnum):
    """Origins of facts, in words."""

    COUNTED = "counted at the sites"
    ANNOUNCED = "announced by the gateways"
    LINKS = "published links"
    TABLES = "told by the static engine"
    TIMED = "timed by the static engine"
    CALIBRATED = "calibrated"


class Fact(msgspec.Struct, frozen=True):
    """One number.

    Attributes:
        low: The least that it may have been when it was measured.
        high: The most.
        at: When it was measured; of a default 0.
        confidence: When it was measured, from 0 to 1: 1 is an exact count.
    """

    subject: Subject
    quantity: Quantity
    value: float
    low: float
    high: float
    at: int
    confidence: float
    origin: Origin

    @property
    def key(self) -> tuple[Subject, Quantity]:
        """Identifies the number."""
        return (self.subject, self.quantity)

    @property
    def is_finite(self) -> bool:
        """Whether its numbers are neither infinite nor NaN."""
        return isfinite(self.value) and isfinite(self.low) and isfinite(self.high)

    def confidence_at(self, now: int) -> float:
        """Return how sure it still is: half as much after its half-life."""
        age = max(now - self.at, 0)
        faded: float = 0.5 ** (age / HALF_LIVES.get(self.quantity, DAY))
        return self.confidence * faded

    def range_at(self, now: int, low: float, high: float) -> tuple[float, float]:
        """Return the range in which the number is now: it widens to what is usual.

        Args:
            now: Not before the fact was measured.
            low: The least that is usual, whatever was measured.
            high: The most.
        """
        sure = self.confidence_at(now)
        return (
            self.low * sure + min(low, self.low) * (1 - sure),
            self.high * sure + max(high, self.high) * (1 - sure),
        )


def exact(subject: Subject, quantity: Quantity, value: float, at: int, origin: Origin) -> Fact:
    """Return the fact of a number that was counted and not estimated."""
    return Fact(subject, quantity, value, value, value, at, 1.0, origin)


def share(  # noqa: PLR0913, PLR0917 - what a share is made of
    subject: Subject, quantity: Quantity, part: int, whole: int, at: int, origin: Origin
) -> Fact:
    """Return the fact of a share that was counted: `part` of `whole`, which is above 0.

    Its range is Wilson's interval of 95 %.
    """
    z = 1.96
    value = part / whole
    below = 1 + z * z / whole
    middle = (value + z * z / (2 * whole)) / below
    half = z / below * (value * (1 - value) / whole + z * z / (4 * whole * whole)) ** 0.5
    low, high = max(min(middle - half, value), 0.0), min(max(middle + half, value), 1.0)
    return Fact(subject, quantity, value, low, high, at, sureness(whole), origin)


_SURE_OF = 100.0
"""Rows after which what was counted of them is as sure as not."""


def sureness(rows: int) -> float:
    """Return how sure a number is that was counted over so many rows."""
    return rows / (rows + _SURE_OF)
