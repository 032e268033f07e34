"""Readings with NULLs, duplicates, zeros of both signs and sums beyond 64 bits, and queries."""

from collections.abc import Callable
from datetime import UTC, datetime

from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from streamsql.algebra.operators import Plan, RemoteSource
from streamsql.data.delta import Delta, expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests import user_aggregates
from tests.streamsql.from_text import bound_query, catalog_of

SOURCES = """
CREATE SOURCE r (a INTEGER, b INTEGER, s TEXT, x INTEGER, d DOUBLE, f BOOLEAN, at TIMESTAMP)
    WITH (ttl = '1 h');
CREATE SOURCE q (a INTEGER, b INTEGER, s TEXT, x INTEGER, d DOUBLE, f BOOLEAN, at TIMESTAMP)
    WITH (ttl = '1 h');
"""
CATALOG = catalog_of(SOURCES, user_aggregates.DEFINITIONS)
TOPOLOGY = Topology({"gw-1": frozenset({"r", "q"}), "gw-2": frozenset({"r", "q"})})
NOW = 1_000
LARGE = 2**62
_MINUTE = 60_000_000
_DAY = 24 * 60 * _MINUTE


def _at(day: int, minute: int) -> int:
    return int(datetime(2026, 2, day, tzinfo=UTC).timestamp()) * 1_000_000 + minute * _MINUTE


ROWS: dict[str, list[Row]] = {
    "r": [
        (1, 1, "abc", 3, 0.5, True, _at(1, 3)),
        (1, 1, "abc", 3, 0.5, True, _at(1, 3)),
        (1, 2, "abd", -4, 0.25, None, _at(1, 9)),
        (1, None, "x", None, -0.0, False, _at(1, 61)),
        (2, 1, "abd", LARGE, 0.0, False, _at(1, 61)),
        (2, 1, None, LARGE, 0.1, True, _at(2, 0)),
        (2, 2, "x", -LARGE, 0.2, True, _at(2, 59)),
        (2, 2, "x", 7, 1e300, None, _at(28, 700)),
        (None, 3, "abc", 0, -1e300, None, None),
        (3, 3, "", -5, -0.0, False, _at(2, 0)),
        (3, None, "", 9, 0.0, False, _at(1, 3)),
    ],
    "q": [
        (1, 2, "abd", 1, 0.5, True, _at(1, 3)),
        (2, 2, "x", 5, 0.0, None, _at(2, 59)),
        (4, 4, "abc", None, None, False, None),
    ],
}
DATABASE = Database()
for _name, _rows in ROWS.items():
    DATABASE.append(_name, [SourceEvent(row, NOW) for row in _rows])

NOTHING = Database()
ONE = Database()
ONE.append("r", [SourceEvent(ROWS["r"][2], NOW)])
Rule = Callable[[Plan, Plan, Plan], Plan | None]


def normalized(text: str) -> Plan:
    """Return the normalized plan of a query."""
    return normalize(bound_query(text, CATALOG).plan, TOPOLOGY)


def bag(plan: Plan, database: Database, remote: dict[str, list[Row]] | None = None) -> Delta:
    """Return the rows of a plan."""
    return evaluate(plan, database, NOW, remote)


def checked(rule: Rule, ours: Plan, plan: Plan, reason: str = "") -> Plan | None:
    """Return what a rule answers, after its rows are found to be those of the wanted plan."""
    leaf = RemoteSource("@q1/f0", plan.schema)
    found = rule(ours, plan, leaf)
    if found is not None:
        assert found.schema == ours.schema, reason
        for database in (DATABASE, ONE, NOTHING):
            rows = list(expand(bag(plan, database)))
            assert bag(found, database, {"@q1/f0": rows}) == bag(ours, database), reason
    return found


def answered(rule: Rule, wanted: str, offered: str) -> Plan | None:
    """Return what a rule answers of two queries, as `checked` does."""
    return checked(rule, normalized(wanted), normalized(offered), f"{wanted} over {offered}")
