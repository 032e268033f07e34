"""Accuracy of the library's positions on recorded BLE signals with known truth.

A robot with a beacon in a furnished flat, six receivers, true positions by LiDAR (see
`benchmarks/_positions/README.md`). Each of the 58 moments of the test drive is a badge that is
heard once; the map has 144 points of other drives. Beside the views: k nearest neighbours in numpy,
over all receivers, and always guessing the middle of the map.

    python -m benchmarks.positions
    python -m benchmarks.positions --json
"""

import argparse
import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._figures import print_tables
from stream_engine.testing.running import LocalRun
from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.library import library_views
from streamsql.syntax import CreateSource, Query, parse_script

DATA = Path(__file__).parent / "_positions" / "ble_flat.csv"
NOTHING_HEARD = -100.0
NEIGHBOURS = 3
RECEIVERS = ((5.48, 2.41), (0.79, 6.75), (3.03, 0.14), (3.79, 7.06), (5.99, 0.43), (8.66, 6.59))
SOURCES = """
CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) WITH (ttl = '1 min');
CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
CREATE TABLE radio_map (point TEXT, receiver TEXT, rssi DOUBLE);
CREATE TABLE calibration_point (point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
"""
VIEWS = {
    "strongest_room": "SELECT p.badge, r.x, r.y FROM strongest_room p "
    "JOIN receiver r ON r.receiver = p.receiver",
    "weighted_centroid": "SELECT badge, x, y FROM weighted_centroid",
    "radio_map_position": "SELECT badge, x, y FROM radio_map_position",
}
Floats = NDArray[np.float64]


def read(name: str) -> tuple[Floats, Floats]:
    """Return positions (n, 2) in metres and RSSI (n, 6) in dBm of a set, "map" or "test"."""
    with DATA.open(encoding="utf-8") as lines:
        rows = [row[1:] for row in csv.reader(lines) if row[0] == name]
    numbers = np.array(rows, dtype=np.float64)
    return numbers[:, :2], numbers[:, 2:]


def plan_of(text: str) -> Plan:
    """Return the plan of a query over the sources.

    Raises:
        ValueError: It is no query.
    """
    catalog = Catalog(library_views())
    for statement in parse_script(f"{SOURCES}{text}"):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
        elif isinstance(statement, Query):
            return bind_query(statement, catalog).plan
    raise ValueError(f"no query: {text}")


def events(places: Floats, signals: Floats, heard: Floats) -> list[tuple[str, SourceEvent]]:
    """Return what the sources receive: tables, and one reading per test and receiver."""
    found: list[tuple[str, Row]] = [
        ("receiver", (f"r{n}", f"r{n}", 0, x, y)) for n, (x, y) in enumerate(RECEIVERS)
    ]
    found += [
        ("calibration_point", (f"p{n}", "flat", 0, float(x), float(y)))
        for n, (x, y) in enumerate(places)
    ]
    found += [("radio_map", (f"p{n}", *signal)) for n, signal in _levels(signals)]
    found += [("heard", (f"b{n}", *signal, 0)) for n, signal in _levels(heard)]
    return [(name, SourceEvent(row, 0)) for name, row in found]


def _levels(signals: Floats) -> list[tuple[int, tuple[str, float]]]:
    return [
        (n, (f"r{receiver}", float(level)))
        for n, row in enumerate(signals)
        for receiver, level in enumerate(row)
        if level > NOTHING_HEARD
    ]


def by_view(text: str, happened: Sequence[tuple[str, SourceEvent]], tests: int) -> Floats:
    """Return the position of each test by a query (badge, x, y)."""
    run = LocalRun(plan_of(text))
    run.step(0, happened)
    found = {str(row[0]): row[1:] for row in expand(run.output)}
    return np.array([found[f"b{n}"] for n in range(tests)], dtype=np.float64)


def by_numpy(places: Floats, signals: Floats, heard: Floats) -> Floats:
    """Return the mean of the nearest neighbours of each test, weighted by distance."""
    distances = np.linalg.norm(heard[:, None, :] - signals[None, :, :], axis=2)
    near = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS]
    weights = 1.0 / (1.0 + np.take_along_axis(distances, near, axis=1))
    found: Floats = (places[near] * weights[:, :, None]).sum(axis=1) / weights.sum(axis=1)[:, None]
    return found


def errors(estimated: Floats, true: Floats) -> dict[str, float]:
    """Return median, mean and 90 % quantile of the error in metres."""
    metres = np.linalg.norm(estimated - true, axis=1)
    return {
        "median (m)": round(float(np.median(metres)), 3),
        "mean (m)": round(float(np.mean(metres)), 3),
        "p90 (m)": round(float(np.quantile(metres, 0.9)), 3),
    }


def measure() -> Mapping[str, Mapping[str, float]]:
    """Return the errors of each method."""
    places, signals = read("map")
    true, heard = read("test")
    happened = events(places, signals, heard)
    table = {name: errors(by_view(text, happened, len(true)), true) for name, text in VIEWS.items()}
    table["k nearest neighbours in numpy"] = errors(by_numpy(places, signals, heard), true)
    middle = np.broadcast_to(places.mean(axis=0), true.shape)
    table["the middle of the map"] = errors(np.array(middle), true)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--quick", action="store_true", help="as without: it takes a second")
    chosen = parser.parse_args()
    table = measure()
    if chosen.json:
        print(json.dumps(table, indent=2))
    else:
        print_tables({"Error of positions, 58 tests, 144 map points, 6 receivers": table}, digits=2)


if __name__ == "__main__":
    main()
