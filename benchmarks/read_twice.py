"""Bytes of queries that read the same rows twice: as plans were, and as they are.

    python -m benchmarks.read_twice [--quick] [--json] [--seconds 40] [--results docs/results]

Seats and sensors of rooms at four gateways, in a simulated federation:

    two joins      free seats joined with the doors and with the air of their rooms, which other
                   gateways have
    two bases      regions of rooms where somebody was seen, a recursion that two base sites compute
    two tables     free seats looked up in two stored tables by the same keys

    before         each reader has a fragment of its own, and no gateway joins rows that are read
                   twice: the cheapest such plan
    after          the plan that is taken
    saved          percent of the bytes

Bytes a second between sites, with the headers of messages. All plans have to give the rows of the
reference evaluator.
"""

import argparse
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from msgspec.structs import replace as changed

from benchmarks._figures import print_tables, write_results
from benchmarks._optimizer.forced_plans import bound_in, expected_rows, run_plan
from benchmarks._optimizer.known_facts import known_facts
from benchmarks._optimizer.worlds import BASE, START, STATIC, Readings, World
from federated_optimizer import Topology, normalize, plan
from federated_optimizer.alternatives.method import IN_NETWORK
from federated_optimizer.search.choosing import Search
from streamsql.algebra.operators import Plan, RemoteSource, transform_up, walk_plan
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from streamsql.syntax import CreateSource, parse_script
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SCRIPT = """
CREATE SOURCE Seat (mid TEXT, rid TEXT, weight INTEGER, KEY (mid)) WITH (ttl = '90 s');
CREATE SOURCE Door (rid TEXT, status TEXT, KEY (rid)) WITH (ttl = '90 s');
CREATE SOURCE Air (rid TEXT, co2 INTEGER, KEY (rid)) WITH (ttl = '90 s');
CREATE SOURCE Seen (rid TEXT, floor INTEGER) WITH (ttl = '5 s');
CREATE TABLE Machine (mid TEXT PRIMARY KEY, cpu TEXT) WITH (source = 'csv', path = 'm.csv');
CREATE TABLE Lease (mid TEXT, tenant TEXT) WITH (source = 'csv', path = 'l.csv');
"""
FREE = "WITH x AS (SELECT mid, rid FROM Seat WHERE weight < 2) "
QUERIES = {
    "two joins": FREE + "SELECT x.mid, d.status FROM x JOIN Door d ON x.rid = d.rid"
    " UNION ALL SELECT x.mid, CAST(a.co2 AS TEXT) AS status FROM x JOIN Air a ON x.rid = a.rid",
    "two bases": "WITH RECURSIVE used AS (SELECT DISTINCT rid, floor FROM Seen),"
    " region(first, rid) AS (SELECT rid, rid FROM used"
    " UNION SELECT g.first, b.rid FROM region g JOIN used a ON g.rid = a.rid"
    " JOIN used b ON a.floor = b.floor) SELECT first, rid FROM region",
    "two tables": FREE + "SELECT x.mid, m.cpu AS v FROM x JOIN Machine m ON x.mid = m.mid"
    " UNION ALL SELECT x.mid, l.tenant AS v FROM x JOIN Lease l ON x.mid = l.mid",
}
GATEWAYS = ("gw-1", "gw-2", "gw-3", "gw-4")
BASES = (BASE, "base-2")
ROOMS, SEATS = 8, 24
"""Rooms, and seats of each."""
SEAT_SECONDS, ROOM_SECONDS, SEEN_SECONDS = 10.0, 1.0, 8.0
"""Between two readings of a device."""
STORED = 60_000
"""Rows of a table, most of which no seat asks for."""
WARM_SECONDS = 15.0

Figures = dict[str, float | int | bool]


def world_of(seconds: float, seed: int) -> World:
    """Return the building, with all readings."""
    catalog = Catalog(())
    for statement in parse_script(SCRIPT):
        if not isinstance(statement, CreateSource):
            raise TypeError(f"{statement} defines no source")
        catalog.define(define(statement, catalog))
    seats = [f"m-{room}-{seat}" for room in range(ROOMS) for seat in range(SEATS)]
    names = [*seats, *(f"other-{n}" for n in range(STORED - len(seats)))]
    return World(
        "building",
        catalog,
        (*GATEWAYS, BASES[1]),
        tables={
            "machine": tuple((name, "x86") for name in names),
            "lease": tuple((name, "physics") for name in names),
        },
        recorded=_readings(WARM_SECONDS + seconds, random.Random(seed)),
        warm=WARM_SECONDS,
        seconds=seconds,
    )


def _readings(seconds: float, chance: random.Random) -> Readings:
    found: Readings = []

    def hear(source: str, gateway: int, period: float, *rows: Row) -> None:
        at = chance.random() * period
        while at < seconds:
            time = START + int(at * MICROSECONDS)
            event = SourceEvent(chance.choice(rows), time)
            found.append((time, GATEWAYS[gateway % len(GATEWAYS)], source, event))
            at += period * chance.uniform(0.8, 1.2)

    for room in range(ROOMS):
        for seat in range(SEATS):
            rows = [(f"m-{room}-{seat}", f"r-{room}", weight) for weight in range(100)]
            hear("Seat", room, SEAT_SECONDS, *rows)
        hear("Door", room + 1, ROOM_SECONDS, *((f"r-{room}", s) for s in ("open", "shut")))
        hear("Air", room + 1, ROOM_SECONDS, *((f"r-{room}", n) for n in range(400, 2000, 50)))
        for gateway in range(2):  # both hear people of a room
            hear("Seen", room + gateway, SEEN_SECONDS, (f"r-{room}", room // 3))
    return sorted(found, key=lambda reading: reading[0])


def apart(bundle: FragmentBundle) -> FragmentBundle:
    """Return a bundle in which each reader has fragments of its own, as it was.

    Keys of a stream are read from what the join reads.
    """
    made: dict[str, Fragment] = {}

    def add(old: str, consumer: str, above: Mapping[str, str]) -> str:
        fragment, name = bundle.fragment(old), f"f{len(made)}"
        made[name] = fragment
        leaves = [n.fragment for n in walk_plan(fragment.plan) if isinstance(n, RemoteSource)]
        if fragment.engine == Engine.BASE and fragment.destinations == (STATIC,):
            ids = dict(above)
        else:
            ids = {}
            # What a join reads comes before the tables that are asked for its keys.
            for leaf in sorted(dict.fromkeys(leaves), key=lambda f: f in asking):
                ids[leaf] = add(leaf, name, above if old in asking else ids)

        def renamed(node: Plan) -> Plan:
            if isinstance(node, RemoteSource):
                return RemoteSource(ids[node.fragment], node.columns)
            return node

        plan_of = transform_up(fragment.plan, renamed)
        made[name] = changed(fragment, id=name, consumer=consumer, plan=plan_of)
        return name

    asking = {f.id for f in bundle.fragments if f.engine == Engine.STATIC}
    add(bundle.fragments[0].id, "", {})
    return changed(bundle, fragments=tuple(made.values()))


def measured(world: World, name: str) -> Figures:
    """Return the figures of a query."""
    names: dict[str, set[str]] = {gateway: set() for gateway in GATEWAYS}
    for _, gateway, source, _ in world.recorded:
        names[gateway].add(source.lower())
    bases = BASES if name == "two bases" else BASES[:1]
    topology = Topology({site: frozenset(has) for site, has in names.items()}, bases=bases)
    bound = bound_in(QUERIES[name], world)
    ready = normalize(bound.plan, topology)
    statistics = known_facts(world, ready, world.recorded)
    search = Search(ready, topology, statistics)
    every = [search.plan(number) for number in range(1, search.memo.count() + 1)]
    former = min(
        (each for each in every if IN_NETWORK.isdisjoint(each.methods)),
        key=lambda each: each.cost.bytes,
    )
    taken = plan(bound, topology, query="q", statistics=statistics)
    before = plan(replace(bound, asked=former.number), topology, query="q", statistics=statistics)
    wanted = expected_rows(world, bound, world.recorded)
    figures: Figures = {}
    right = True
    for when, bundle in (("before", apart(before)), ("after", taken)):
        used, rows = run_plan(world, bundle, world.recorded)
        right = right and rows == wanted
        figures[when] = round(used.bytes, 1)
        figures[f"fragments {when}"] = len(bundle.fragments)
    saved = 100 * (1 - figures["after"] / figures["before"])
    return {**figures, "saved": round(saved, 1), "right": right}


def main() -> None:
    """Run all queries."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="ten seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=40.0, help="that are counted")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--results", type=Path, help="folder for read-twice.json")
    options = parser.parse_args()
    world = world_of(10.0 if options.quick else options.seconds, options.seed)
    found = {name: measured(world, name) for name in QUERIES}
    write_results(options.results, "read-twice.json", found)
    if options.json:
        print(json.dumps(found))
        return
    print_tables({"bytes a second": found}, digits=1)


if __name__ == "__main__":
    main()
