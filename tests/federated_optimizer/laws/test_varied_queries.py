"""Queries and variations of them, registered one after the other, have the rows of their own.

More of them are run by `PANDO_VARIED_SEEDS=1000:1100`.
"""

import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_bundles import Readings
from federated_optimizer.testing_network import Change, Network, answers
from streamsql.binder import BoundQuery
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from streamsql.errors import UnsupportedError
from streamsql.reference import Database, evaluate
from tests.federated_optimizer.laws.shared_query_author import COLUMNS, VIEWS, QueryAuthor
from tests.streamsql.from_text import bound_query, catalog_of

_COLUMNS = "x INTEGER, y INTEGER, d DOUBLE, s TEXT, p BOOLEAN, at TIMESTAMP, ts TIMESTAMP"
CATALOG = catalog_of(
    f"""
CREATE SOURCE t ({_COLUMNS}) WITH (ttl = '1 h');
CREATE SOURCE u ({_COLUMNS}) WITH (ttl = '1 h');
CREATE SOURCE e (x INTEGER, y INTEGER) WITH (ttl = '1 h');
CREATE TABLE v (k INTEGER PRIMARY KEY, y INTEGER);
""",
    VIEWS,
)
STREAMS = frozenset({"t", "u", "e"})
TOPOLOGY = Topology({"gw-1": STREAMS, "gw-2": STREAMS})
START = 1_767_225_600 * MICROSECONDS  # 2026-01-01
NOW = START + 300 * MICROSECONDS
MOST = 2**63 - 1
VALUES: dict[str, tuple[Any, ...]] = {
    "x": (None, 0, 1, 1, 1, 2),
    "y": (None, 0, 1, 1, 2, 2, 3, 3, -1, MOST, -MOST),
    "d": (None, 0.0, -0.0, 0.5, 1.0, 1.5, -1.5, 1e308),
    "s": (None, "", "a", "b", "ab", "A", "abc"),
    "p": (None, True, False),
    "at": (
        *(None, MOST, -MOST),
        *(START + s * MICROSECONDS for s in (0, 61, 150, 3_600, 86_400)),
    ),
    "ts": tuple(START + s * MICROSECONDS for s in (0, 20, 59, 60, 61, 130, 185, 250, 299)),
}


def contents(random: Random) -> dict[str, list[Row]]:
    """Return rows of all tables, some of them twice."""
    made: dict[str, list[Row]] = {
        name: [tuple(random.choice(VALUES[c]) for c in COLUMNS[name]) for _ in range(8)]
        for name in "tu"
    }
    for name in "tu":
        made[name] += made[name][:2]
    made["e"] = [(random.choice((0, 1, 2, 3, None)), random.randrange(4)) for _ in range(5)]
    made["v"] = [(k, random.choice(VALUES["y"])) for k in range(3)]
    return made


def readings_of(tables: dict[str, list[Row]]) -> Readings:
    whole, stored = Database(), Database()
    gateways = (Database(), Database())
    for name, rows in tables.items():
        times = [row[-1] if name in "tu" else NOW for row in rows]
        events = [SourceEvent(row, at) for row, at in zip(rows, times, strict=True)]  # type: ignore[arg-type]
        whole.append(name, events)
        if name == "v":
            stored.append(name, events)
            continue
        for n, gateway in enumerate(gateways):
            gateway.append(name, events[n::2])
    return Readings(whole, {"gw-1": gateways[0], "gw-2": gateways[1], TOPOLOGY.static: stored})


class Session:
    """One network, and queries that come and go.

    Attributes:
        shared: Queries that have read rows of others.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        strategy = self.random.choice([*([Strategy.ALL] * 4), *Strategy])
        sharing = Sharing(ComputationIndex(), strategy, self.random.choice(list(Materialize)))
        self.network = Network(Planning(TOPOLOGY), sharing)
        self.shared = 0
        self._versions: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._bound: dict[str, BoundQuery] = {}

    def run(self, queries: int) -> None:
        """Register variations of one query, some of them of others of them."""
        share = self.random.choice((0.02, 0.05, 0.1, 0.2))
        author = QueryAuthor(self.random)
        for number in range(queries):
            other = author.varied(share)
            self._register(other.query())
            if not number or self.random.random() < 0.3:
                author = other
            if self.random.random() < 0.2 and len(self.network.reads) > 2:
                gone = self.random.choice(list(self.network.reads))
                self._deploy(self.network.deregister(gone))
            if self.random.random() < 0.4:
                self.check()
        self.check()
        for query in list(self.network.reads):
            self.network.deregister(query)
        assert not self.network.runs
        assert not len(self.network.sharing.index)

    def _register(self, text: str) -> None:
        bound = bound_query(text, CATALOG)
        try:
            change = self.network.register(bound)
        except UnsupportedError:
            return
        self._texts[change.query], self._bound[change.query] = text, bound
        self._deploy(change)
        self.shared += bool(change.registration and change.registration.used)

    def _deploy(self, change: Change) -> None:
        """Check that each bundle takes the place of an older one."""
        for bundle in change.deploy:
            assert bundle.version > self._versions.get(bundle.query, 0), bundle
            self._versions[bundle.query] = bundle.version

    def check(self) -> None:
        """Compare the rows of all queries with those from scratch."""
        readings = readings_of(contents(self.random))
        for query, rows in answers(self.network, readings, NOW).items():
            alone = evaluate(self._bound[query].plan, readings.whole, NOW)
            assert counted(rows) == counted(alone), self._texts[query]


def counted(rows: Delta) -> Counter[Row]:
    """Return rows with one zero."""
    found: Counter[Row] = Counter()
    for row, count in rows.items():
        found[tuple(v + 0.0 if isinstance(v, float) else v for v in row)] += count
    return found


def seeds() -> range:
    first, _, last = os.environ.get("PANDO_VARIED_SEEDS", "17:22").partition(":")
    return range(int(first), int(last or int(first) + 1))


@pytest.mark.parametrize("seed", seeds())
def test_variations_of_a_query_have_their_rows(seed: int) -> None:
    Session(seed).run(10)


def test_variations_are_shared() -> None:
    session = Session(1)
    session.run(12)
    assert session.shared > 3
