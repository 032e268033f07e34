"""What a site gives its queries in a step, and what they tell it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stream_engine.circuit.circuit import OperatorStatistics
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import Scan


@dataclass(slots=True)
class SourceChanges:
    """What a query is given of the site's sources in one step; it changes nothing of it.

    Attributes:
        deltas: Changes by scan; empty ones are left out.
        oldest: Time of the oldest reading behind each change; none for expiry.
        current: Returns what a query that starts now begins with.
    """

    deltas: Mapping[Scan, TimedDelta]
    oldest: Mapping[Scan, int]
    current: Callable[[Scan], TimedDelta]


@dataclass(frozen=True, slots=True)
class FragmentStatistics:
    """What a fragment's operators have done at this site."""

    query: str
    version: int
    fragment: str
    operators: tuple[OperatorStatistics, ...]
