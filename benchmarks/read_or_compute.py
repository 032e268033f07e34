"""A part of two queries: each computes it, or both read one node. Which is cheaper?

    python -m benchmarks.read_or_compute [--quick] [--json] [--seed 1]

Two gateways and a base site in one process. An older query counts over a part, a newer one filters
the part's rows. Twice: the newer one reads the part's node, and the older one goes on computing it
by itself, as before a move. Once: both read the node, as after it. Both in turns, change by change,
with the same readings.

    join        a room that changes changes three rows of the join
    wide join   ... a hundred rows
    groups      counts of rows of a window, by two columns; counts of these
    reach       who reaches whom over links of a tree

    ms/change   processor time of all sites, with encoding and decoding (median)
    rows        that operators of the base keep

How to read it: only ratios within one run mean anything. A part whose rows cost less than to hand
them on is better computed twice: so a query moves onto a node only where work says so. Answers are
compared after every change.
"""

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize
from federated_optimizer.testing_network import Network as Runs
from gateway.__main__ import COLLECTIONS
from stream_engine.simulation.network import Network
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.syntax import parse_script, parse_statement
from streamsql.syntax.statements import CreateSource, Query

GATEWAYS = ("gw-1", "gw-2")
BASE = "base"
SCHEMA = """
CREATE SOURCE room (rid TEXT, status TEXT, KEY (rid));
CREATE SOURCE seat (mid TEXT, rid TEXT, KEY (mid));
CREATE LINK SOURCE link (src TEXT, dst TEXT, KEY (src, dst));
"""
JOIN = "SELECT s.mid, r.status FROM seat s JOIN room r ON s.rid = r.rid"
GROUPS = (
    "SELECT s.rid, r.status, COUNT(*) AS n FROM seat s JOIN room r ON s.rid = r.rid "
    "GROUP BY s.rid, r.status"
)
REACH = (
    "WITH RECURSIVE reach(src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT r.src, l.dst FROM reach r JOIN link l ON l.src = r.dst) "
)
STATUSES = ("open", "shut")


@dataclass(frozen=True, slots=True)
class Kind:
    """A part, as an older and a newer query want it, and how many rows hang on one that changes."""

    older: str
    newer: str
    fan: int = 0


_JOINED = (f"SELECT p.status, COUNT(*) AS n FROM ({JOIN}) p GROUP BY p.status",)
KINDS = {
    "join": Kind(*_JOINED, f"{JOIN} WHERE r.status = 'open'", 3),
    "wide join": Kind(*_JOINED, f"{JOIN} WHERE r.status = 'open'", 100),
    "groups": Kind(
        f"SELECT g.status, SUM(g.n) AS n FROM ({GROUPS}) g GROUP BY g.status",
        f"SELECT g.rid FROM ({GROUPS}) g WHERE g.n > 5",
        100,
    ),
    "reach": Kind(
        f"{REACH}SELECT src, COUNT(*) AS n FROM reach GROUP BY src",
        f"{REACH}SELECT dst FROM reach WHERE src >= 'n1'",
    ),
}


class World:
    """Sites with both queries, and the time of each change."""

    def __init__(self, kind: Kind, materialize: Materialize) -> None:
        catalog = Catalog(())
        for statement in parse_script(SCHEMA):
            if isinstance(statement, CreateSource):
                catalog.define(define(statement, catalog))
        names = frozenset(source.name for source in catalog.sources)
        topology = Topology(dict.fromkeys(GATEWAYS, names))
        runs = Runs(Planning(topology), Sharing(ComputationIndex(), materialize=materialize))
        self.sites = Network((*GATEWAYS, BASE))
        self.queries: list[str] = []
        self.seconds: list[float] = []
        for text in (kind.older, kind.newer):
            bound = _bound(text, catalog)
            scans = [node for node in walk_plan(bound.plan) if isinstance(node, Scan)]
            for gateway in GATEWAYS:
                for scan in dict.fromkeys(scans):
                    self.sites.declare(gateway, scan)
            change = runs.register(bound)
            self.queries.append(runs.reads[change.query])
            for bundle in change.deploy:
                self.sites.install(bundle)
        self.sites.settle()
        older, newer = (runs.result(query) for query in self.queries)
        self.reads_once = bool({f.run for f in older.feeds} & {f.run for f in newer.feeds})

    def change(self, source: str, gateway: str, events: list[SourceEvent]) -> None:
        """Let readings arrive, until all is at rest."""
        began = time.process_time()
        self.sites.ingest(gateway, source, events)
        self.sites.settle()
        self.seconds.append(time.process_time() - began)

    def answers(self) -> list[Delta]:
        """Return the rows of both queries."""
        return [self.sites.result(query) for query in self.queries]


def _bound(text: str, catalog: Catalog) -> BoundQuery:
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise AssertionError(text)
    return bind_query(statement, catalog)


def filled(kind: Kind, rooms: int) -> Iterator[tuple[str, str, list[SourceEvent]]]:
    """Yield the readings that there are before changes: source, gateway, events."""
    if not kind.fan:
        links = [SourceEvent((f"n{(n - 1) // 2}", f"n{n}"), 0) for n in range(1, rooms)]
        yield "link", GATEWAYS[0], links
        return
    yield "room", GATEWAYS[0], [SourceEvent((f"r{n}", STATUSES[0]), 0) for n in range(rooms)]
    seats = [(f"m{n}-{each}", f"r{n}") for n in range(rooms) for each in range(kind.fan)]
    yield "seat", GATEWAYS[1], [SourceEvent(row, 0) for row in seats]


def changes(
    kind: Kind, rooms: int, count: int, seed: int
) -> Iterator[tuple[str, str, list[SourceEvent]]]:
    """Yield changes: rooms open and shut; leaves of the tree come and go."""
    chance = random.Random(seed)
    states: dict[int, bool] = {}
    for number in range(1, count + 1):
        one = chance.randrange(rooms)
        states[one] = not states.get(one, False)
        if kind.fan:
            event = SourceEvent((f"r{one}", STATUSES[states[one]]), number)
            yield "room", GATEWAYS[0], [event]
        else:
            event = SourceEvent((f"n{one}", f"leaf{one}"), number, not states[one])
            yield "link", GATEWAYS[0], [event]


def compare(name: str, rooms: int, count: int, seed: int) -> dict[str, float | str]:
    """Return what both cost."""
    kind = KINDS[name]
    twice, once = (
        World(kind, materialize) for materialize in (Materialize.WANTED_TWICE, Materialize.EAGER)
    )
    if twice.reads_once or not once.reads_once:
        raise AssertionError(f"{name}: the part is not computed twice, and once")
    for filling in filled(kind, rooms):
        for world in (twice, once):
            world.change(*filling)
    for world in (twice, once):
        world.seconds.clear()
    for number, change in enumerate(changes(kind, rooms, count, seed)):
        for world in (twice, once) if number % 2 else (once, twice):
            world.change(*change)
        if twice.answers() != once.answers():
            raise AssertionError(f"{name}: queries answer otherwise over a node")
    found: dict[str, float | str] = {"kind": name, "changes": count}
    for label, world in (("twice", twice), ("once", once)):
        found[f"{label}_ms"] = median(world.seconds) * 1_000
        found[f"{label}_rows"] = world.sites.state_rows()[BASE]
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="20 rooms, 30 changes")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    rooms, count = (20, 30) if options.quick else (100, 600)
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    found = [compare(name, rooms, count, options.seed) for name in KINDS]
    if options.json:
        print(json.dumps({"quick": options.quick, "seed": options.seed, "found": found}))
        return 0
    print(
        f"{'':10} {'twice':>8} {'once':>8} {'ms/change':>10} {'twice':>8} {'once':>8} {'rows':>10}"
    )
    for f in found:
        ms = float(f["twice_ms"]), float(f["once_ms"])
        rows = float(f["twice_rows"]), float(f["once_rows"])
        print(
            f"{f['kind']:10} {ms[0]:8.3f} {ms[1]:8.3f} {ms[1] / ms[0]:9.2f}x "
            f"{rows[0]:8.0f} {rows[1]:8.0f} {rows[1] / rows[0]:9.2f}x"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
