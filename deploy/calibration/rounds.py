"""Medians of several rounds, and how far the rounds are apart."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

LEAST = 4
"""Rounds after which a spread can be told."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured constant.

    Attributes:
        name: Of the constant.
        value: Median of the rounds.
        low: The first quartile.
        high: The third.
        rounds: There were.
    """

    name: str
    value: float
    low: float
    high: float
    rounds: int


def measurement(name: str, rounds: Sequence[float]) -> Measurement:
    """Return the median and the quartiles of what rounds gave.

    Examples:
        >>> measurement("hop_milliseconds", [1.0, 2.0, 3.0, 4.0, 90.0])
        Measurement(name='hop_milliseconds', value=3.0, low=2.0, high=4.0, rounds=5)
    """
    low, value, high = quantiles(rounds, n=4, method="inclusive")
    return Measurement(name, value, low, high, len(rounds))


def beyond(contestants: Sequence[float], bases: Sequence[float]) -> list[float]:
    """Return by how much each round of one contestant took longer than the other's median.

    Rounds are in turns, so that what else the machine does meets both; the median of the other one
    does not double the noise.
    """
    usual = median(bases)
    return [each - usual for each in contestants]


def processor_time(work: Callable[[], object]) -> float:
    """Return the microseconds of processor that this process spends on some work."""
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / 1_000


@contextmanager
def without_collections() -> Iterator[None]:
    """Keep the garbage collector away: gateways run it rarely, too."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
