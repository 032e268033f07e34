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

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks._compared_networks import Figures, QueriesAtSites, compare_and_print
from federated_optimizer.registering.registration_terms import Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize
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


class World(QueriesAtSites):
    """Sites with both queries, and the time of each change."""

    def __init__(self, kind: Kind, materialize: Materialize) -> None:
        super().__init__(SCHEMA, GATEWAYS, Sharing(ComputationIndex(), materialize=materialize))
        self.seconds: list[float] = []
        self.register((kind.older, kind.newer))
        older, newer = (self.runs.result(query) for query in self.queries)
        self.reads_once = bool({f.run for f in older.feeds} & {f.run for f in newer.feeds})

    def change(self, source: str, gateway: str, events: list[SourceEvent]) -> None:
        """Let readings arrive, until all is at rest."""
        began = time.process_time()
        self.sites.ingest(gateway, source, events)
        self.sites.settle()
        self.seconds.append(time.process_time() - began)


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


def compare_all(quick: bool, seed: int) -> list[Figures]:
    """Return the figures of each kind of part."""
    rooms, count = (20, 30) if quick else (100, 600)
    return [compare(name, rooms, count, seed) for name in KINDS]


def show(found: list[Figures]) -> None:
    """Print figures as a table."""
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


def main() -> int:
    """Measure and print."""
    quick = "20 rooms, 30 changes"
    return compare_and_print(__doc__.splitlines()[0], quick, compare_all, show)


if __name__ == "__main__":
    sys.exit(main())
