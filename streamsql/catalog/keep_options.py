"""Options of a source on its readings in the lake: `keep`, how long; `rollup`, its summaries."""

from enum import IntEnum

import msgspec

from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.durations import parse_duration

DAY = 86_400_000_000
LEAST_KEEP = DAY
"""Readings leave the lake by whole days."""
NO = "no"
FOREVER = "forever"


class RollUp(IntEnum):
    """Lengths of the intervals that a roll-up has a row for, in microseconds."""

    MINUTE = 60_000_000
    HOUR = 3_600_000_000
    DAY = 86_400_000_000

    @property
    def suffix(self) -> str:
        """End of the name of the table, behind the source's name."""
        return {RollUp.MINUTE: "1m", RollUp.HOUR: "1h", RollUp.DAY: "1d"}[self]

    @property
    def words(self) -> str:
        """The length as it is written in the option."""
        return {RollUp.MINUTE: "1 min", RollUp.HOUR: "1 h", RollUp.DAY: "1 day"}[self]


class Keeping(msgspec.Struct, frozen=True):
    """Keeping of a source's readings: whether, for how long, and summed up how.

    Attributes:
        kept: Whether they go to the lake.
        keep: For how long, in microseconds of event time; None: for ever.
        rollups: Its roll-ups, the shortest first.
    """

    kept: bool = True
    keep: int | None = None
    rollups: tuple[RollUp, ...] = ()


def keep_of(text: str) -> tuple[bool, int | None]:
    """Return whether readings are kept, and for how long, in microseconds; None: for ever.

    Raises:
        ValueError: It is neither 'no' nor 'forever' nor a duration, or shorter than a day.

    Examples:
        >>> keep_of("no"), keep_of("forever"), keep_of("30 days")
        ((False, None), (True, None), (True, 2592000000000))
    """
    word = text.strip().lower()
    if word == NO:
        return False, None
    if word == FOREVER:
        return True, None
    micros = parse_duration(text)
    if micros < LEAST_KEEP:
        raise ValueError(f"{text!r:.40} is shorter than a day: readings leave the lake by days")
    return True, micros


def rollups_of(text: str) -> tuple[RollUp, ...]:
    """Return the roll-ups that a text names, the shortest first.

    Raises:
        ValueError: One is none.

    Examples:
        >>> [str(each.words) for each in rollups_of("1 h, 1 min")]
        ['1 min', '1 h']
        >>> rollups_of("no")
        ()
    """
    if text.strip().lower() == NO:
        return ()
    found = set()
    for part in text.split(","):
        try:
            found.add(RollUp(parse_duration(part)))
        except ValueError:
            raise ValueError(
                f"{part.strip()!r:.40} is no roll-up: there are 1 min, 1 h and 1 day"
            ) from None
    return tuple(sorted(found))


def keeping_of(
    definition: SourceDefinition, default_keep: str = FOREVER, default_rollup: str = NO
) -> Keeping:
    """Return what becomes of a source's readings.

    Args:
        definition: Of the source.
        default_keep: Its `keep` if it has none of its own.
        default_rollup: Likewise.

    Raises:
        ValueError: A default is wrong; the options of definitions have been checked.
    """
    kept, keep = keep_of(definition.option("keep") or default_keep)
    rollups = rollups_of(definition.option("rollup") or default_rollup) if kept else ()
    return Keeping(kept, keep, rollups)
