"""Joins that a rule has changed follow inserts, updates and deletes as DuckDB's answer does."""

from collections import Counter
from contextlib import closing
from random import Random

import duckdb
import pytest

from federated_optimizer import normalize
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from stream_engine.testing.circuit_runs import LocalRun
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE r (k INTEGER, a INTEGER, b INTEGER, KEY (k))",
    "CREATE SOURCE s (k INTEGER, x INTEGER, y INTEGER, KEY (k))",
    "CREATE SOURCE p (k INTEGER, v INTEGER, w INTEGER, KEY (k))",
)
SOURCES = {"r": ("k", "a", "b"), "s": ("k", "x", "y"), "p": ("k", "v", "w")}
TOPOLOGY = Topology({"gw-1": frozenset(SOURCES)})


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("outer_to_inner", "SELECT a, y FROM r LEFT JOIN s ON a = x WHERE y >= 1"),
        ("outer_to_inner", "SELECT a, y FROM r FULL JOIN s ON a = x WHERE y >= 1"),
        ("outer_to_inner", "SELECT a, y FROM r FULL JOIN s ON a = x AND b < y WHERE b <= 1"),
        ("outer_to_inner", "SELECT a, y, v FROM r LEFT JOIN s ON a = x JOIN p ON p.k = y"),
        (
            "outer_to_inner",
            "SELECT y, n FROM (SELECT y, COUNT(*) AS n FROM r LEFT JOIN s ON a = x GROUP BY y) q"
            " WHERE y < 2",
        ),
        ("unread_sides", "SELECT r.a FROM r LEFT JOIN p ON r.b = p.k"),
        ("unread_sides", "SELECT a, COUNT(*) AS n FROM r LEFT JOIN p ON b = p.k GROUP BY a"),
        ("unread_sides", "SELECT DISTINCT r.a FROM r LEFT JOIN s ON r.b = s.x"),
        ("unread_sides", "SELECT DISTINCT r.a FROM r JOIN s ON r.b = s.x"),
        ("unread_sides", "SELECT DISTINCT s.y FROM r JOIN s ON r.b = s.x AND r.a <= s.y"),
        ("unread_sides", "SELECT a, MAX(b) AS m FROM r JOIN s ON r.b = s.x GROUP BY a"),
        ("anti_joins", "SELECT a, y FROM r LEFT JOIN s ON a = x AND y > 0 WHERE x IS NULL"),
        ("anti_joins", "SELECT a FROM r LEFT JOIN s ON a = x AND b <= y WHERE y IS NULL"),
        ("self_joins", "SELECT o.v, n.w FROM p o JOIN p n ON o.k = n.k AND o.v <= n.w"),
        ("self_joins", "SELECT v FROM p WHERE k IN (SELECT k FROM p WHERE w >= 1)"),
        ("transitive_predicates", "SELECT a, y FROM r LEFT JOIN s ON a = x WHERE a >= 1"),
        (
            "transitive_predicates",
            "SELECT a FROM r WHERE a < 2 AND NOT EXISTS (SELECT 1 FROM s WHERE x = a AND y > 1)",
        ),
    ],
)
def test_changes_are_followed(rule: str, text: str) -> None:
    random = Random(text)
    bound = bound_query(text, CATALOG).plan
    everything = (*LOGICAL_RULES, *WIDTH_RULES)
    without = run_rules(bound, [each for each in everything if each.name != rule])
    (named,) = [each for each in everything if each.name == rule]
    assert named.apply(without) != without
    run = LocalRun(normalize(bound, TOPOLOGY))
    held: dict[str, dict[object, Row]] = {name: {} for name in SOURCES}
    shown = 0
    with closing(duckdb.connect(":memory:", config={"threads": 1})) as peer:
        for name, columns in SOURCES.items():
            peer.execute(f"CREATE TABLE {name} ({', '.join(f'{c} BIGINT' for c in columns)})")
        for now in range(1, 31):
            events = [changed(random, held, now) for _ in range(random.randint(1, 3))]
            output = run.step(now, events)
            for name in {name for name, _ in events}:
                rows = ", ".join(map(str, held[name].values())).replace("None", "NULL")
                peer.execute(f"DELETE FROM {name}; INSERT INTO {name} VALUES {rows or (-1, 0, 0)}")
                peer.execute(f"DELETE FROM {name} WHERE k < 0")
            expected = Counter(peer.execute(text).fetchall())
            assert Counter(output) == expected, now
            shown += bool(expected)
    assert shown > 3


def changed(
    random: Random, held: dict[str, dict[object, Row]], now: int
) -> tuple[str, SourceEvent]:
    """Return an insert, an update or a delete, after it has been done to what is held."""
    name = random.choice(list(SOURCES))
    rows = held[name]
    key = random.randrange(6)
    if key in rows and random.random() < 0.3:
        return name, SourceEvent(rows.pop(key), now, delete=True)
    rows[key] = (key, *random.choices((None, 0, 1, 1, 2), k=2))
    return name, SourceEvent(rows[key], now)
