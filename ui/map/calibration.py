"""The calibration walk: what receivers hear at a place, kept for `radio_map_position`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from host.clocks import wall_clock
from streamsql.errors import DeploymentError
from ui.map.directions import literal

HEARD = """SELECT badge, receiver, AVG(rssi) AS rssi, COUNT(rssi) AS readings
FROM heard [RANGE 10 SECONDS] WHERE rssi IS NOT NULL GROUP BY badge, receiver"""
"""What each receiver has heard of each badge for ten seconds, as mean in dBm."""
POINTS = """SELECT c.point, c.room, c.floor, c.x, c.y, COALESCE(m.receivers, 0) AS receivers
FROM calibration_point c
LEFT JOIN (SELECT point, COUNT(*) AS receivers FROM radio_map GROUP BY point) AS m
  ON m.point = c.point"""
"""The points that are kept, and how many receivers each has levels of."""
_LEVELS = "INSERT INTO radio_map (point, receiver, rssi)"
_POINT = "INSERT INTO calibration_point (point, room, floor, x, y)"
_NOT_POINT = "DELETE FROM calibration_point WHERE point ="
_NOT_LEVELS = "DELETE FROM radio_map WHERE point ="
MAX_RECEIVERS = 1000
WEAKEST, STRONGEST = -200.0, 50.0
"""Bounds of an RSSI in dBm."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place where somebody stood: room, level, metres of the plan."""

    room: str
    floor: int
    x: float
    y: float


def point_id() -> str:
    """Return an id for a new point: the time in milliseconds."""
    return f"point-{wall_clock() // 1_000}"


def calibration_script(point: str, spot: Spot, levels: Mapping[str, float]) -> str:
    """Return the statements that keep what is heard at a place.

    The point comes last: without it the levels count for nothing, if the script fails between.

    Args:
        point: Id of the point.
        spot: Where it is.
        levels: Mean RSSI in dBm by receiver.

    Raises:
        DeploymentError: Nothing was heard, or a number is none or out of bounds.
    """
    if not 0 < len(levels) <= MAX_RECEIVERS:
        raise DeploymentError(
            f"{len(levels)} receivers heard the badge; 1 to {MAX_RECEIVERS} can be kept",
            hint="check that its beacon sends, and that the source heard has rows",
        )
    if not all(WEAKEST <= level <= STRONGEST for level in levels.values()):
        raise DeploymentError(f"an RSSI is not between {WEAKEST:g} and {STRONGEST:g} dBm")
    if not (math.isfinite(spot.x) and math.isfinite(spot.y)):
        raise DeploymentError("a coordinate of the place is not finite")
    rows = ", ".join(
        f"({literal(point)}, {literal(receiver)}, {level!r})" for receiver, level in levels.items()
    )
    place = f"{literal(point)}, {literal(spot.room)}, {spot.floor}, {spot.x!r}, {spot.y!r}"
    return f"{_LEVELS} VALUES {rows};\n{_POINT} VALUES ({place})"


def removal_script(point: str) -> str:
    """Return the statements that remove a point.

    The point goes first: without it its levels count for nothing, if the script fails between.
    """
    return f"{_NOT_POINT} {literal(point)};\n{_NOT_LEVELS} {literal(point)}"
