"""What the console knows of the site from `site.geojson`: ids, so that requests can be checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from host.files.json_file import read_json
from streamsql.errors import DeploymentError


@dataclass(frozen=True, slots=True)
class SiteMap:
    """Ids of a site, and the gateway that serves each.

    Attributes:
        name: Of the building, empty when there is no map.
        rooms: Room id to gateway.
        machines: Machine id to gateway.
        sensed: (kind of sensor, room or machine id) of everything that can be simulated.
        software: Packages that some machine has, sorted.
        nodes: Radio motes, sorted as people count.
    """

    name: str = ""
    rooms: Mapping[str, str | None] = field(default_factory=dict)
    machines: Mapping[str, str | None] = field(default_factory=dict)
    sensed: frozenset[tuple[str, str]] = frozenset()
    software: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def read_site(path: Path) -> dict[str, Any]:
    """Return a site file as a GeoJSON object.

    Raises:
        DeploymentError: The file cannot be read or is no map of a site.
    """
    site = read_json(path, dict[str, Any], "map")
    if not isinstance(site.get("features"), list) or not isinstance(site.get("pando"), dict):
        raise DeploymentError(
            f"map {path} has no member 'features' or 'pando'",
            hint="use the site.geojson that `pando up` writes",
        )
    return site


def site_map(site: dict[str, Any]) -> SiteMap:
    """Return the ids of a site."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for feature in site["features"]:
        properties = feature["properties"]
        by_type.setdefault(properties["feature_type"], []).append(properties)
    machines = by_type.get("machine", [])
    sensed = {("room", s["id"]) for s in by_type.get("space", [])}
    for sensor in by_type.get("sensor", []):
        sensed.add((sensor["kind"], sensor["mid"] or sensor["room"]))
    return SiteMap(
        name=str(site["pando"].get("name", "")),
        rooms={s["id"]: s["gateway"] for s in by_type.get("space", [])},
        machines={m["mid"]: m["gateway"] for m in machines},
        sensed=frozenset(sensed),
        software=tuple(sorted({name for m in machines for name in m["software"]})),
        nodes=tuple(sorted((m["id"] for m in by_type.get("mote", [])), key=_counted)),
    )


def _counted(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isascii() and name.isdigit() else (1 << 62, name)
