"""The map of a provisioned site: one GeoJSON FeatureCollection in plan metres."""

import json
from collections.abc import Iterator
from typing import Any

from shapely import LineString, Point, Polygon
from shapely.geometry import mapping

from building.model.site_model import CIRCULATION, RouteEdge, Site, Space, SpaceKind


def plan_bounds(site: Site) -> tuple[float, float, float, float]:
    """Return x0, y0, x1, y1 of everything in the plan in metres; zeros for an empty site."""
    boxes = [space.polygon.bounds for space in site.spaces]
    boxes += [(mote.x, mote.y, mote.x, mote.y) for mote in site.motes]
    if not boxes:
        return (0.0, 0.0, 0.0, 0.0)
    lows_x, lows_y, highs_x, highs_y = zip(*boxes, strict=True)
    x0, y0, x1, y1 = min(lows_x), min(lows_y), max(highs_x), max(highs_y)
    return (round(x0, 3), round(y0, 3), round(x1, 3), round(y1, 3))


Json = dict[str, Any]


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
        yield _feature(space.polygon, _space(site, space))
    yield from _doors(site)
    yield from _machines(site)
    yield from _devices(site)
    yield from _graph(site)


def _space(site: Site, space: Space) -> Json:
    is_outside = space.kind is SpaceKind.OUTSIDE
    indoor = space.kind.value if space.kind in CIRCULATION else "room"
    return {
        "feature_type": "outside" if is_outside else "space",
        "id": space.id,
        "level": space.level,
        "name": space.name,
        "kind": space.kind.value,
        "indoor": "area" if is_outside or indoor == "entrance" else indoor,
        "room": space.id,
        "open_lab": space.open_lab,
        "wheelchair": space.wheelchair,
        "gateway": site.gateways.get(space.id),
        "point": site.room_points.get(space.id),
        "source": space.source,
    }


def _doors(site: Site) -> Iterator[Json]:
    for door in site.doors:
        properties = {
            "feature_type": "door",
            "id": door.id,
            "level": door.level,
            "room": door.spaces[0],
            "to": door.spaces[1],
            "entrance": door.is_entrance,
            "derived": door.derived,
            "width": round(door.width, 2),
            "wheelchair": door.wheelchair,
        }
        yield _feature(door.point, properties)


def _machines(site: Site) -> Iterator[Json]:
    for m in site.machines:
        properties = {
            "feature_type": "machine",
            "id": m.mid,
            "level": m.level,
            "name": m.mid,
            "room": m.room,
            "mid": m.mid,
            "desk": m.desk,
            "host": m.host,
            "cpu": m.cpu,
            "cores": m.cores,
            "software": [package.name for package in m.software],
            "gateway": site.gateways.get(m.room),
            "point": site.machine_points[m.mid],
            "is_host": m.is_host,
            "simulated": not m.is_host,
        }
        yield _feature(Point(m.x, m.y), properties)


def _devices(site: Site) -> Iterator[Json]:
    for s in site.sensors:
        properties = {
            "feature_type": "sensor",
            "id": s.id,
            "level": s.level,
            "kind": s.kind.value,
            "room": s.room,
            "mid": s.mid,
            "unit": s.unit,
            "simulated": site.is_simulated(s),
            "gateway": site.gateways.get(s.room),
        }
        yield _feature(Point(s.x, s.y), properties)
    for mote in site.motes:
        properties = {
            "feature_type": "mote",
            "id": mote.id,
            "level": mote.level,
            "room": mote.room,
            "gateway": site.gateways.get(mote.room or mote.id),
        }
        yield _feature(Point(mote.x, mote.y), properties)


def _graph(site: Site) -> Iterator[Json]:
    places = {point.id: point for point in site.points}
    for point in site.points:
        properties = {
            "feature_type": "routing_point",
            "id": point.id,
            "level": point.level,
            "room": point.room,
        }
        yield _feature(Point(point.x, point.y), properties)
    for edge in site.edges:
        a, b = places[edge.src], places[edge.dst]
        line = LineString([(a.x, a.y), (b.x, b.y)])
        yield _feature(line, _edge(edge, a.level, b.level))


def _edge(edge: RouteEdge, level: int, to_level: int) -> Json:
    return {
        "feature_type": "edge",
        "id": f"{edge.src}~{edge.dst}",
        "level": level,
        "to_level": to_level,
        "src": edge.src,
        "dst": edge.dst,
        "distance": edge.distance,
        "kind": edge.kind.value,
        "wheelchair": edge.wheelchair,
        "room": edge.room,
        "exits": list(edge.exits),
    }


def _feature(geometry: Point | LineString | Polygon, properties: Json) -> Json:
    return {
        "type": "Feature",
        "id": properties["id"],
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
