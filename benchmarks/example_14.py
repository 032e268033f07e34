"""Example 14 of the thesis both ways: seats joined with rooms in the network, or at the base.

    python -m benchmarks.example_14 [--quick] [--json] [--seconds 40] [--results docs/results]

Free machines in open rooms that have some software. A seat is free below a threshold, which goes
from 1 % to 100 % of the weights. A room's status changes often, and then all its free seats come or
go in the join; so few free seats are joined best in the network, and many at the base.

    one gateway      a room and its seats are at one gateway (`colocate`)
    two gateways     the seats of a room are at one gateway, its sensor is at another one

For every threshold the cheapest plan of each way, by the optimizer's estimate, runs in a simulated
federation; all have to give the rows of the reference evaluator. One of them is the plan that is
taken.

    network, base    bytes a second between sites, with the headers of messages
    keys             the same of a join at the base after a semi-join
    chosen           the way that the optimizer takes
    regret           bytes of the chosen way over those of the best one
    crossover        percent of free seats from which the base is better: measured, and chosen
"""

import argparse
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks._figures import print_tables, write_results
from benchmarks._optimizer.forced_plans import bound_in, expected_rows, run_plan
from benchmarks._optimizer.known_facts import known_facts
from benchmarks._optimizer.worlds import START, Readings, World
from federated_optimizer import Topology, colocation_of, normalize, plan
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import Devices
from streamsql.algebra.operators import Join, JoinKind, walk_plan
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.syntax import CreateSource, parse_script
from streamsql.wire.fragments import Engine, FragmentBundle

QUERY = """
SELECT m.mid, sr.rid FROM Machines m, MachineSoftware ms, SeatSensor ss, RoomSensor sr
WHERE ms.software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid AND ss.weightLevel < {threshold}
  AND sr.rid = ss.rid AND sr.status = 'open'"""
SCRIPT = """
CREATE SOURCE SeatSensor (mid TEXT, rid TEXT, weightLevel INTEGER, KEY (mid)) WITH (ttl = '90 s'{});
CREATE SOURCE RoomSensor (rid TEXT, status TEXT, KEY (rid)) WITH (ttl = '90 s'{});
CREATE TABLE Machines (mid TEXT PRIMARY KEY, cpu TEXT) WITH (source = 'csv', path = 'm.csv');
CREATE TABLE MachineSoftware (mid TEXT, software TEXT) WITH (source = 'csv', path = 's.csv');
"""
GATEWAYS = ("gw-1", "gw-2", "gw-3", "gw-4")
ROOMS, SEATS = 8, 24
"""Rooms, and seats of each."""
SEAT_SECONDS, ROOM_SECONDS = 10.0, 4.0
"""Between two readings of a device."""
THRESHOLDS = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
QUICK = (5, 90)
WARM_SECONDS = 15.0
TOGETHER, APART = "one gateway", "two gateways"
NETWORK, KEYS, BASE_WAY = "network", "keys", "base"
WAYS = (NETWORK, KEYS, BASE_WAY)

Figures = dict[str, float | str | bool]


def world_of(placed: str, seconds: float, seed: int) -> World:
    """Return the building, with all readings; `placed` says which gateways have a room."""
    option = ", colocate = 'rid'" if placed == TOGETHER else ""
    catalog = Catalog(())
    for statement in parse_script(SCRIPT.format(option, option)):
        if not isinstance(statement, CreateSource):
            raise TypeError(f"{statement} defines no source")
        catalog.define(define(statement, catalog))
    machines = [f"m-{room}-{seat}" for room in range(ROOMS) for seat in range(SEATS)]
    return World(
        placed,
        catalog,
        GATEWAYS,
        tables={
            "machines": tuple((mid, "x86") for mid in machines),
            "machinesoftware": tuple((mid, "Word") for mid in machines),
        },
        recorded=_readings(placed, WARM_SECONDS + seconds, random.Random(seed)),
        warm=WARM_SECONDS,
        seconds=seconds,
    )


def gateway_of(placed: str, source: str, room: int) -> str:
    """Return the gateway of a room's seats, or of its sensor."""
    elsewhere = placed == APART and source == "RoomSensor"
    return GATEWAYS[(room + elsewhere) % len(GATEWAYS)]


def _readings(placed: str, seconds: float, chance: random.Random) -> Readings:
    found: Readings = []
    for room in range(ROOMS):
        for seat in range(SEATS):
            for time in _times(SEAT_SECONDS, seconds, chance):
                row = (f"m-{room}-{seat}", f"r-{room}", chance.randrange(100))
                gateway = gateway_of(placed, "SeatSensor", room)
                found.append((time, gateway, "SeatSensor", SourceEvent(row, time)))
        for time in _times(ROOM_SECONDS, seconds, chance):
            status = (f"r-{room}", chance.choice(("open", "closed")))
            gateway = gateway_of(placed, "RoomSensor", room)
            found.append((time, gateway, "RoomSensor", SourceEvent(status, time)))
    return sorted(found, key=lambda reading: reading[0])


def _times(period: float, seconds: float, chance: random.Random) -> Iterable[int]:
    at = chance.random() * period
    while at < seconds:
        yield START + int(at * MICROSECONDS)
        at += period * chance.uniform(0.8, 1.2)


def topology_of(world: World) -> Topology:
    """Return the sites, with those sources that each has."""
    names: dict[str, set[str]] = {gateway: set() for gateway in GATEWAYS}
    for _, gateway, source, _ in world.recorded:
        names[gateway].add(source.lower())
    return Topology(
        {gateway: frozenset(sources) for gateway, sources in names.items()},
        colocation=colocation_of(world.catalog),
    )


def devices_of(world: World) -> Devices:
    """Return the devices as gateways announce them: by the keys of their rows."""
    gateways: dict[str, dict[str, str]] = {}
    for _, gateway, source, event in world.recorded:
        gateways.setdefault(source.lower(), {})[str(event.row[0])] = gateway
    return Devices(gateways)


def way_of(bundle: FragmentBundle) -> str:
    """Return where seats and rooms are joined: in the network, or at the base, perhaps by keys."""
    joins = {
        node.kind
        for fragment in bundle.fragments
        if fragment.engine == Engine.GATEWAY
        for node in walk_plan(fragment.plan)
        if isinstance(node, Join)
    }
    if JoinKind.INNER in joins:
        return NETWORK
    return KEYS if joins else BASE_WAY


def measured(world: World, threshold: int) -> Figures:
    """Return the figures of a threshold."""
    topology = topology_of(world)
    bound = bound_in(QUERY.format(threshold=threshold), world)
    ready = normalize(bound.plan, topology)
    statistics = replace(known_facts(world, ready, world.recorded), devices=devices_of(world))
    search = Search(ready, topology, statistics)
    every = [search.plan(number) for number in range(1, search.memo.count() + 1)]
    cheapest: dict[str, tuple[int, float, FragmentBundle]] = {}
    for choice in sorted(every, key=lambda each: each.cost.bytes):
        asked = replace(bound, asked=choice.number)
        bundle = plan(asked, topology, query="q", statistics=statistics)
        cheapest.setdefault(way_of(bundle), (choice.number, choice.cost.bytes, bundle))
        if len(cheapest) == len(WAYS):
            break
    runs = {
        way: run_plan(world, bundle, world.recorded) for way, (_, _, bundle) in cheapest.items()
    }
    wanted = expected_rows(world, bound, world.recorded)
    sent = {way: used.bytes for way, (used, _) in runs.items()}
    chosen = way_of(plan(bound, topology, query="q", statistics=statistics))
    return {
        **{way: round(size, 1) for way, size in sent.items()},
        **{f"estimated {way}": round(size, 1) for way, (_, size, _) in cheapest.items()},
        "chosen": chosen,
        "regret": round(sent[chosen] / min(sent.values()), 3),
        "right": all(rows == wanted for _, rows in runs.values()),
    }


def crossovers(found: Mapping[int, Figures]) -> dict[str, float | None]:
    """Return the first threshold from which the network is not best: by bytes, and by choices."""

    def others(figures: Figures) -> float:
        return min(float(figures[way]) for way in (BASE_WAY, KEYS) if way in figures)

    points = [
        (threshold, others(f) - float(f[NETWORK]), f["chosen"] != NETWORK)
        for threshold, f in found.items()
    ]
    by_bytes = by_choice = None
    for (low, before, was), (high, after, now) in pairwise(points):
        if by_bytes is None and before > 0 >= after:
            by_bytes = round(low + (high - low) * before / (before - after), 1)
        if by_choice is None and not was and now:
            by_choice = (low + high) / 2
    return {"measured": by_bytes, "chosen": by_choice}


def run(thresholds: Sequence[int], seconds: float, seed: int) -> dict[str, Any]:
    """Return all figures."""
    found: dict[str, Any] = {}
    for placed in (TOGETHER, APART):
        world = world_of(placed, seconds, seed)
        by = {threshold: measured(world, threshold) for threshold in thresholds}
        found[placed] = {
            "crossover": crossovers(by),
            "thresholds": {str(threshold): figures for threshold, figures in by.items()},
        }
    return found


def draw(found: Mapping[str, Any], folder: Path) -> None:
    """Write the chart as SVG."""
    import matplotlib as mpl  # noqa: PLC0415  (slow to import, needed only here)

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "example-14"
    figure, panels = plt.subplots(1, len(found), figsize=(10, 4.2), layout="constrained")
    for panel, (placed, figures) in zip(panels, found.items(), strict=True):
        by = figures["thresholds"]
        percent = [int(threshold) for threshold in by]
        for way, style, label in (
            (NETWORK, "-o", "join in the network"),
            (BASE_WAY, "-s", "join at the base"),
            (KEYS, "-^", "at the base after a semi-join"),
        ):
            if all(way in f for f in by.values()):
                panel.plot(percent, [f[way] for f in by.values()], style, label=label)
        taken = [f[f["chosen"]] for f in by.values()]
        panel.plot(percent, taken, "k*", markersize=11, markerfacecolor="none", label="chosen")
        for name, style in (("measured", ":"), ("chosen", "--")):
            at = figures["crossover"][name]
            if at is not None:
                panel.axvline(at, color="gray", linestyle=style, label=f"crossover, {name}")
        panel.set_xlabel("free seats (%)")
        panel.set_ylabel("bytes a second between sites")
        panel.set_ylim(bottom=0)
        panel.grid(visible=True, alpha=0.3)
        panel.legend(fontsize="small")
        panel.set_title(f"a room and its seats: {placed}")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "example-14.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Run all thresholds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two thresholds, ten seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=40.0, help="that are counted")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--results", type=Path, help="folder for example-14.json and .svg")
    options = parser.parse_args()
    seconds = 10.0 if options.quick else options.seconds
    found = run(QUICK if options.quick else THRESHOLDS, seconds, options.seed)
    write_results(options.results, "example-14.json", found)
    if options.results is not None:
        draw(found, options.results)
    if options.json:
        print(json.dumps(found))
        return
    for placed, figures in found.items():
        shown = {
            f"{threshold} %": {name: f[name] for name in (*WAYS, "regret") if name in f}
            for threshold, f in figures["thresholds"].items()
        }
        print_tables({f"{placed}: bytes a second": shown}, digits=2)
        print(f"  chosen: {', '.join(f['chosen'] for f in figures['thresholds'].values())}")
        print(f"  crossover: {figures['crossover']}")


if __name__ == "__main__":
    main()
