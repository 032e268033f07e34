"""Rows of a source that are at the base are read for groups, distinct and first rows, and joins."""

from dataclasses import replace

import pytest

from federated_optimizer.costs.cost import Cost
from federated_optimizer.network.topology import Topology
from federated_optimizer.registering import rows_there
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.statistics.planning_statistics import (
    NOTHING_KNOWN,
    ColumnFacts,
    SourceFacts,
    Statistics,
)
from federated_optimizer.testing_bundles import Readings
from federated_optimizer.testing_network import Network, answers
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE steps (who TEXT, n INTEGER, ts TIMESTAMP) WITH (ttl = '2 hours');
    CREATE SOURCE rooms (rid TEXT, floor INTEGER, KEY (rid));"""
)
TOPOLOGY = Topology(dict.fromkeys(("gw-1", "gw-2"), frozenset({"steps", "rooms"})))
NOW = 1_000
ROWS = "SELECT who, n FROM steps"
OVER_ROWS = [
    "SELECT who, COUNT(*) AS c FROM steps GROUP BY who",
    "SELECT who, MAX(n) AS m FROM steps WHERE n > 1 GROUP BY who",
    "SELECT COUNT(*) AS c, SUM(n) AS s FROM steps WHERE n > 2 AND n < 6",
    "SELECT DISTINCT who FROM steps WHERE n > 3",
    "SELECT who, n FROM steps ORDER BY n DESC, who LIMIT 3",
    "SELECT a.who, COUNT(*) AS c FROM steps a JOIN steps b ON a.who = b.who GROUP BY a.who",
    "SELECT who FROM steps WHERE n > 2 EXCEPT SELECT who FROM steps WHERE n > 4",
]


def readings() -> Readings:
    whole, parts = Database(), {"gw-1": Database(), "gw-2": Database()}
    for number in range(24):
        who = None if number % 11 == 7 else "abc"[number % 3]
        row = (who, None if number % 7 == 3 else number % 8, 0)
        for database in (whole, parts[f"gw-{1 + number % 2}"]):
            database.append("steps", [SourceEvent(row, NOW)])
    for number, name in enumerate("abd"):
        for database in (whole, parts[f"gw-{1 + number % 2}"]):
            database.append("rooms", [SourceEvent((name, number), NOW)])
    return Readings(whole, parts)


READINGS = readings()


class Sites:
    """A network whose answers are compared with the reference."""

    def __init__(
        self,
        statistics: Statistics = NOTHING_KNOWN,
        strategy: Strategy = Strategy.ALL,
        materialize: Materialize = Materialize.WANTED_TWICE,
    ) -> None:
        planning = Planning(TOPOLOGY, statistics)
        self.sharing = Sharing(ComputationIndex(), strategy, materialize)
        self.network = Network(planning, self.sharing)

    def add(self, text: str) -> FragmentBundle:
        change = self.network.register(bound_query(text, CATALOG))
        self.check()
        return change.deploy[-1] if change.deploy else self.network.result(change.query)

    def check(self) -> None:
        for query, rows in answers(self.network, READINGS, NOW).items():
            run = self.network.runs[self.network.reads[query]]
            assert rows == evaluate(run.bound.plan, READINGS.whole, NOW), run.bundle.text

    def sent(self) -> list[str]:
        """Return the runs for which gateways send something, once for each fragment."""
        return [
            name
            for name, run in self.network.runs.items()
            for fragment in run.bundle.own
            if fragment.engine == Engine.GATEWAY
        ]


@pytest.mark.parametrize("materialize", Materialize)
@pytest.mark.parametrize("text", OVER_ROWS)
def test_nothing_is_sent_for_what_can_be_computed_of_rows_that_are_there(
    text: str, materialize: Materialize
) -> None:
    sites = Sites(materialize=materialize)
    sites.add(ROWS)
    sites.add(text)
    assert sites.sent() == ["q1"]


def test_all_of_them_together_read_one_fragment_and_go_on_when_its_query_ends() -> None:
    sites = Sites()
    for text in (ROWS, *OVER_ROWS):
        sites.add(text)
    assert sites.sent() == ["q1"]
    sites.network.deregister("q1")
    sites.check()
    assert sites.sent()


def test_one_side_of_a_join_that_is_there_is_not_sent_again() -> None:
    sites = Sites()
    sites.add("SELECT rid, floor FROM rooms")
    sites.add("SELECT s.who, r.floor, COUNT(*) AS c FROM steps s JOIN rooms r ON r.rid = s.who "
              "GROUP BY s.who, r.floor")  # fmt: skip
    (own,) = (f for f in sites.network.runs["q2"].bundle.own if f.engine == Engine.GATEWAY)
    assert "rooms" not in repr(own.plan)


def test_other_rows_are_sent() -> None:
    """Rows that lack some of those wanted, or that nobody may read, are not read."""
    for first in ("SELECT who FROM steps", "SELECT who, n FROM steps WHERE n > 2"):
        sites = Sites()
        sites.add(first)
        sites.add("SELECT who, SUM(n) AS s FROM steps WHERE n > 1 GROUP BY who")
        assert sites.sent() == ["q1", "q2"]
    sites = Sites()
    sites.add(ROWS)
    sites.network.sharing = replace(sites.sharing, allowed=lambda _offer: False)
    sites.add(OVER_ROWS[0])
    assert sites.sent() == ["q1", "q2"]


def test_prices_decide_whether_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price of reading is that of the work of the base, and of nothing that is sent."""
    seen: list[tuple[Cost, Cost]] = []

    def decides(_weighing: object, _speeds: object, reading: Cost, sending: Cost) -> bool:
        seen.append((reading, sending))
        return False

    monkeypatch.setattr(rows_there, "reads_for_less", decides)
    columns = {("steps", "who"): ColumnFacts(3.0, 3.0), ("steps", "n"): ColumnFacts(1e6, 1e6)}
    sites = Sites(Statistics(sources={"steps": SourceFacts(50_000.0, 20_000.0)}, columns=columns))
    sites.add(ROWS)
    sites.add(
        "SELECT who, COUNT(*) AS c FROM steps WHERE n = 7 OR (n = 9 AND who = 'a') GROUP BY who"
    )
    assert sites.sent() == ["q1", "q2"]
    ((reading, sending),) = seen
    assert (reading.bytes, reading.messages) == (0.0, 0.0)
    assert reading.cpu > 0.0
    assert sending.bytes > 0.0


@pytest.mark.parametrize("strategy", [Strategy.OFF, Strategy.MATCH_PLAN])
def test_strategies_that_compare_no_prices_send(strategy: Strategy) -> None:
    sites = Sites(strategy=strategy)
    sites.add(ROWS)
    sites.add(OVER_ROWS[0])
    assert sites.sent() == ["q1", "q2"]
