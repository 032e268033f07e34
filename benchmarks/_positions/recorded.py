"""Recorded signals with known truth, and the sources, plans and events made of them."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.library import library_views
from streamsql.syntax import CreateSource, CreateView, Query, parse_script

Floats = NDArray[np.float64]
Happened = list[tuple[str, SourceEvent]]

SECOND = 1_000_000
NOTHING_HEARD = -100.0
RECEIVERS = ((5.48, 2.41), (0.79, 6.75), (3.03, 0.14), (3.79, 7.06), (5.99, 0.43), (8.66, 6.59))
"""Where the receivers of the flat are, in metres."""
SOURCES = """
CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) WITH (ttl = '1 min');
CREATE SOURCE seen (badge TEXT, receiver TEXT, ts TIMESTAMP) WITH (ttl = '1 min');
CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
CREATE TABLE radio_map (point TEXT, receiver TEXT, rssi DOUBLE);
CREATE TABLE calibration_point (point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
"""
WITHOUT_HYSTERESIS = """
SELECT n.badge, r.room, r.x, r.y, 0.0 AS confidence
FROM (SELECT badge, receiver, AVG(rssi) AS rssi FROM heard [RANGE 10 SECONDS]
      GROUP BY badge, receiver) AS n
JOIN receiver r ON r.receiver = n.receiver
QUALIFY ROW_NUMBER() OVER (PARTITION BY n.badge ORDER BY n.rssi DESC, n.receiver) = 1"""
VIEWS = {
    "strongest_room": "SELECT p.badge, p.room, r.x, r.y, p.confidence FROM strongest_room p "
    "JOIN receiver r ON r.receiver = p.receiver",
    "weighted_centroid": "SELECT badge, room, x, y, confidence FROM weighted_centroid",
    "radio_map_position": "SELECT badge, room, x, y, confidence FROM radio_map_position",
}
"""Queries (badge, room, x, y, confidence)."""


def with_window(name: str, seconds: int) -> str:
    """Return the script of a view of the library with means of other windows than 10 s."""
    (text,) = [view.text for view in library_views() if view.name == name]
    copied = text.replace("[RANGE 10 SECONDS]", f"[RANGE {seconds} SECONDS]")
    return f"{copied.replace(f'VIEW {name}', 'VIEW copied')}{VIEWS[name].replace(name, 'copied')};"


_HERE = Path(__file__).parent


def plan_of(text: str) -> Plan:
    """Return the plan of a query over the sources.

    Raises:
        ValueError: It is no query.
    """
    catalog = Catalog(library_views())
    for statement in parse_script(f"{SOURCES}{text}"):
        if isinstance(statement, CreateSource | CreateView):
            catalog.define(define(statement, catalog))
        elif isinstance(statement, Query):
            return bind_query(statement, catalog).plan
    raise ValueError(f"no query: {text}")


def _rows(name: str, part: str) -> list[list[str]]:
    with (_HERE / name).open(encoding="utf-8") as lines:
        return [row[1:] for row in csv.reader(lines) if row[0] == part]


def flat(part: str) -> tuple[Floats, Floats]:
    """Return positions (n, 2) in metres and RSSI (n, 6) in dBm of "map" or "test"."""
    numbers = np.array(_rows("ble_flat.csv", part), dtype=np.float64)
    return numbers[:, :2], numbers[:, 2:]


def rooms(part: str) -> tuple[list[str], Floats]:
    """Return the room and RSSI (n, 7) in dBm of each moment of "map" or "test"."""
    rows = _rows("wifi_rooms.csv", part)
    return [f"room {row[0]}" for row in rows], np.array([r[1:] for r in rows], dtype=np.float64)


def cells(places: Floats) -> list[str]:
    """Return the nearest receiver of each place: the flat's data name no rooms."""
    metres = np.linalg.norm(places[:, None, :] - np.array(RECEIVERS)[None, :, :], axis=2)
    return [f"r{nearest}" for nearest in np.argmin(metres, axis=1)]


def levels(signals: Floats) -> list[list[tuple[str, float]]]:
    """Return what each row of signals (n, receivers) is by receiver, without what is not heard."""
    return [
        [(f"r{n}", float(level)) for n, level in enumerate(row) if level > NOTHING_HEARD]
        for row in signals
    ]


def tables(named: Sequence[str], places: Floats, signals: Floats) -> Happened:
    """Return the tables of a radio map whose points have rooms, places and signals."""
    found: list[tuple[str, Row]] = [
        ("receiver", (f"r{n}", f"r{n}", 0, x, y)) for n, (x, y) in enumerate(RECEIVERS)
    ]
    found += [
        ("calibration_point", (f"p{n}", room, 0, float(x), float(y)))
        for n, (room, (x, y)) in enumerate(zip(named, places, strict=True))
    ]
    found += [
        ("radio_map", (f"p{n}", *level)) for n, row in enumerate(levels(signals)) for level in row
    ]
    return [(name, SourceEvent(row, 0)) for name, row in found]


def heard(badge: str, row: Sequence[tuple[str, float]], now: int) -> Happened:
    """Return the readings of a badge at a time."""
    return [("heard", SourceEvent((badge, *level, now), now)) for level in row]
