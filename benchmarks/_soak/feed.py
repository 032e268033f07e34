"""Recordings that feed the gateways, made from a seed; their times are wall-clock times."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SECOND = 1_000_000
GATEWAYS = ("gw-1", "gw-2", "gw-3")
PERIOD = 3 * SECOND
"""Between two rounds; a round lasts a fifth of it, so an answer can settle in what is left."""

WINDOW = 2 * PERIOD
MACHINES = 8
STEADY = 2
"""Of a gateway's machines: those that are above the alarm for most of the time."""
NODES = 4
ALARM = 900

SCHEMA = """
CREATE SOURCE seat (mid TEXT, partner TEXT, v INTEGER, ts TIMESTAMP, KEY (mid))
  WITH (connector = 'replay', endpoint = 'seat');
CREATE SOURCE car (lane TEXT, n INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 s')
  WITH (connector = 'replay', endpoint = 'car', idle = '60 s');
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, pdr DOUBLE, ts TIMESTAMP, KEY (src, dst))
  WITH (connector = 'replay', endpoint = 'link');
CREATE TABLE owner (mid TEXT, owner TEXT) WITH (source = 'csv', path = 'owners.csv');
"""


@dataclass(frozen=True, slots=True)
class Seat:
    """A reading of a machine: replaces the one before."""

    ts: int
    mid: str
    partner: str
    value: int


@dataclass(frozen=True, slots=True)
class Car:
    """A reading that is one of many; `n` tells its gateway apart in any sum."""

    ts: int
    lane: str
    n: int


@dataclass(frozen=True, slots=True)
class Heard:
    """A link that is there from now on, or is gone."""

    ts: int
    src: str
    dst: str
    is_there: bool


@dataclass
class Recording:
    """All that one gateway will be fed, in order of time."""

    seats: list[Seat] = field(default_factory=list)
    cars: list[Car] = field(default_factory=list)
    links: list[Heard] = field(default_factory=list)

    def times(self) -> list[int]:
        """Return the times of all readings."""
        readings: list[Seat | Car | Heard] = [*self.seats, *self.cars, *self.links]
        return [reading.ts for reading in readings]


Feed = Mapping[str, Recording]


def make_feed(seed: int, begin: int, rounds: int) -> Feed:
    """Return what the gateways say in so many rounds from a moment on."""
    choice = random.Random(seed)
    feed = {name: Recording() for name in GATEWAYS}
    there: set[tuple[str, str]] = set()
    for number in range(rounds):
        ts = begin + number * PERIOD
        for place, name in enumerate(GATEWAYS):
            recording = feed[name]
            recording.seats += _seats(choice, place, ts, is_first=number == 0)
            recording.cars += [
                Car(ts + (2 * place + half) * SECOND // 10, name, 1_000**place) for half in (0, 1)
            ]
            recording.links += _links(choice, place, ts, there, 8 if number == 0 else 2)
    return feed


def owners() -> list[tuple[str, str]]:
    """Return the rows of the stored table: half of the machines have an owner."""
    return [
        (f"{name}-m{number}", f"owner of {number}")
        for name in GATEWAYS
        for number in range(0, MACHINES, 2)
    ]


def _seats(choice: random.Random, place: int, ts: int, *, is_first: bool) -> list[Seat]:
    numbers = range(MACHINES) if is_first else sorted(choice.sample(range(MACHINES), 3))
    readings = []
    for number in numbers:
        high = choice.random() < 0.9 if number < STEADY else choice.random() < 0.1
        value = choice.randrange(ALARM, 1_000) if high else choice.randrange(ALARM)
        other = choice.randrange(MACHINES)
        partner = f"{GATEWAYS[(place + 1) % len(GATEWAYS)]}-m{other}"
        readings.append(Seat(ts, f"{GATEWAYS[place]}-m{number}", partner, value))
    return readings


def _links(
    choice: random.Random, place: int, ts: int, there: set[tuple[str, str]], count: int
) -> list[Heard]:
    """Return links that come or go: within a gateway's nodes, and from them to the next one's."""
    mine, next_ones = (
        [f"{GATEWAYS[(place + step) % len(GATEWAYS)]}-n{number}" for number in range(NODES)]
        for step in (0, 1)
    )
    ends = [(a, b) for a in mine for b in (*mine, *next_ones[:1]) if a != b]
    found = []
    for link in sorted(choice.sample(ends, count)):
        there ^= {link}
        found.append(Heard(ts, *link, link in there))
    return found


def write_feed(feed: Feed, folder: Path) -> None:
    """Write the recordings of all gateways."""
    for name, recording in feed.items():
        seats = [f"{_iso(s.ts)},{s.mid},{s.partner},{s.value}" for s in recording.seats]
        cars = [f"{_iso(c.ts)},{c.lane},{c.n}" for c in recording.cars]
        links = [
            f"{_iso(h.ts)},{h.src},{h.dst},11,-61,{1.0 if h.is_there else 0.0},1"
            for h in recording.links
        ]
        _write(folder / f"{name}-seat.csv", ["ts,mid,partner,v", *seats])
        _write(folder / f"{name}-car.csv", ["ts,lane,n", *cars])
        head = ["{}", "datetime,src,dst,channel,mean_rssi,pdr,tx_count"]
        _write(folder / f"{name}-link.k7", [*head, *links])


def endpoints(name: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the endpoints that replay a gateway's recordings."""
    return {
        source: {
            "connector": "replay",
            "file": str(folder / f"{name}-{source}.{form}"),
            "format": form,
        }
        for source, form in (("seat", "csv"), ("car", "csv"), ("link", "k7"))
    }


def _iso(ts: int) -> str:
    # K7 times have no zone and are UTC; those of CSV without a zone are, too.
    return datetime.fromtimestamp(ts / SECOND, UTC).replace(tzinfo=None).isoformat()


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
