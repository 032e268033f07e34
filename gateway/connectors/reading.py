"""A row for a source, as devices give it."""

from collections.abc import Callable, Mapping, Sequence

import msgspec


class Reading(msgspec.Struct, frozen=True):
    """One row for a source, before validation.

    Attributes:
        source: Name of the source, lower case.
        values: Column values by name; missing ones are NULL, unknown ones an error.
        ts: Event time in microseconds since 1970 UTC; also put into the source's time column. None
            stamps it on arrival.
        sensor: Id of the device, for the retained last value; empty: none is kept.
        delete: Withdraw the row instead (for a keyed source only the key must be given).
        matching: With `delete`, of a keyed source: withdraw all rows that have the given values,
            whatever columns these are; without values all rows of the source here.
    """

    # A struct: a frozen dataclass takes eight times as long to make (benchmarks/intake.py).

    source: str
    values: Mapping[str, object]
    ts: int | None = None
    sensor: str = ""
    delete: bool = False
    matching: bool = False


class PastPack(msgspec.Struct, frozen=True):
    """Readings of one source that simulated devices would have given then.

    Attributes:
        number: Of the pack: the same readings have the same number whenever they are asked for.
        source: Name of the source.
        readings: Each with its event time.
    """

    number: int
    source: str
    readings: Sequence[Reading]


Memory = dict[str, object]
"""What is to be known again after a restart: plain values, and lists of them."""

Emit = Callable[[Sequence[Reading]], None]
"""Hand readings to the gateway; never blocks. A bad reading is counted against who emitted it."""
