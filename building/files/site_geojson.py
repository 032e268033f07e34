"""The map of a provisioned site: one GeoJSON FeatureCollection in plan metres."""

import json
from collections.abc import Iterator
from typing import Any

from shapely import LineString, Point, Polygon
from shapely.geometry import mapping

from building.model.site_model import (
    CIRCULATION,
    Machine,
    RouteEdge,
    RoutingPoint,
    Site,
    Space,
    SpaceKind,
)

Json = dict[str, Any]


def plan_bounds(site: Site) -> tuple[float, float, float, float]:
    """Return x0, y0, x1, y1 of everything in the plan in metres; zeros for an empty site."""
    boxes = [space.polygon.bounds for space in site.spaces]
    boxes += [(mote.x, mote.y, mote.x, mote.y) for mote in site.motes]
    if not boxes:
        return (0.0, 0.0, 0.0, 0.0)
    lows_x, lows_y, highs_x, highs_y = zip(*boxes, strict=True)
    x0, y0, x1, y1 = min(lows_x), min(lows_y), max(highs_x), max(highs_y)
    return (round(x0, 3), round(y0, 3), round(x1, 3), round(y1, 3))


def site_geojson(site: Site) -> bytes:
    """Return the site as GeoJSON text.

    Coordinates are metres of the local plan, not degrees. Every feature has the properties
    `feature_type` (space, outside, door, machine, sensor, mote, routing_point or edge), `id` and
    `level`; the member `pando` holds name, levels, bounds and, for imported maps, the origin.
    """
    x0, y0, x1, y1 = plan_bounds(site)
    document = {
        "type": "FeatureCollection",
        "pando": {
            "name": site.name,
            "levels": [{"ordinal": lv.ordinal, "name": lv.name} for lv in site.levels],
            "bounds": [[x0, y0], [x1, y1]],
            "origin": list(site.origin) if site.origin else None,
        },
        "features": list(_features(site)),
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (text + "\n").encode()


def _features(site: Site) -> Iterator[Json]:
    for space in site.spaces:
        yield _space(site, space)
    for door in site.doors:
        yield _feature(
            ("door", door.id, door.level),
            door.point,
            room=door.spaces[0],
            to=door.spaces[1],
            entrance=door.is_entrance,
            derived=door.derived,
            width=round(door.width, 2),
            wheelchair=door.wheelchair,
        )
    for machine in site.machines:
        yield _machine(site, machine)
    for s in site.sensors:
        yield _feature(
            ("sensor", s.id, s.level),
            Point(s.x, s.y),
            kind=s.kind.value,
            room=s.room,
            mid=s.mid,
            unit=s.unit,
            simulated=site.is_simulated(s),
            gateway=site.gateways.get(s.room),
        )
    for mote in site.motes:
        gateway = site.gateways.get(mote.room or mote.id)
        place = Point(mote.x, mote.y)
        yield _feature(("mote", mote.id, mote.level), place, room=mote.room, gateway=gateway)
    for p in site.points:
        yield _feature(("routing_point", p.id, p.level), Point(p.x, p.y), room=p.room)
    places = {point.id: point for point in site.points}
    for edge in site.edges:
        yield _edge(edge, places[edge.src], places[edge.dst])


def _space(site: Site, space: Space) -> Json:
    is_outside = space.kind is SpaceKind.OUTSIDE
    indoor = space.kind.value if space.kind in CIRCULATION else "room"
    return _feature(
        ("outside" if is_outside else "space", space.id, space.level),
        space.polygon,
        name=space.name,
        kind=space.kind.value,
        indoor="area" if is_outside or indoor == "entrance" else indoor,
        room=space.id,
        open_lab=space.open_lab,
        wheelchair=space.wheelchair,
        gateway=site.gateways.get(space.id),
        point=site.room_points.get(space.id),
        source=space.source,
    )


def _machine(site: Site, m: Machine) -> Json:
    return _feature(
        ("machine", m.mid, m.level),
        Point(m.x, m.y),
        name=m.mid,
        room=m.room,
        mid=m.mid,
        desk=m.desk,
        host=m.host,
        cpu=m.cpu,
        cores=m.cores,
        software=[package.name for package in m.software],
        gateway=site.gateways.get(m.room),
        point=site.machine_points[m.mid],
        is_host=m.is_host,
        simulated=not m.is_host,
    )


def _edge(edge: RouteEdge, a: RoutingPoint, b: RoutingPoint) -> Json:
    return _feature(
        ("edge", f"{edge.src}~{edge.dst}", a.level),
        LineString([(a.x, a.y), (b.x, b.y)]),
        to_level=b.level,
        src=edge.src,
        dst=edge.dst,
        distance=edge.distance,
        kind=edge.kind.value,
        wheelchair=edge.wheelchair,
        room=edge.room,
        exits=list(edge.exits),
    )


def _feature(
    head: tuple[str, str, int], geometry: Point | LineString | Polygon, **more: object
) -> Json:
    """Return a feature with the properties type, id and level (`head`), and more."""
    properties = dict(zip(("feature_type", "id", "level"), head, strict=True), **more)
    return {
        "type": "Feature",
        "id": head[1],
        "geometry": _rounded(mapping(geometry)),
        "properties": properties,
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3) + 0.0
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
