"""Constants of the optimizer that `pando calibrate` measures, as facts, and what may be one."""

from collections.abc import Mapping
from math import isfinite, sqrt

from federated_optimizer.statistics import default_facts as defaults
from federated_optimizer.statistics.default_facts import Default
from federated_optimizer.statistics.fact import Fact, Origin, Quantity, Subject, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from streamsql.wire.site_messages import ENGINES

EVERYWHERE, GATEWAYS, BASE = "", "gateways", "base"
PLACES = (EVERYWHERE, GATEWAYS, BASE)
"""Sites that a constant is about; one about all sites holds where there is none about some."""

OF_OPERATORS: Mapping[str, Default] = {
    "step_microseconds": defaults.STEP_MICROSECONDS,
    "filter_microseconds": defaults.FILTER_MICROSECONDS,
    "filter_row_microseconds": defaults.FILTER_ROW_MICROSECONDS,
    "lookup_microseconds": defaults.LOOKUP_MICROSECONDS,
    "window_microseconds": defaults.WINDOW_MICROSECONDS,
    "join_microseconds": defaults.JOIN_MICROSECONDS,
    "join_row_microseconds": defaults.JOIN_ROW_MICROSECONDS,
    "group_microseconds": defaults.GROUP_MICROSECONDS,
    "group_row_microseconds": defaults.GROUP_ROW_MICROSECONDS,
    "recursion_microseconds": defaults.RECURSION_MICROSECONDS,
}
"""Constants that may differ between gateways and base sites."""

CONSTANTS: Mapping[str, Default] = {
    **OF_OPERATORS,
    "window_bytes": defaults.WINDOW_BYTES,
    "join_bytes": defaults.JOIN_BYTES,
    "group_bytes": defaults.GROUP_BYTES,
    "order_bytes": defaults.ORDER_BYTES,
    "recursion_bytes": defaults.RECURSION_BYTES,
    "batch_microseconds": defaults.BATCH_MICROSECONDS,
    "byte_nanoseconds": defaults.BYTE_NANOSECONDS,
    "message_microseconds": defaults.MESSAGE_MICROSECONDS,
    "hop_milliseconds": defaults.HOP_MILLISECONDS,
    "local_floor": defaults.LOCAL_FLOOR,
    "local_rows": defaults.LOCAL_ROWS,
}
"""Constants that can be calibrated, by name."""

Key = tuple[Subject, Quantity]

_LOCAL, _SPARK = (Subject(SubjectKind.ENGINE, name) for name in ENGINES)
TIMED: Mapping[str, Key] = {
    "local_floor": (_LOCAL, Quantity.FLOOR_SECONDS),
    "local_rows": (_LOCAL, Quantity.ROWS_A_SECOND),
    "spark_floor": (_SPARK, Quantity.FLOOR_SECONDS),
    "spark_rows": (_SPARK, Quantity.ROWS_A_SECOND),
}
"""Constants that the static engine measures itself while queries run."""
SPARK: Mapping[str, Default] = {
    "spark_floor": defaults.SPARK_FLOOR,
    "spark_rows": defaults.SPARK_ROWS,
}
"""Constants that only the static engine measures."""
BEYOND = 100.0
"""A number so many times beyond the usual range is an error of whoever measured."""
_SURE = 0.9
"""Of a measurement of any number of rounds: on another day the machine does other things."""
_ERROR = 0.93
"""Standard error of a median, as a part of the range of the quartiles over the root of the rounds.

R. McGill, J. Tukey and W. Larsen, "Variations of box plots", 1978: 1.25 / 1.35 of it.
"""


def subject_of(name: str, place: str = EVERYWHERE) -> Key:
    """Return what the fact about a constant is about."""
    return TIMED.get(name) or (Subject(SubjectKind.ENGINE, name, place), Quantity.CONSTANT)


def constant_of(facts: Facts, name: str, place: str = EVERYWHERE) -> float:
    """Return the value of a constant at some sites: as it was calibrated, or the default."""
    found = facts.find(*subject_of(name, place)) or facts.find(*subject_of(name))
    return CONSTANTS[name].value if found is None else found.value


def words_of(name: str, place: str = EVERYWHERE) -> str:
    """Return a constant in words, with its unit.

    Examples:
        >>> words_of("hop_milliseconds"), words_of("join_microseconds", "gateways")[-12:]
        ('milliseconds from a site to the next', ' at gateways')
    """
    where = {GATEWAYS: " at gateways", BASE: " at base sites"}.get(place, "")
    return {**CONSTANTS, **SPARK}[name].words + where


WORDS: Mapping[Key, str] = {
    **{subject_of(name): words_of(name) for name in (*CONSTANTS, *SPARK)},
    **{
        subject_of(name, place): words_of(name, place)
        for name in OF_OPERATORS
        for place in (GATEWAYS, BASE)
    },
}
"""Words for facts about constants, which then stand in place of the defaults."""


def refused(name: str, place: str, value: float, low: float, high: float) -> str:
    """Return why numbers are no measurement of a constant; empty: they may be one.

    Args:
        name: Of the constant.
        place: One of `PLACES`.
        value: Median of several rounds.
        low: The first quartile.
        high: The third quartile.

    Examples:
        >>> refused("hop_milliseconds", "", 1.0, 0.5, 2.0)
        ''
        >>> refused("hop_milliseconds", "", -1.0, -1.0, 2.0)
        'hop_milliseconds is from 0.005 to 10,000, not -1'
    """
    default = CONSTANTS.get(name)
    if default is None:
        return f"{name!r:.60} is no constant that can be calibrated"
    if place not in PLACES or (place and name not in OF_OPERATORS):
        return f"{name} has no value of its own for {place!r:.60}"
    least, most = default.low / BEYOND, default.high * BEYOND
    for number in (value, low, high):
        if not isfinite(number) or not least <= number <= most:
            return f"{name} is from {least:g} to {most:,g}, not {number:g}"
    return "" if low <= value <= high else f"{name}: {value:g} is not from {low:g} to {high:g}"


def calibrated(  # noqa: PLR0913, PLR0917 - what a measurement is made of
    name: str, place: str, value: float, low: float, high: float, rounds: int, at: int
) -> Fact:
    """Return the fact of a measured constant that `refused` does not refuse.

    It is the less sure, the fewer rounds there were and the farther they are apart.
    """
    error = _ERROR * (high - low) / sqrt(rounds) / value
    sure = _SURE * rounds / (rounds + 1) / (1 + error)
    return Fact(*subject_of(name, place), value, low, high, at, sure, Origin.CALIBRATED)
