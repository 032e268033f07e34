"""Speeds of the engines: of operators at gateways and base sites, and of stored tables."""

from dataclasses import dataclass

from federated_optimizer.statistics.default_facts import (
    FILTER_MICROSECONDS,
    FILTER_ROW_MICROSECONDS,
    GROUP_BYTES,
    GROUP_MICROSECONDS,
    GROUP_ROW_MICROSECONDS,
    JOIN_BYTES,
    JOIN_MICROSECONDS,
    JOIN_ROW_MICROSECONDS,
    LOCAL_FLOOR,
    LOCAL_ROWS,
    LOOKUP_MICROSECONDS,
    ORDER_BYTES,
    RECURSION_BYTES,
    RECURSION_MICROSECONDS,
    SPARK_FLOOR,
    SPARK_ROWS,
    STEP_MICROSECONDS,
    WINDOW_BYTES,
    WINDOW_MICROSECONDS,
)


@dataclass(frozen=True, slots=True)
class Micros:
    """Microseconds of processor in a stream engine: of a step, and of a changed row in an operator.

    Of rows that change at once the first takes as long as a row alone, and each further one the
    price of a `_row`.

    Attributes:
        step: Of a fragment that reads something new of a source, whatever it computes.
        filter: Also of a projection.
        lookup: Of a row of a fragment of which a site looks up who reads it.
        group: Of whatever groups, orders or compares rows.
        recursion: Of each row that it reads or derives.
    """

    step: float = STEP_MICROSECONDS.value
    filter: float = FILTER_MICROSECONDS.value
    filter_row: float = FILTER_ROW_MICROSECONDS.value
    lookup: float = LOOKUP_MICROSECONDS.value
    window: float = WINDOW_MICROSECONDS.value
    join: float = JOIN_MICROSECONDS.value
    join_row: float = JOIN_ROW_MICROSECONDS.value
    group: float = GROUP_MICROSECONDS.value
    group_row: float = GROUP_ROW_MICROSECONDS.value
    recursion: float = RECURSION_MICROSECONDS.value


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes of memory of what operators keep, the rows of sources not counted again.

    Attributes:
        window: Of a row.
        join: Of a row of either side.
        group: Of a group of which only sums are kept.
        order: Of a row in an order, a set, MIN or MAX.
        recursion: Of a row that it reads or derives.
    """

    window: float = WINDOW_BYTES.value
    join: float = JOIN_BYTES.value
    group: float = GROUP_BYTES.value
    order: float = ORDER_BYTES.value
    recursion: float = RECURSION_BYTES.value


@dataclass(frozen=True, slots=True)
class Evaluating:
    """Time of an executor of stored tables.

    Attributes:
        floor: Seconds of the smallest evaluation.
        rows: Read a second beyond it.
    """

    floor: float
    rows: float


@dataclass(frozen=True, slots=True)
class Speeds:
    """All speeds."""

    gateway: Micros = Micros()
    base: Micros = Micros()
    kept: Kept = Kept()
    local: Evaluating = Evaluating(LOCAL_FLOOR.value, LOCAL_ROWS.value)
    spark: Evaluating = Evaluating(SPARK_FLOOR.value, SPARK_ROWS.value)


DEFAULT_SPEEDS = Speeds()
"""Nothing is measured."""
