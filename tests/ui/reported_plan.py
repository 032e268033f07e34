"""What sites would report of a join: rows of sys_operators and sys_stream for a coordinator."""

from collections.abc import Iterator
from itertools import pairwise

from streamsql.data.types import Row

SITES = ("base", "gw-1", "gw-2")
TEXT = (
    "SELECT ss.mid, sr.rid FROM SeatSensor ss JOIN RoomSensor sr ON ss.rid = sr.rid "
    "WHERE ss.weightLevel < 5.0"
)
_BEGIN = 1_770_000_000_000_000
_GATEWAY = (
    ("f1/0", "Scan stream seatsensor [RANGE 1 MINUTE]", ""),
    ("f1/1", "Filter weightlevel < 5.0", "f1/0"),
    ("f1/2", "Scan stream roomsensor", ""),
    ("f1/3", "InnerJoin [rid = rid]", "f1/1 f1/2"),
)
_BASE = (("f0/0", "RemoteSource[f1]", ""), ("f0/1", "Project mid, rid", "f0/0"))


class ReportedPlan:
    """Answers the monitor's queries, second by second.

    Attributes:
        second: Of the newest report.
        scheduler: Which number gw-1 reports, as of the next second.
        report_seconds: How often gw-1 says that it reports.
        waiting: Rows that wait at each site.
        shared: Whether the join's synopsis is a stub of a store.
    """

    def __init__(self, query: str, sites: tuple[str, ...] = SITES) -> None:
        self._query = query
        self._sites = sites
        self.second = 1
        self.scheduler = 0
        self.shared = True
        self.waiting = 4
        self.report_seconds = 1

    def answer(self, text: str) -> list[Row]:
        """Return what a session query begins with."""
        if "sys_operators" in text:
            return [
                (site, entity, line, inputs)
                for site in self._sites
                for entity, line, inputs in (_BASE if site == "base" else _GATEWAY)
            ]
        if text.startswith("SELECT ts, site, query"):
            return list(self.numbers(self.second))
        return self.series(text, self.second)

    def series(self, text: str, second: int) -> list[Row]:
        """Return the rows of a graph's query, by the sites, entities and properties it names."""
        wanted = set(text.split("'")[1::2])
        sites = wanted.intersection(self._sites) or set(self._sites)
        return [
            (ts, site, entity, name, value)
            for ts, site, query, entity, kind, name, value in self.numbers(second)
            if site in sites
            and name in wanted
            and kind in wanted
            and (not query or entity in wanted)
        ]

    def numbers(self, second: int) -> Iterator[Row]:
        """Yield all measurements of a second: ts, site, query, entity, kind, property, value."""
        ts = _BEGIN + second * 1_000_000
        for site in self._sites:
            scheduler = self.scheduler if site == "gw-1" else 0
            whole, own = (ts, site, ""), (ts, site, self._query)
            facts = {"scheduler": scheduler, "report_seconds": self.report_seconds}
            yield from _rows(whole, site, "site", queued_rows=self.waiting, memory_mb=80.5, **facts)
            for entity, _line, _inputs in _BASE if site == "base" else _GATEWAY:
                yield from _rows(
                    own,
                    entity,
                    "operator",
                    rows_in_per_s=20 + second,
                    rows_out_per_s=10 + second,
                    selectivity=0.25,
                    rows_out=10 * second,
                )
            if site == "base":
                continue
            yield from _rows(own, "f1/0-1.0", "queue", rows=second % 7, batches=1)
            shared = int(self.shared)
            yield from _rows(own, "f1/3", "synopsis", rows=300 + second, shared=shared, store=7)
            if self.shared:
                yield from _rows(whole, "s7", "store", rows=411, stubs=2)
            yield from _rows(own, "to base", "channel", batches=second, bytes=90 * second)


def _rows(of: tuple[int, str, str], entity: str, kind: str, **facts: float) -> Iterator[Row]:
    for name, value in facts.items():
        yield (*of, entity, kind, name, float(value))


def seconds(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield each second with the one before."""
    return pairwise(range(first, last + 1))
