"""Turn a site into the plain files in a data directory that the services read."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from building.files.site_files import write_atomically
from building.files.site_geojson import site_geojson
from building.files.site_tables import tables
from building.furnishing.gateway_areas import assign_gateways
from building.furnishing.sample_calendar import sample_calendar
from building.model.site_model import ID_PATTERN, Sensor, Site, SiteError


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor of the computer Pando runs on."""

    name: str
    cores: int


@dataclass(frozen=True, slots=True)
class SitePaths:
    """The files of a provisioned site: map, CSV files by table, JSON files by gateway, calendar.

    `warnings` name the flaws of the map, one sentence each.
    """

    site: Path
    tables: Mapping[str, Path]
    gateways: Mapping[str, Path]
    calendar: Path
    warnings: tuple[str, ...]


def provision(
    site: Site, data_dir: Path, *, gateways: int, host: str, processor: Processor | None = None
) -> SitePaths:
    """Write the site's files and return where they are.

    Each file appears whole or not at all, files that would not change are left untouched, and
    `site.geojson` comes last: once it names this site all other files are in place. Files of
    gateways that exist no more are removed.

    Args:
        site: The site; its rooms are assigned anew.
        data_dir: Directory to write to; created if missing.
        gateways: Number of gateways.
        host: Network name of the computer Pando runs on.
        processor: Its processor, if known.

    Raises:
        SiteError: Too many gateways for the site, or a file cannot be written.
    """
    owned = assign_gateways(_with_host(site, host, processor), gateways)
    paths = SitePaths(
        site=data_dir / "site.geojson",
        tables={name: data_dir / "tables" / f"{name}.csv" for name in tables(owned)},
        gateways={gw: data_dir / "gateways" / f"{gw}.json" for gw in _gateway_ids(owned)},
        calendar=data_dir / "calendar.ics",
        warnings=site.warnings,
    )
    _check_ids(owned)
    for name, content in tables(owned).items():
        write_atomically(paths.tables[name], content)
    for gateway, path in paths.gateways.items():
        write_atomically(path, _json(gateway_area(owned, gateway)))
    write_atomically(paths.calendar, sample_calendar(owned))
    write_atomically(paths.site, site_geojson(owned))
    _remove_stale(data_dir / "gateways", set(paths.gateways.values()))
    return paths


def gateway_area(site: Site, gateway: str) -> dict[str, Any]:
    """Return what one gateway serves.

    The members are `gateway`; `rooms`, its room ids; `motes`, the sensors it simulates; `soft`,
    the sensors that read this computer; `nodes`, its radio motes; and `peers`, the directed
    radio links that start at one of them, with distances in metres.
    """
    nodes = [mote for mote in site.motes if site.gateways[mote.room or mote.id] == gateway]
    ids = {mote.id for mote in nodes}
    sensors = [sensor for sensor in site.sensors if site.gateways[sensor.room] == gateway]
    soft = [sensor for sensor in sensors if not site.is_simulated(sensor)]
    rooms = [space.id for space in site.spaces]
    return {
        "gateway": gateway,
        "rooms": [room for room in rooms if site.gateways.get(room) == gateway],
        "motes": [_sensor(sensor) for sensor in sensors if sensor not in soft],
        "soft": [_sensor(sensor) for sensor in soft],
        "nodes": [{"id": m.id, "rid": m.room, "x": m.x, "y": m.y, "level": m.level} for m in nodes],
        "peers": [
            {"src": src, "dst": dst, "distance": metres}
            for src, dst, metres in _directed(site)
            if src in ids
        ],
    }


def _directed(site: Site) -> Iterator[tuple[str, str, float]]:
    for link in site.radio:
        yield (link.src, link.dst, link.distance)
        yield (link.dst, link.src, link.distance)


def _sensor(sensor: Sensor) -> dict[str, Any]:
    return {
        "sensor": sensor.id,
        "kind": sensor.kind.value,
        "rid": sensor.room,
        "mid": sensor.mid,
        "x": sensor.x,
        "y": sensor.y,
        "level": sensor.level,
        "unit": sensor.unit,
    }


def _with_host(site: Site, host: str, processor: Processor | None) -> Site:
    known = processor or Processor("unknown", 0)
    machines = tuple(
        replace(m, host=host, cpu=known.name, cores=known.cores) if m.is_host else m
        for m in site.machines
    )
    return replace(site, machines=machines)


def _gateway_ids(site: Site) -> list[str]:
    return sorted(set(site.gateways.values()), key=lambda gw: (len(gw), gw))


def _check_ids(site: Site) -> None:
    """Refuse ids that cannot be topic levels or keys; the readers of maps make none, if right."""
    kinds: dict[str, list[str]] = {
        "room": [space.id for space in site.spaces],
        "machine": [machine.mid for machine in site.machines],
        "sensor": [sensor.id for sensor in site.sensors],
        "mote": [mote.id for mote in site.motes],
        "routing point": [point.id for point in site.points],
    }
    for kind, ids in kinds.items():
        for name, times in Counter(ids).items():
            if not ID_PATTERN.fullmatch(name):
                raise SiteError(f"{kind} id {name!r} must have 1 to 64 letters, digits, '_' or '-'")
            if times > 1:
                raise SiteError(f"{kind} id {name!r} is used {times} times")


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def _remove_stale(folder: Path, wanted: set[Path]) -> None:
    for path in folder.glob("gw-*.json"):
        if path not in wanted:
            path.unlink(missing_ok=True)
