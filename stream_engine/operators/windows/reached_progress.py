"""How far sites have come together, by the rows of their progress."""

from collections.abc import Iterable
from typing import NamedTuple

from streamsql.data.delta import Delta


class Reached(NamedTuple):
    """The watermark of several sites.

    Attributes:
        least: Of the sites that are waited for; None: of none.
        idle: The greatest of those that are idle, or None.
    """

    least: int | None
    idle: int | None


def reached_by(progress: Iterable[Delta]) -> Reached:
    """Return how far sites have come, by (site, watermark) rows; an idle one names no site.

    Examples:
        >>> reached_by([{("g1", 5): 1, (None, 9): 1}, {("g2", 7): 1}])
        Reached(least=5, idle=9)
    """
    least: int | None = None
    idle: int | None = None
    for rows in progress:
        for site, mark in rows:
            if not isinstance(mark, int):
                continue
            if site is not None:
                least = mark if least is None else min(least, mark)
            else:
                idle = mark if idle is None else max(idle, mark)
    return Reached(least, idle)
