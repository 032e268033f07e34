"""Aggregates and set operators are found in the index, and read with the rows of their own."""

import pytest

from federated_optimizer.planning import plan
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.run_offers import offers_of
from federated_optimizer.sharing.sharing_step import share
from streamsql.data.delta import expand
from tests.federated_optimizer.sharing.readings_shop import (
    CATALOG,
    DATABASE,
    TOPOLOGY,
    bag,
    normalized,
)
from tests.streamsql.from_text import bound_query

GROUPS = (
    "SELECT a, b, COUNT(*) AS n, COUNT(x) AS nx, SUM(x / 4294967296) AS h, "
    "SUM(x % 4294967296) AS l FROM r GROUP BY a, b"
)
UNION = "SELECT a, b, s FROM r UNION ALL SELECT a, b, s FROM q"
LEFT = "SELECT r.a, r.b, q.b AS qb, q.a AS qa FROM r LEFT JOIN q ON q.a = r.a"
REACH = (
    "WITH RECURSIVE e (a, b) AS (SELECT a, b FROM r {} UNION "
    "SELECT e.a, r.b FROM e JOIN r ON e.b = r.a) SELECT a, b FROM e"
)
FOUND = (
    ("SELECT r.a, q.b FROM r LEFT JOIN q ON r.a = q.a WHERE r.b > 1", LEFT),
    (REACH.format("WHERE a = 1"), REACH.format("")),
    (
        f"SELECT a, COUNT(*) AS n FROM ({REACH.format('')}) x WHERE a > 1 GROUP BY a",
        REACH.format(""),
    ),
    ("SELECT a, COUNT(*) AS n FROM r GROUP BY a", GROUPS),
    ("SELECT a, AVG(x) AS m FROM r WHERE b > 1 GROUP BY a HAVING COUNT(*) > 1", GROUPS),
    ("SELECT DISTINCT b FROM r", GROUPS),
    ("SELECT a, b, COUNT(*) AS n FROM r GROUP BY ROLLUP (a, b)", GROUPS),
    ("SELECT a, n FROM (SELECT a, COUNT(*) AS n FROM r GROUP BY a) g WHERE n > 1", GROUPS),
    (f"{UNION} UNION ALL SELECT b, a, s FROM r", UNION),
    (f"{UNION} UNION SELECT b, a, s FROM r".replace("ALL ", ""), UNION),
    (f"SELECT b, a, s FROM r EXCEPT ({UNION})", UNION),
    (
        "SELECT s, COUNT(*) AS n FROM (SELECT a, b, s FROM q UNION ALL SELECT a, b, s FROM r "
        "UNION ALL SELECT b, a, s FROM r) u GROUP BY s",
        UNION,
    ),
)


def index_of(text: str) -> ComputationIndex:
    index = ComputationIndex()
    bundle = plan(bound_query(text, CATALOG), TOPOLOGY, query="q1")
    for offer in offers_of(bundle, normalized(text)):
        index.add(offer)
    return index


@pytest.mark.parametrize(("wanted", "offered"), FOUND)
def test_operators_over_nodes_have_their_own_rows(wanted: str, offered: str) -> None:
    ours = normalized(wanted)
    index = index_of(offered)
    found = share(ours, index, allowed=lambda offer: offer.is_readable)
    assert found.used
    remote = {f.offer.name: list(expand(bag(f.offer.plan, DATABASE))) for f in found.used}
    assert found.plan.schema == ours.schema
    assert bag(found.plan, DATABASE, remote) == bag(ours, DATABASE)
    index.remove("q1")
    assert not share(ours, index).used
