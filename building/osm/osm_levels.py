"""The level syntax of OSM Simple Indoor Tagging: `0`, `-1;0`, `1-3`, `-2--1;4`."""

import re
from typing import Final

from building.model.map_errors import SiteError

MAX_LEVELS: Final = 200
"""Levels one value may name, and how far from the ground a level may be."""

_TOKEN: Final = re.compile(r"(-?[0-9]{1,4}(?:\.[0-9]{1,3})?)(?:-(-?[0-9]{1,4}(?:\.[0-9]{1,3})?))?")


def parse_levels(text: str, *, label: str, tag: str = "level") -> tuple[int, ...]:
    """Return the whole levels a value names, lowest first.

    Half levels such as `0.5` lie between storeys and are left out, so the result may be empty.

    Raises:
        SiteError: The value does not follow the syntax; the message begins with `label`.

    Examples:
        >>> parse_levels("-1;0", label="x"), parse_levels("1-3", label="x")
        ((-1, 0), (1, 2, 3))
        >>> parse_levels("-2--1; 4;0.5", label="x")
        (-2, -1, 4)
    """
    levels: set[int] = set()
    for token in text.split(";"):
        match = _TOKEN.fullmatch(token.strip())
        if match is None:
            raise _malformed(text, label, tag)
        low = float(match[1])
        high = low if match[2] is None else float(match[2])
        if high < low:
            raise _malformed(text, label, tag)
        if max(abs(low), abs(high)) > MAX_LEVELS:
            raise SiteError(
                f"{label}: {tag}={text!r} is more than {MAX_LEVELS} levels from the ground"
            )
        if low.is_integer():
            levels.update(range(int(low), int(high // 1) + 1))
        elif high > low:
            levels.update(range(int(low // 1) + 1, int(high // 1) + 1))
    return tuple(sorted(levels))


def _malformed(text: str, label: str, tag: str) -> SiteError:
    shown = text if len(text) <= 40 else text[:37] + "..."
    return SiteError(
        f"{label}: {tag}={shown!r} is not a level",
        hint="write a number such as 0, several such as -1;0, or a range such as 1-3",
    )
