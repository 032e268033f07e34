"""Three small tables with NULLs, NaN and duplicates, and queries over them."""

from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE t (x INTEGER, y INTEGER, d DOUBLE, s TEXT) WITH (ttl = '1 h');
CREATE SOURCE u (x INTEGER, y INTEGER, d DOUBLE, s TEXT) WITH (ttl = '1 h');
CREATE TABLE v (k INTEGER PRIMARY KEY, y INTEGER);
"""
)
TOPOLOGY = Topology({"gw-1": frozenset({"t", "u"}), "gw-2": frozenset({"t", "u"})})
NAN = float("nan")
NOW = 1_000
ROWS: dict[str, list[tuple[object, ...]]] = {
    "t": [
        (1, 1, 0.0, "a"),
        (1, 2, -0.0, "b"),
        (1, 2, -0.0, "b"),
        (2, None, NAN, "a"),
        (3, 5, 1.5, None),
        (None, 4, None, "c"),
    ],
    "u": [(1, 3, 0.0, "a"), (2, 1, NAN, "b"), (2, 1, 2.5, None), (None, None, 1.5, "a")],
    "v": [(1, 1), (2, 7), (3, None)],
}
DATABASE = Database()
for _name, _rows in ROWS.items():
    DATABASE.append(_name, [SourceEvent(row, NOW) for row in _rows])  # type: ignore[arg-type]

TEXTS = (
    "SELECT x, s FROM t WHERE y > 1",
    "SELECT a.s, b.s FROM t a, u b WHERE a.x = b.x AND a.y < b.y",
    "SELECT a.s, b.x + 1 AS n FROM t a, t b WHERE a.x = b.x AND a.d = b.d AND b.y > 1",
    "SELECT a.x, c.y FROM t a, t b, u c WHERE a.x = b.x AND b.x = c.x AND a.y <= c.y + 1",
    "SELECT a.x, v.y FROM t a JOIN v ON v.k = a.x WHERE v.y = 1",
    "SELECT a.x, g.n FROM t a JOIN (SELECT x, COUNT(*) AS n FROM u GROUP BY x) g ON g.x = a.x",
    "SELECT a.x, b.x FROM t a, u b WHERE a.y < b.y OR b.s IS NULL",
    "SELECT DISTINCT a.x FROM t a LEFT JOIN u b ON a.x = b.x WHERE a.y > 0",
    "SELECT x FROM t UNION ALL SELECT x FROM u WHERE y > 0",
)


def normalized(text: str) -> Plan:
    """Return the normalized plan of a query."""
    return normalize(bound_query(text, CATALOG).plan, TOPOLOGY)


def bag(plan: Plan, remote: dict[str, list[tuple[object, ...]]] | None = None) -> Delta:
    """Return the rows of a plan."""
    return evaluate(plan, DATABASE, NOW, remote)  # type: ignore[arg-type]


def rows_of(plan: Plan) -> list[tuple[object, ...]]:
    """Return the rows of a plan, each as often as it is there."""
    return [row for row, count in bag(plan).items() for _ in range(count)]
