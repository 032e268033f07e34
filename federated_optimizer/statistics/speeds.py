"""Speeds of the engines: of operators at gateways and base sites, and of stored tables."""

from dataclasses import dataclass

from federated_optimizer.statistics.default_facts import (
    FILTER_MICROSECONDS,
    GROUP_MICROSECONDS,
    JOIN_MICROSECONDS,
    LOCAL_FLOOR,
    LOCAL_ROWS,
    RECURSION_MICROSECONDS,
    SPARK_FLOOR,
    SPARK_ROWS,
)


@dataclass(frozen=True, slots=True)
class Micros:
    """Microseconds of processor that a changed row takes in an operator of a stream engine.

    Attributes:
        filter: Also of a projection.
        group: Of whatever groups, orders or compares rows.
    """

    filter: float = FILTER_MICROSECONDS.value
    join: float = JOIN_MICROSECONDS.value
    group: float = GROUP_MICROSECONDS.value
    recursion: float = RECURSION_MICROSECONDS.value


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
    local: Evaluating = Evaluating(LOCAL_FLOOR.value, LOCAL_ROWS.value)
    spark: Evaluating = Evaluating(SPARK_FLOOR.value, SPARK_ROWS.value)


DEFAULT_SPEEDS = Speeds()
"""Nothing is measured."""
