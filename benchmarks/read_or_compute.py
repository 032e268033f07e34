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

Then what registration chooses, by the facts of now, for a query that may read all seats with their
rooms from an older query's result, or compute what it wants of them anew. Each room has 3, 100 or
1,000 seats, and fifty rooms change a second. Three networks in turns: the older query alone, with
the newer one reading, and with it computing anew.

    few         the seats whose number the room tells: one of each room
    one         the seats of a constant number, by which a site looks readers up
    counts      seats by status, which can be counted by room before they are joined

    read, anew  microseconds of a change beyond that of the older query alone (least decile)
    chosen      by registration
    cheaper     measured; of two that differ by less than a quarter neither, and reading where
                computing anew sends more

How to read it: only ratios within one run mean anything. A part whose rows cost less than to hand
them on is better computed twice: so a query moves onto a node only where work says so. Answers are
compared after every change.
"""

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles

from benchmarks._compared_networks import BASE, Figures, QueriesAtSites, compare_and_print
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.strategy import Materialize
from federated_optimizer.statistics.planning_statistics import ColumnFacts, SourceFacts, Statistics
from streamsql.data.events import SourceEvent

GATEWAYS = ("gw-1", "gw-2")
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
NUMBERED = """
CREATE SOURCE room (rid TEXT, status TEXT, n INTEGER, KEY (rid));
CREATE SOURCE seat (mid TEXT, rid TEXT, n INTEGER, KEY (mid));
"""
SEATS = "SELECT s.mid, s.rid, s.n, r.status, r.n AS told FROM seat s JOIN room r ON s.rid = r.rid"
CHOICES = {
    "few": f"{SEATS} WHERE s.n = r.n",
    "one": f"{SEATS} WHERE s.n = 1",
    "counts": f"SELECT p.status, COUNT(*) AS n FROM ({SEATS}) p GROUP BY p.status",
}
CHANGES = 100.0
"""Rows of rooms that come or go a second, as registration is told."""
TIE = 1.25
"""Times that differ by less are the same."""


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


class TimedSites(QueriesAtSites):
    """Sites with queries, and the time of each change."""

    seconds: list[float]

    def change(self, source: str, gateway: str, events: list[SourceEvent]) -> None:
        """Let readings arrive, until all is at rest."""
        began = time.process_time()
        self.sites.ingest(gateway, source, events)
        self.sites.settle()
        self.seconds.append(time.process_time() - began)


class World(TimedSites):
    """Sites with both queries."""

    def __init__(self, kind: Kind, materialize: Materialize) -> None:
        super().__init__(SCHEMA, GATEWAYS, Sharing(ComputationIndex(), materialize=materialize))
        self.seconds = []
        self.register((kind.older, kind.newer))
        older, newer = (self.runs.result(query) for query in self.queries)
        self.reads_once = bool({f.run for f in older.feeds} & {f.run for f in newer.feeds})


class Choice(TimedSites):
    """Sites with the query of all seats, and perhaps another one.

    Attributes:
        reads: Whether that reads the result of the first.

    Args:
        statistics: By which the other one is registered; where nothing is known it reads.
        text: Of the other one; empty: there is none.
        allowed: Whether it may read the result.
    """

    def __init__(self, statistics: Statistics, text: str, *, allowed: bool = True) -> None:
        sharing = Sharing(ComputationIndex())
        super().__init__(NUMBERED, GATEWAYS, sharing, lambda to: Planning(to, statistics))
        self.seconds = []
        self._sent = 0
        self.register([SEATS], silent=True)
        if not allowed:
            self.runs.sharing = replace(sharing, allowed=_is_delivered)
        self.register([text] if text else [])
        self.reads = bool(self.runs.result(self.queries[-1]).results_read)

    def sent(self) -> int:
        """Return bytes from gateways to the base since it was asked last."""
        traffic = self.sites.traffic.bytes
        total = sum(traffic.get((gateway, BASE), 0) for gateway in GATEWAYS)
        before, self._sent = self._sent, total
        return total - before


def _is_delivered(offer: Offer) -> bool:
    return bool(offer.fragment and offer.bundle.fragment(offer.fragment).consumer)


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


def compare(name: str, rooms: int, count: int, seed: int) -> Figures:
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
    found: Figures = {"kind": name, "changes": count}
    for label, world in (("twice", twice), ("once", once)):
        found[f"{label}_ms"] = median(world.seconds) * 1_000
        found[f"{label}_rows"] = world.rows_kept()
    return found


def facts(rooms: int, fan: int) -> Statistics:
    """Return what a federation has counted of the rooms and their seats."""
    of_room = ColumnFacts(rooms, rooms)
    number = ColumnFacts(fan, fan, same=1.0)
    columns = {("room", "rid"): of_room, ("seat", "rid"): replace(of_room, same=1.0)}
    columns |= {("room", "n"): number, ("seat", "n"): number}
    columns["room", "status"] = ColumnFacts(2.0, 2.0, same=0.0)
    sources = {"room": SourceFacts(rooms, CHANGES), "seat": SourceFacts(rooms * fan, 0.0)}
    return Statistics(sources=sources, columns=columns)


def room(number: int, status: str, fan: int, ts: int) -> SourceEvent:
    """Return a reading of a room, which tells the number of one of its seats."""
    return SourceEvent((f"r{number}", status, number % fan), ts)


def choose(name: str, rooms: int, fan: int, count: int, seed: int) -> Figures:
    """Return what registration chooses for a query, and what both ways cost."""
    text, known = CHOICES[name], facts(rooms, fan)
    chosen = Choice(known, text)
    read = chosen if chosen.reads else Choice(Statistics(), text)
    anew = Choice(known, text, allowed=False) if chosen.reads else chosen
    if not read.reads or anew.reads:
        raise AssertionError(f"{name}: no network reads, or none computes anew")
    worlds = (Choice(known, ""), read, anew)
    seats = [(f"m{n}-{each}", f"r{n}", each) for n in range(rooms) for each in range(fan)]
    for world in worlds:
        started = [room(n, STATUSES[0], fan, 0) for n in range(rooms)]
        world.change("room", GATEWAYS[0], started)
        world.change("seat", GATEWAYS[1], [SourceEvent(row, 0) for row in seats])
        world.seconds.clear()
        world.sent()
    chance, states = random.Random(seed), dict.fromkeys(range(rooms), False)
    for number in range(1, count + 1):
        one = chance.randrange(rooms)
        states[one] = not states[one]
        first = number % len(worlds)
        for world in (*worlds[first:], *worlds[:first]):
            event = room(one, STATUSES[states[one]], fan, number)
            world.change("room", GATEWAYS[0], [event])
        if read.answers()[1:] != anew.answers()[1:]:
            raise AssertionError(f"{name}: a query answers otherwise over a node")
    alone, *times = (quantiles(world.seconds, n=10)[0] * 1e6 for world in worlds)
    times = [each - alone for each in times]
    sent = [world.sent() for world in (read, anew)]
    return {
        "kind": name,
        "fan": fan,
        "read_us": times[0],
        "anew_us": times[1],
        "read_bytes": sent[0] / count,
        "anew_bytes": sent[1] / count,
        "chosen": "read" if chosen.reads else "anew",
        "cheaper": cheaper(times, sent),
    }


def cheaper(times: Sequence[float], sent: Sequence[int]) -> str:
    """Return which of reading and computing anew costs less, by bytes and then by time."""
    read, anew = times
    if sent[1] > 1.01 * sent[0] or TIE * read < anew:
        return "read"
    return "anew" if TIE * anew < read else "neither"


def compare_all(quick: bool, seed: int) -> list[Figures]:
    """Return the figures of each kind of part, and of each choice."""
    rooms, count = (20, 30) if quick else (100, 600)
    found = [compare(name, rooms, count, seed) for name in KINDS]
    count = 20 if quick else 200
    sizes = ((400, 3), (20, 100), (20, 1_000))
    return found + [choose(name, *size, count, seed) for name in CHOICES for size in sizes]


def show(found: list[Figures]) -> None:
    """Print figures as tables."""
    print(
        f"{'':10} {'twice':>8} {'once':>8} {'ms/change':>10} {'twice':>8} {'once':>8} {'rows':>10}"
    )
    for f in (each for each in found if "twice_ms" in each):
        ms = float(f["twice_ms"]), float(f["once_ms"])
        rows = float(f["twice_rows"]), float(f["once_rows"])
        print(
            f"{f['kind']:10} {ms[0]:8.3f} {ms[1]:8.3f} {ms[1] / ms[0]:9.2f}x "
            f"{rows[0]:8.0f} {rows[1]:8.0f} {rows[1] / rows[0]:9.2f}x"
        )
    print(f"\n{'':10} {'seats':>6} {'read us':>8} {'anew us':>8} {'chosen':>8} {'cheaper':>8}")
    for f in (each for each in found if "chosen" in each):
        us = float(f["read_us"]), float(f["anew_us"])
        print(
            f"{f['kind']:10} {f['fan']:6} {us[0]:8.0f} {us[1]:8.0f} "
            f"{f['chosen']:>8} {f['cheaper']:>8}"
        )


def main() -> int:
    """Measure and print."""
    quick = "20 rooms, 30 changes"
    return compare_and_print(__doc__.splitlines()[0], quick, compare_all, show)


if __name__ == "__main__":
    sys.exit(main())
