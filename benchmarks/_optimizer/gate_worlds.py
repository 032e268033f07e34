"""The worlds of the gate: the building, twelve gateways in a real network, a recorded trace."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks._optimizer.questions import Question, generated, of_building, of_trace
from benchmarks._optimizer.site_networks import (
    TRACE,
    ZOO,
    distances_of,
    owners_of,
    sites_of,
    trace_network,
    trace_readings,
    zoo_network,
)
from benchmarks._optimizer.worlds import Links, Load, World
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import Row
from streamsql.library import library_views
from streamsql.syntax import CreateSource, CreateView, parse_script

SCHEMA = Path(__file__).resolve().parent.parent.parent / "deploy" / "schema" / "building.sql"
THREE = ("gw-1", "gw-2", "gw-3")
FOUR = ("gw-1", "gw-2", "gw-3", "gw-4")
TWELVE = tuple(f"gw-{number}" for number in range(1, 13))

NETWORK = "Geant2012"
"""Of the Topology Zoo: 40 nodes, 61 links, 8 links between the two furthest."""

LARGE = 30_000
"""Rows of the large table, of which a query needs some dozens."""

GENERATED = """
    CREATE SOURCE reading (device TEXT, rid TEXT, level INTEGER, v DOUBLE, ts TIMESTAMP)
      WITH (ttl = '60 s');
    CREATE SOURCE place (device TEXT, rid TEXT, open BOOLEAN, level INTEGER, v DOUBLE,
                         ts TIMESTAMP, KEY (device)) WITH (ttl = '90 s');"""
"""The sources of generated queries: every reading of the last minute, and the last of a device."""

STORED = """
    CREATE TABLE Watched (sensor TEXT PRIMARY KEY, why TEXT) WITH (source = 'csv', path = 'w.csv');
    CREATE TABLE Ledger (mid TEXT, day INTEGER, note TEXT) WITH (source = 'csv', path = 'l.csv');"""

RECORDED = """
    CREATE LINK SOURCE Link (src TEXT, dst TEXT, cost DOUBLE, pdr DOUBLE, ts TIMESTAMP,
                             KEY (src, dst)) WITH (ttl = '30 min', colocate = 'src');
    CREATE TABLE Mote (mote TEXT PRIMARY KEY, floor INTEGER, kind TEXT)
      WITH (source = 'csv', path = 'motes.csv');"""


def catalog_of(script: str, *, library: bool = False) -> Catalog:
    """Return the catalog of a script's definitions."""
    catalog = Catalog(library_views() if library else ())
    for statement in parse_script(script):
        if isinstance(statement, CreateSource | CreateView):
            catalog.define(define(statement, catalog), replace=True)
    return catalog


def building(name: str, gateways: tuple[str, ...], links: Links) -> World:
    """Return the sample building's sources, in twelve rooms with two machines each."""
    loads = dict.fromkeys(("seatsensor", "temperature", "energymeter", "machineload"), Load())
    loads["roomsensor"] = Load(devices=12)
    machines: tuple[Row, ...] = tuple(
        (f"m-{n}", f"r-{n % 12}", f"host{n}", "x86", 3.0 * n, 1.0, n % 3, f"p-{n}")
        for n in range(24)
    )
    software: tuple[Row, ...] = tuple(
        (f"m-{n}", name, "1") for n in range(24) for name in ("Word", "R", "LaTeX")[: 1 + n % 3]
    )
    ledger: tuple[Row, ...] = tuple(
        (f"m-{n // 3}", n % 3, f"what was noted of machine {n // 3} on day {n % 3}, and by whom")
        for n in range(LARGE)
    )
    tables: dict[str, tuple[Row, ...]] = {
        "machines": machines,
        "machinesoftware": software,
        "watched": (("s-5", "repaired"),),
        "ledger": ledger,
    }
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8") + STORED, library=True)
    return World(name, catalog, gateways, loads, tables, links)


def _ring(gateways: tuple[str, ...]) -> Links:
    """Return links between the motes of the building: a ring with some chords."""
    nodes = [f"n-{number}" for number in range(24)]
    pairs = [(n, (n + step) % 24) for n in range(24) for step in ((1, 5) if n % 3 == 0 else (1,))]
    ends = tuple((nodes[x], nodes[y]) for a, b in pairs for x, y in ((a, b), (b, a)))
    owner = {node: gateways[number * len(gateways) // 24] for number, node in enumerate(nodes)}
    return Links(ends, owner)


def questions(data: Path, *, quick: bool) -> Iterator[Question]:
    """Yield all queries, or a few of each kind; those of recordings that are not there are not."""
    house = list(of_building(building("building", THREE, _ring(THREE))))
    star = World("generated", catalog_of(GENERATED), THREE)
    made = list(generated(star))
    yield from [house[2], house[4], house[-1]] if quick else house
    yield from made[3:10:3] if quick else made
    if (data / ZOO).exists():
        found = list(_in_zoo(data / ZOO))
        yield from found[17:18] if quick else found
    if (data / TRACE).exists():
        found = list(of_trace(_trace(data / TRACE)))
        yield from found[1:2] if quick else found


def missing(data: Path) -> tuple[str, ...]:
    """Return the recordings that are not there."""
    return tuple(str(path) for path in (ZOO, TRACE) if not (data / path).exists())


def _in_zoo(archive: Path) -> Iterator[Question]:
    graph = zoo_network(archive, NETWORK)
    sites = sites_of(graph, TWELVE)
    ends = tuple((x, y) for a, b in sorted(graph.edges()) for x, y in ((a, b), (b, a)))
    links = Links(ends, owners_of(graph, sites))
    far = distances_of(graph, sites)
    world = building("zoo", TWELVE, links)
    yield from of_building(_apart(world, far))
    yield from generated(World("zoo", catalog_of(GENERATED), TWELVE, distances=far))


def _apart(world: World, distances: dict[tuple[str, str], float]) -> World:
    return World(
        world.name,
        world.catalog,
        world.gateways,
        world.loads,
        world.tables,
        world.links,
        distances=distances,
    )


def _trace(recording: Path) -> World:
    graph = trace_network(recording)
    sites = sites_of(graph, FOUR)
    owner = owners_of(graph, sites)
    motes: tuple[Row, ...] = tuple(
        (mote, number % 3, "sink" if number % 20 == 0 else "sensor")
        for number, mote in enumerate(sorted(owner))
    )
    return World(
        "trace",
        catalog_of(RECORDED, library=True),
        FOUR,
        tables={"mote": motes},
        links=Links(owner=owner),
        recorded=trace_readings(recording, owner),
        warm=7_200.0,
        seconds=3_600.0,
        distances=distances_of(graph, sites),
    )
