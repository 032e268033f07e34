"""Aggregates before joins: DuckDB has the same rows, and the plan is taken where less travels."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from federated_optimizer import normalize
from federated_optimizer import plan as place_plan
from federated_optimizer.alternatives.method import Method
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.testing_bundles import NOW, Readings, evaluate_bundle
from streamsql.algebra.operators import Aggregate, walk_plan
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.reference import Database
from streamsql.wire.fragments import Engine
from tests import user_aggregates
from tests.streamsql.from_text import bound_query, catalog_of

COLUMNS = {
    "seen": "device TEXT, rid TEXT, level INTEGER, n INTEGER",
    "seat": "mid TEXT, rid TEXT, weight INTEGER",
    "room": "rid TEXT, kind TEXT, floor INTEGER",
}
CATALOG = catalog_of(
    f"CREATE SOURCE seen ({COLUMNS['seen']}); CREATE SOURCE seat ({COLUMNS['seat']});"
    f"CREATE TABLE room ({COLUMNS['room']});",
    user_aggregates.DEFINITIONS,
)
SITES = Topology(dict.fromkeys(("gw-1", "gw-2"), frozenset({"seen", "seat"})))
SPREAD = Topology(SITES.gateways, bases=("b1", "b2"))
CALLS = (
    "COUNT(*) AS a, COUNT(s.level) AS b, SUM(s.n) AS c, MIN(s.n) AS d, MAX(s.level) AS e, "
    "AVG(s.n) AS f, SUM(s.n + s.level) AS g"
)
BY_USERS = "peak(s.n) AS a, divisor(s.n) AS b, nearby(s.n, s.level) AS c, short(s.device) AS d"
JOINED = "FROM seen s JOIN room r ON r.rid = s.rid"
QUERIES = [
    f"SELECT r.kind, {CALLS} {JOINED} GROUP BY r.kind",
    f"SELECT s.level, r.kind, {CALLS} {JOINED} GROUP BY s.level, r.kind",
    f"SELECT s.rid, {CALLS} {JOINED} GROUP BY s.rid",
    f"SELECT {CALLS} {JOINED}",
    f"SELECT r.kind, {CALLS} {JOINED} WHERE s.n > 1 AND r.floor < 2 GROUP BY r.kind",
    f"SELECT t.mid, {CALLS} FROM seen s JOIN seat t ON t.rid = s.rid GROUP BY t.mid",
    f"SELECT t.mid, {CALLS} FROM seat t JOIN seen s ON t.rid = s.rid AND t.weight = s.level "
    "GROUP BY t.mid",
    "SELECT COUNT(*) AS a FROM seen s JOIN seat t ON t.rid = s.rid",
    f"SELECT r.floor, {CALLS} FROM seat t JOIN room r ON r.rid = t.rid JOIN seen s "
    "ON s.rid = r.rid GROUP BY r.floor",
    f"SELECT r.kind, {BY_USERS} {JOINED} GROUP BY r.kind",
    f"SELECT {BY_USERS} {JOINED}",
]


@pytest.fixture(autouse=True)
def _aggregates() -> Iterator[None]:
    with user_aggregates.installed():
        yield


def world(seed: int) -> tuple[Readings, duckdb.DuckDBPyConnection]:
    chance = random.Random(seed)
    whole, at = Database(), {site: Database() for site in ("gw-1", "gw-2", "static")}
    oracle = duckdb.connect()
    for macro in user_aggregates.IN_DUCKDB:
        oracle.execute(f"CREATE MACRO {macro}")
    for source, columns in COLUMNS.items():
        oracle.execute(f"CREATE TABLE {source} ({columns})")
        for _ in range(chance.choice([0, 12, 30])):
            name, rid = chance.choice("ab"), chance.choice(["x", "y", "z", None])
            numbers = [chance.choice([None, 0, 1, 2, 3]) for _ in range(2)]
            row = {
                "seen": (name, rid, *numbers),
                "seat": (name, rid, numbers[0]),
                "room": (rid, name, numbers[0]),
            }[source]
            marks = ", ".join("?" * len(row))
            oracle.execute(f"INSERT INTO {source} VALUES ({marks})", row)
            site = "static" if source == "room" else chance.choice(["gw-1", "gw-2"])
            for database in (whole, at[site]):
                database.append(source, [SourceEvent(row, NOW, delete=False)])
    return Readings(whole, at), oracle


@pytest.mark.parametrize("topology", [SITES, SPREAD], ids=["one base", "two bases"])
@pytest.mark.parametrize("text", QUERIES)
def test_parts_before_the_join_give_the_rows_of_duckdb(topology: Topology, text: str) -> None:
    search = Search(normalize(bound_query(text, CATALOG).plan, topology), topology, Statistics())
    numbers = [
        number
        for number in range(1, search.memo.count() + 1)
        if any(a.method == Method.EARLY for a in search.memo.selection(number).values())
    ]
    assert numbers
    worlds = [world(seed) for seed in range(6)]
    for number in numbers[:: max(len(numbers) // 6, 1)]:
        choice = search.plan(number)
        bundle = place(choice.plan, topology, query="q", taken=choice.taken)
        for readings, oracle in worlds:
            found = Counter(expand(evaluate_bundle(bundle, readings, NOW)))
            assert found == Counter(oracle.execute(text).fetchall()), number


def facts(seen: float, changes: float) -> Statistics:
    """A stream, and a table of which every key is one row."""
    return Statistics(sources={"seen": SourceFacts(seen, changes), "room": SourceFacts(10.0)})


def test_a_count_by_room_travels_and_not_each_reading() -> None:
    text = "SELECT r.kind, MAX(s.n) AS m FROM seen s JOIN room r ON r.rid = s.rid GROUP BY r.kind"
    # Of an alarm: else the ten rows of the table go to the gateways, which sends less.
    bound = replace(bound_query(text, CATALOG), whole_changes=True)
    bundle = place_plan(bound, SITES, query="q", statistics=facts(5_000.0, 50.0))
    (sent,) = [f for f in bundle.fragments if f.engine == Engine.GATEWAY]
    assert any(isinstance(node, Aggregate) for node in walk_plan(sent.plan))
    found = alternatives(bound, SITES, facts(5_000.0, 50.0))
    taken = next(each for each in found.listed if each.number == found.chosen)
    assert "parts of seen by key before the join" in taken.words
    (shipped,) = [each for each in found.listed if each.words.startswith("ship everything")]
    assert shipped.cost.bytes > 5 * taken.cost.bytes
    again = place_plan(
        replace(bound, asked=found.chosen), SITES, query="q", statistics=facts(5_000.0, 50.0)
    )
    assert again.fragments == bundle.fragments


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT r.kind, COUNT(DISTINCT s.n) AS c " + JOINED + " GROUP BY r.kind", "DISTINCT"),
        ("SELECT r.kind, SUM(s.n * r.floor) AS c " + JOINED + " GROUP BY r.kind", "both sides"),
        (
            "SELECT r.floor / 2 AS h, COUNT(*) AS c " + JOINED + " GROUP BY r.floor / 2",
            "is computed",
        ),
        (
            "SELECT s.level, COUNT(r.kind) AS c FROM seen s LEFT JOIN room r ON r.rid = s.rid "
            "GROUP BY s.level",
            "only of joins by equal columns",
        ),
        (
            f"SELECT r.kind, COUNT(*) AS c {JOINED} AND s.n > r.floor GROUP BY r.kind",
            "only of joins by equal columns",
        ),
    ],
)
def test_what_has_no_parts_before_the_join_is_refused_in_words(text: str, told: str) -> None:
    found = alternatives(bound_query(text, CATALOG), SITES)
    assert any("before the join" in reason and told in reason for reason in found.refused)
    assert not any("before the join" in each.words for each in found.listed)
