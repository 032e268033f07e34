"""Draw a site as SVG, for looking at: `python -m building.files.preview OUT.svg [MAP.geojson]`."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from shapely import LineString, Polygon
from shapely.geometry.base import BaseGeometry

from building.files.site_geojson import plan_bounds
from building.model.site_model import EdgeKind, SensorKind, Site, Space, SpaceKind
from building.osm.osm_indoor import read_osm_indoor
from building.sample.sample_building import sample_building

FILLS: Final = {
    SpaceKind.CORRIDOR: "#f3efe2",
    SpaceKind.AREA: "#f3efe2",
    SpaceKind.ENTRANCE: "#fbe3c0",
    SpaceKind.OUTSIDE: "#fafafa",
    SpaceKind.LAB: "#d6e8f7",
    SpaceKind.STAIRS: "#e3d2ee",
    SpaceKind.LIFT: "#cdb4e0",
}
OTHER_FILL: Final = "#e6efe0"
EDGE_COLOURS: Final = {EdgeKind.WALK: "#888888", EdgeKind.DOOR: "#c08040"}
MARGIN: Final = 3.0


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where one level's drawing stands on the page; scale in pixels a metre."""

    left: float
    top: float
    scale: float

    def x(self, metres: float) -> float:
        return round((metres - self.left) * self.scale, 1)

    def y(self, metres: float) -> float:
        return round((self.top - metres) * self.scale, 1)

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (self.x(x), self.y(y))


def render_svg(site: Site, *, width: int = 1400) -> str:
    """Return the levels below one another, topmost first: rooms, doors, machines, graph."""
    x0, y0, x1, y1 = plan_bounds(site)
    scale = width / (x1 - x0 + 2 * MARGIN)
    height = (y1 - y0 + 2 * MARGIN) * scale
    drawn = []
    for row, level in enumerate(sorted(site.levels, key=lambda lv: -lv.ordinal)):
        frame = _Frame(x0 - MARGIN, y1 + MARGIN, scale)
        drawn.append(f'<g transform="translate(0 {row * height:.0f})">')
        drawn += _level(site, level.ordinal, frame)
        title = escape(f"{site.name}: {level.name} ({level.ordinal})")
        drawn.append(f'<text x="8" y="18" font-size="16">{title}</text></g>')
    page = f'width="{width}" height="{height * len(site.levels):.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {page} font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *drawn, "</svg>\n"])


def _level(site: Site, level: int, frame: _Frame) -> Iterator[str]:
    for space in site.spaces:
        if space.level == level:
            yield _space(space, frame)
    yield from _edges(site, level, frame)
    for point in site.points:
        if point.level == level:
            yield _dot(frame.at(point.x, point.y), 2.0, "#555555", point.id)
    for door in site.doors:
        if door.level == level:
            colour = "#e00000" if door.is_entrance else "#d08000" if door.derived else "#804000"
            yield _dot(frame.at(door.point.x, door.point.y), 4, colour, door.id)
    yield from _devices(site, level, frame)
    for space in site.spaces:
        if space.level == level:
            yield _label(space, frame)


def _devices(site: Site, level: int, frame: _Frame) -> Iterator[str]:
    for machine in site.machines:
        if machine.level == level:
            colour = "#d000a0" if machine.is_host else "#1060c0"
            yield _dot(frame.at(machine.x, machine.y), 4, colour, machine.mid)
    for sensor in site.sensors:
        if sensor.level == level and sensor.kind is SensorKind.RFID:
            yield _dot(frame.at(sensor.x, sensor.y), 6, "#10a040", sensor.id)


def _edges(site: Site, level: int, frame: _Frame) -> Iterator[str]:
    places = {point.id: point for point in site.points}
    for edge in site.edges:
        a, b = places[edge.src], places[edge.dst]
        if a.level == b.level == level:
            colour = EDGE_COLOURS.get(edge.kind, "#7030a0")
            line = LineString([(a.x, a.y), (b.x, b.y)])
            yield f'<path d="{_path(line, frame)}" fill="none" stroke="{colour}"/>'


def _space(space: Space, frame: _Frame) -> str:
    fill = "#b7dcf5" if space.open_lab else FILLS.get(space.kind, OTHER_FILL)
    outline = _path(space.polygon, frame)
    style = f'fill="{fill}" fill-rule="evenodd" stroke="#333333"'
    return f'<path d="{outline}" {style}><title>{escape(space.name)}</title></path>'


def _label(space: Space, frame: _Frame) -> str:
    x, y = space.polygon.representative_point().coords[0]
    place = f'x="{frame.x(x)}" y="{frame.y(y)}"'
    return f'<text {place} font-size="10" text-anchor="middle">{escape(space.id)}</text>'


def _dot(at: tuple[float, float], radius: float, colour: str, title: str) -> str:
    place = f'cx="{at[0]}" cy="{at[1]}" r="{radius}"'
    return f'<circle {place} fill="{colour}"><title>{escape(title)}</title></circle>'


def _path(geometry: BaseGeometry, frame: _Frame) -> str:
    if isinstance(geometry, Polygon):
        rings: Iterable[BaseGeometry] = (geometry.exterior, *geometry.interiors)
        return " ".join(f"{_path(ring, frame)} Z" for ring in rings)
    return "M" + " L".join(f"{frame.x(x)},{frame.y(y)}" for x, y in geometry.coords)


def main(arguments: list[str]) -> int:
    """Write the preview of the sample building, or of the map named second."""
    if not 1 <= len(arguments) <= 2:
        sys.stderr.write("usage: python -m building.files.preview OUT.svg [MAP.geojson]\n")
        return 2
    site = read_osm_indoor(Path(arguments[1])) if len(arguments) == 2 else sample_building()
    Path(arguments[0]).write_text(render_svg(site), encoding="utf-8")
    sys.stderr.writelines(f"warning: {warning}\n" for warning in site.warnings)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
