"""Answers over nodes while rows come, are withdrawn and expire, as the engine maintains them.

A node runs in one circuit, and what reads it in another one, which gets its changes alone. Rows are
compared after every step with evaluating from scratch, with DuckDB, and for recursions with
networkx.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import duckdb
import networkx as nx
import pytest

from federated_optimizer.sharing.rule_table import RULES
from federated_optimizer.sharing.rules.more_functions import groups_to_share
from stream_engine.circuit.compiler import compile_plan
from stream_engine.state.source_relation import SourceRelation
from stream_engine.testing.circuit_runs import LocalRun, alone
from streamsql.algebra.operators import Plan, RemoteSource, walk_plan
from streamsql.data.delta import Delta, accumulate, difference, expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from streamsql.reference import evaluate
from tests import user_aggregates
from tests.federated_optimizer.sharing.readings_shop import normalized

MINUTE = 60 * MICROSECONDS
GROUPS = (
    "SELECT a, b, s, COUNT(*) AS n, COUNT(x) AS nx, SUM(x / 4294967296) AS h, MIN(d) AS lo, "
    "SUM(x % 4294967296) AS l, MAX(x) AS hi, BOOL_OR(f) AS f, AVG(d) AS m, VAR_POP(d) AS v FROM r "
    "GROUP BY a, b, s"
)
BY_USERS = (
    "SELECT a, b, s, peak(d) AS p, divisor(x) AS g, nearby(x, d) AS n, short(s) AS k FROM r "
    "GROUP BY a, b, s"
)
UNION = "SELECT a, b, x FROM r UNION ALL SELECT a, b, x FROM q"
LEFT = "SELECT r.a, r.b, q.a AS qa, q.b AS qb FROM r LEFT JOIN q ON q.a = r.a"
REACH = (
    "WITH RECURSIVE e (a, b) AS (SELECT a, b FROM r {} UNION "
    "SELECT e.a, r.b FROM e JOIN r ON e.b = r.a) SELECT a, b FROM e"
)
PAIRS = (
    ("SELECT a, COUNT(*) AS n, SUM(x) AS t, MIN(d) AS lo FROM r GROUP BY a", GROUPS),
    ("SELECT COUNT(*) AS n, COUNT(x) AS k, MAX(x) AS hi, SUM(x) AS t FROM r", GROUPS),
    ("SELECT s, AVG(x) AS m FROM r WHERE b > 1 GROUP BY s HAVING COUNT(*) > 1", GROUPS),
    ("SELECT b, s, AVG(d) AS m FROM r WHERE a = 1 GROUP BY b, s", GROUPS),
    ("SELECT a, COUNT(DISTINCT b) AS k, MAX(s) AS z FROM r GROUP BY a", GROUPS),
    ("SELECT DISTINCT b, s FROM r WHERE a < 3", GROUPS),
    ("SELECT AVG(d) AS m FROM r WHERE a = 1 AND b = 1 AND s = 'x'", GROUPS),
    ("SELECT a, AVG(d) AS m, VAR_SAMP(d) AS v, SUM(d) AS t FROM r GROUP BY a", f"node: {GROUPS}"),
    ("SELECT a, peak(d) AS p, divisor(x) AS g FROM r GROUP BY a", BY_USERS),
    ("SELECT peak(d) AS p, divisor(x) AS g, nearby(x, d) AS n, short(s) AS k FROM r", BY_USERS),
    ("SELECT s, nearby(x, d) AS n FROM r WHERE b > 1 GROUP BY s HAVING short(s)", BY_USERS),
    (f"{UNION} UNION ALL SELECT b, a, x FROM r", UNION),
    (f"{UNION} UNION SELECT b, a, x FROM r".replace("ALL ", ""), UNION),
    (f"SELECT b, a, x FROM r EXCEPT ({UNION})", UNION),
    (f"SELECT b, a, x FROM r EXCEPT ALL ({UNION})", UNION),
    (
        "SELECT a, b FROM r EXCEPT ALL SELECT b, a FROM q EXCEPT ALL SELECT b, b FROM r",
        "SELECT a, b FROM r EXCEPT ALL SELECT b, a FROM q",
    ),
    (
        "SELECT a, b FROM r INTERSECT ALL SELECT b, a FROM r INTERSECT ALL SELECT a, b FROM q",
        "SELECT b, a FROM r INTERSECT ALL SELECT a, b FROM r",
    ),
    ("SELECT r.a, q.b FROM r LEFT JOIN q ON q.a = r.a WHERE r.b > 1", LEFT),
    ("SELECT a, b FROM r WHERE b < 3 AND NOT EXISTS (SELECT 1 FROM q WHERE q.a = r.a)", LEFT),
    (REACH.format("WHERE a = 1"), REACH.format("")),
    (
        f"SELECT a, COUNT(*) AS n FROM ({REACH.format('WHERE a > 1')}) y GROUP BY a",
        f"SELECT b, a, COUNT(*) AS n FROM ({REACH.format('')}) z GROUP BY b, a",
    ),
)


def answer_of(wanted: Plan, offered: Plan) -> Plan:
    leaf = RemoteSource("node", offered.schema)
    answers = (rule.answer(wanted, offered, leaf) for rule in RULES)
    found = next((a for a in answers if a is not None), None)
    assert found is not None
    assert any(isinstance(node, RemoteSource) for node in walk_plan(found))
    return found


class Reader:
    """A circuit over a node and over sources."""

    def __init__(self, plan: Plan) -> None:
        self.circuit = compile_plan(plan, alone)
        self.output: Delta = {}
        self._relations = {scan: SourceRelation(scan) for scan in self.circuit.scans}

    def step(self, now: int, events: list[tuple[str, SourceEvent]], node: Delta) -> None:
        changes = {
            scan: relation.apply([e for name, e in events if name == scan.source], now)
            for scan, relation in self._relations.items()
        }
        accumulate(self.output, self.circuit.step(changes, {"node": node}, now))

    @property
    def work(self) -> int:
        return sum(entry.rows_in for entry in self.circuit.statistics())


class Shared:
    """A node and its reader, and the same query alone.

    Attributes:
        changed: Rows that the last step has changed in the node.
    """

    def __init__(self, wanted: str, offered: str) -> None:
        self.wanted, offer = normalized(wanted), normalized(offered.removeprefix("node: "))
        if offered.startswith("node: "):
            offer = groups_to_share(offer) or offer
        self.answer = answer_of(self.wanted, offer)
        self.node, self.alone = LocalRun(offer), LocalRun(self.wanted)
        self.reader = Reader(self.answer)
        self.changed: Delta = {}
        self._before: Delta = {}

    def step(self, now: int, events: list[tuple[str, SourceEvent]]) -> None:
        after = dict(self.node.step(now, events))
        self.changed = difference(after, self._before)
        self._before = after
        self.alone.step(now, events)
        self.reader.step(now, events, self.changed)


def events_of(
    random: Random, there: list[tuple[str, Row]], now: int
) -> Iterator[tuple[str, SourceEvent]]:
    """Yield new rows and withdrawals."""
    for _ in range(random.randint(0, 4)):
        if there and random.random() < 0.35:
            source, row = there.pop(random.randrange(len(there)))
            yield source, SourceEvent(row, now, delete=True)
            continue
        source = random.choice(("r", "r", "q"))
        small = random.choice((None, 1, 2, 3)), random.choice((None, 1, 2, 3))
        x = random.choice((None, -4, 0, 1, 7, 2**33))
        d = random.choice((None, -0.0, 0.0, 0.5, 1.25))
        row = (*small, random.choice(("x", "y", None)), x, d, random.choice((True, False)), now)
        there.append((source, row))
        yield source, SourceEvent(row, now)


def duckdb_rows(
    connection: duckdb.DuckDBPyConnection, run: LocalRun, text: str, now: int
) -> Counter[Row]:
    for name in ("r", "q"):
        connection.execute(f"TRUNCATE {name}")
        plan = normalized(f"SELECT a, b, s, x, d, f FROM {name}")
        rows = list(expand(evaluate(plan, run.database, now)))
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)", rows)
    return Counter(plain(row) for row in connection.execute(text).fetchall())


def plain(row: tuple[Any, ...]) -> Row:
    """Return a row without the last digits of numbers, which DuckDB does not have right."""
    return tuple(
        v if v is None or isinstance(v, str | bool) else round(float(v), 9) + 0.0 for v in row
    )


@pytest.fixture
def aggregates() -> Iterator[None]:
    with user_aggregates.installed():
        yield


@pytest.mark.parametrize("number", range(len(PAIRS)))
@pytest.mark.usefixtures("aggregates")
def test_readers_of_nodes_follow_every_change(number: int) -> None:
    wanted, offered = PAIRS[number]
    random = Random(number)
    shared = Shared(wanted, offered)
    there: list[tuple[str, Row]] = []
    now = 0
    with closing(duckdb.connect(":memory:", config={"threads": 1})) as connection:
        for name in ("r", "q"):
            connection.execute(
                f"CREATE TABLE {name} (a BIGINT, b BIGINT, s TEXT, x BIGINT, d DOUBLE, f BOOLEAN)"
            )
        for macro in user_aggregates.IN_DUCKDB:
            connection.execute(f"CREATE MACRO {macro}")
        for _ in range(40):
            now += random.choice((1, MINUTE, 20 * MINUTE))  # rows go after an hour
            shared.step(now, list(events_of(random, there, now)))
            expected = shared.alone.expected(now)
            assert shared.reader.output == expected == shared.alone.output
            theirs = duckdb_rows(connection, shared.alone, wanted, now)
            assert Counter(plain(row) for row in expand(expected)) == theirs


def test_bounded_recursions_are_paths_of_networkx() -> None:
    random = Random(3)
    shared = Shared(REACH.format("WHERE a = 1"), REACH.format(""))
    there: list[tuple[str, Row]] = []
    for step in range(60):
        now = step * 7 * MINUTE
        shared.step(now, list(events_of(random, there, now)))
        links = normalized("SELECT a, b FROM r")
        pairs = [row for row in evaluate(links, shared.alone.database, now) if row[0] is not None]
        graph = nx.DiGraph([(a, b) for a, b in pairs if b is not None])
        reached = set(nx.descendants(graph, 1)) if 1 in graph else set()
        if any(a == 1 == b for a, b in nx.transitive_closure(graph).edges):
            reached.add(1)
        ends = {b for a, b in pairs if a == 1 or a in reached}
        assert {row[1] for row in shared.reader.output} == ends


@pytest.mark.parametrize("wanted", [PAIRS[0][0], PAIRS[2][0], PAIRS[5][0]])
def test_work_is_that_of_the_groups_that_change(wanted: str) -> None:
    """Above an aggregate only rows of groups that change are read, however many there are."""
    work: list[int] = []
    operators = 0
    for groups in (50, 800):
        shared = Shared(wanted, GROUPS)
        rows: list[Row] = [(n, 2, "x", n, 0.5, True, 0) for n in range(groups)]
        shared.step(0, [("r", SourceEvent(row, 0)) for row in rows])
        before = shared.reader.work
        for n in range(10):
            event = SourceEvent(rows[n], 0, delete=n % 2 == 0)
            shared.step(n + 1, [("r", event)])
            assert len(shared.changed) <= 2
            assert shared.reader.output == shared.alone.output
        work.append(shared.reader.work - before)
        operators = len(list(walk_plan(shared.answer)))
    assert work[0] == work[1] <= 10 * 2 * operators
