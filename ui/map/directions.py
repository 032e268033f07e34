"""Directions as StreamSQL: the text of a route query for a place and a wish."""

import re
from dataclasses import dataclass

from streamsql.errors import DeploymentError
from ui.map.site_map import SiteMap

_BADGE = re.compile(r"badge-[0-9]{1,4}")
MAX_NAME = 100

_WALK = """WITH RECURSIVE own(rid) AS (
  {own}),
way AS (
  SELECT e.src, e.dst, e.distance FROM RoutingPoint e
  LEFT JOIN own o ON o.rid = e.room
  LEFT JOIN (SELECT DISTINCT rid FROM RoomReservation) r ON r.rid = e.room
  WHERE (e.room IS NULL OR o.rid IS NOT NULL OR NOT e.leaves AND r.rid IS NULL){limit}),
walk(point, cost, path) AS (
  SELECT point, 0.0, point FROM {place}
  UNION
  SELECT e.dst, w.cost + e.distance, w.path || '>' || e.dst
  FROM walk w JOIN way e ON e.src = w.point),
best AS (
  SELECT point, MIN(cost) AS cost, ARG_MIN(path, cost) AS path FROM walk GROUP BY point)
SELECT MIN(b.cost) AS distance, ARG_MIN(f.mid, b.cost) AS mid, ARG_MIN(b.path, b.cost) AS path
FROM best b
JOIN FreeMachines f ON f.point = b.point
JOIN MachineSoftware s ON s.mid = f.mid
WHERE s.software = {software}"""

_PATH = """WITH RECURSIVE walk(node, cost, path) AS (
  SELECT dst, cost, src || '>' || dst FROM Link WHERE src = {src}
  UNION
  SELECT l.dst, w.cost + l.cost, w.path || '>' || l.dst FROM walk w JOIN Link l ON l.src = w.node),
best AS (SELECT node, MIN(cost) AS cost, ARG_MIN(path, cost) AS path FROM walk GROUP BY node)
SELECT cost, path FROM best WHERE node = {dst}"""


@dataclass(frozen=True, slots=True)
class Wish:
    """A route somebody wants: hashable, so that equal wishes share one query."""

    start: str
    target: str
    wheelchair: bool = False


def route_query(wish: Wish, site: SiteMap) -> str:
    """Return the query of the walk to the nearest free machine with a package.

    The walk keeps to corridors, stairs and lifts, the room it begins in and the room it ends in:
    it neither cuts through another room nor enters one that is reserved.

    Args:
        wish: `start` is a room or a badge, `target` a software package.
        site: What may be asked for.

    Raises:
        DeploymentError: The place or the package is unknown here.
    """
    if wish.target not in site.software:
        raise DeploymentError(
            f"no machine here has {wish.target[:MAX_NAME]!r}",
            hint=f"choose one of {', '.join(site.software) or 'none'}",
        )
    if wish.start in site.rooms:
        place = f"Rooms WHERE rid = {literal(wish.start)}"
        own = f"SELECT rid FROM {place}"  # noqa: S608 - quoted above
    elif _BADGE.fullmatch(wish.start):
        place = f"VisitorPosition WHERE tag = {literal(wish.start)}"
        own = f"SELECT rid FROM PointRoom WHERE point IN (SELECT point FROM {place})"  # noqa: S608
    else:
        raise DeploymentError(
            f"there is no room or badge {wish.start[:MAX_NAME]!r}",
            hint="use a room id of this building or a badge such as badge-1",
        )
    return _WALK.format(
        own=own,
        place=place,
        limit="\n    AND e.wheelchair" if wish.wheelchair else "",
        software=literal(wish.target),
    )


def path_query(wish: Wish, site: SiteMap) -> str:
    """Return the query of the cheapest radio path between two nodes.

    Raises:
        DeploymentError: A node is unknown, or both are the same.
    """
    for node in (wish.start, wish.target):
        if node not in site.nodes:
            raise DeploymentError(f"there is no node {node[:MAX_NAME]!r}")
    if wish.start == wish.target:
        raise DeploymentError("start and end are the same node", hint="choose two nodes")
    return _PATH.format(src=literal(wish.start), dst=literal(wish.target))


def literal(text: str) -> str:
    """Return a text as an SQL literal.

    Examples:
        >>> literal("O'Hara")
        "'O''Hara'"
    """
    return "'" + text.replace("'", "''") + "'"
