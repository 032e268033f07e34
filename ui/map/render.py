"""Draw a site's floor plan with folium, as one script that needs nothing from other hosts.

Runs as a program of its own (`python -m ui.map.render SITE OUT`): folium and what it imports
would otherwise stay in the console's memory for a drawing that is made once per site.
"""

import sys
from pathlib import Path
from typing import Any

# folium only asks whether a table is a pandas one; importing it takes a second and 70 MB.
sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]

import folium  # noqa: E402
from branca.element import Figure, MacroElement  # noqa: E402
from folium.template import Template  # noqa: E402

from host.files.atomic_file import replace_file  # noqa: E402
from streamsql.errors import FederationError, InternalError  # noqa: E402
from ui.map.openings import openings  # noqa: E402
from ui.map.site_map import read_site  # noqa: E402

MAP_ID = "plan"
SHOWN = ("feature_type", "id", "level", "name", "kind", "gateway", "point", "open_lab")


class OfflineMap(folium.Map):
    """A map whose style sheets and scripts are ours; the page has them already."""

    default_js: list[tuple[str, str]] = []  # noqa: RUF012  (folium's own attribute)
    default_css: list[tuple[str, str]] = []  # noqa: RUF012


class Handover(MacroElement):
    """Tells our scripts what folium has named the map and the levels' groups."""

    _template = Template(
        """{% macro script(this, kwargs) %}
        window.pandoPlan = {map: {{ this.map }}, levels: {
        {%- for level, group in this.levels %}"{{ level }}": {{ group }},{% endfor -%}
        }};
        {% endmacro %}"""
    )

    def __init__(self, drawn: str, levels: list[tuple[int, str]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.map = drawn
        self.levels = levels


def plan_script(site: dict[str, Any]) -> str:
    """Return the script that draws a site's levels into the element `map_plan`.

    Coordinates are plan metres (`CRS.Simple`). Every shape has a class by which the page's style
    sheet and the live layers colour it.
    """
    (x0, y0), (x1, y1) = site["pando"]["bounds"]
    plan = OfflineMap(
        location=[(y0 + y1) / 2, (x0 + x1) / 2],
        crs="Simple",
        tiles=None,
        zoom_start=3,
        min_zoom=-2,
        max_zoom=7,
        zoom_snap=0.25,
        zoom_delta=0.5,
        zoom_control=False,
        attributionControl=False,
    )
    plan._id = MAP_ID  # noqa: SLF001  (folium offers no other way to name the element)
    levels = []
    for level in site["pando"]["levels"]:
        ordinal = level["ordinal"]
        group = folium.FeatureGroup(name=level["name"], show=False)
        _add_shapes(group, _spaces(site, ordinal))
        _add_shapes(group, openings(site, ordinal))
        group.add_to(plan)
        levels.append((ordinal, group.get_name()))
    plan.add_child(Handover(plan.get_name(), levels))
    figure = plan.get_root()
    if not isinstance(figure, Figure):
        raise InternalError("folium has put the map into no figure")
    figure.render()
    return str(figure.script.render())


def _add_shapes(group: folium.FeatureGroup, features: list[dict[str, Any]]) -> None:
    if features:
        collection = {"type": "FeatureCollection", "features": features}
        folium.GeoJson(collection, style_function=_style, smooth_factor=0).add_to(group)


def _spaces(site: dict[str, Any], level: int) -> list[dict[str, Any]]:
    """Return a level's spaces, the large ones first so that small ones stay on top."""
    found = [
        {**feature, "properties": {name: properties.get(name) for name in SHOWN}}
        for feature in site["features"]
        if (properties := feature["properties"])["feature_type"] in ("space", "outside")
        and properties["level"] == level
    ]
    return sorted(found, key=_extent, reverse=True)


def _extent(feature: dict[str, Any]) -> float:
    points = list(_points(feature["geometry"]["coordinates"]))
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return float((max(xs) - min(xs)) * (max(ys) - min(ys)))


def _points(coordinates: Any) -> Any:
    if coordinates and isinstance(coordinates[0], int | float):
        yield coordinates
        return
    for part in coordinates:
        yield from _points(part)


def _style(feature: dict[str, Any]) -> dict[str, Any]:
    properties = feature["properties"]
    kind = properties.get("kind") or properties["feature_type"]
    classes = f"shape {properties['feature_type']} kind-{kind}"
    if properties["feature_type"] == "opening":
        return {"className": classes, "interactive": False}
    return {"className": classes}


def main(arguments: list[str]) -> int:
    """Write the script of a site file; return the exit status."""
    site, out = map(Path, arguments)
    try:
        script = plan_script(read_site(site))
        replace_file(out, script.encode())
    except (FederationError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
