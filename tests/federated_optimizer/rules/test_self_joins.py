"""A source that is joined with itself along its key is read once, and only then."""

from random import Random

import pytest

from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from streamsql.algebra.operators import Join, Plan, Scan, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE TABLE r (a INTEGER, b INTEGER)",
    "CREATE SOURCE p (k INTEGER, v INTEGER, w INTEGER, KEY (k))",
    "CREATE SOURCE q (i INTEGER, j INTEGER, w INTEGER, KEY (i, j))",
)
ONCE = [
    "SELECT x.k, y.v FROM p x JOIN p y ON x.k = y.k",
    "SELECT x.v, y.w FROM p x JOIN p y ON x.k = y.k AND x.v < y.w WHERE x.v >= 0 AND y.w < 3",
    "SELECT x.v, y.w FROM p x JOIN p y ON x.k = y.k AND x.v = y.w",
    "SELECT x.v, y.w FROM p x JOIN p y ON x.k = y.k AND x.v = y.v",
    "SELECT x.w, y.w FROM q x JOIN q y ON x.i = y.i AND x.j = y.j",
    "SELECT v FROM p x WHERE EXISTS (SELECT 1 FROM p y WHERE x.k = y.k AND y.w = 1)",
    "SELECT v FROM p WHERE k IN (SELECT k FROM p WHERE w = 1)",
]
TWICE = [
    "SELECT x.k, y.v FROM p x JOIN p y ON x.v = y.v",
    "SELECT x.k, y.v FROM p x JOIN p y ON x.k = y.v",
    "SELECT x.w, y.w FROM q x JOIN q y ON x.i = y.i",
    "SELECT x.w, y.w FROM q x JOIN q y ON x.i = y.j AND x.j = y.i",
    "SELECT x.k, y.v FROM p x LEFT JOIN p y ON x.k = y.k AND y.v > 0",
    "SELECT v FROM p x WHERE NOT EXISTS (SELECT 1 FROM p y WHERE x.k = y.k AND y.w = 1)",
    "SELECT x.a, y.b FROM r x JOIN r y ON x.a = y.a",
    "SELECT x.k, y.v FROM p [ROWS 3] x JOIN p [ROWS 3] y ON x.k = y.k",
]


def rewritten(text: str) -> tuple[Plan, Plan]:
    bound = bound_query(text, CATALOG).plan
    return bound, run_rules(run_rules(bound, LOGICAL_RULES), WIDTH_RULES)


@pytest.mark.parametrize("text", ONCE)
def test_a_join_along_the_key_reads_once(text: str) -> None:
    bound, plan = rewritten(text)
    assert not any(isinstance(node, Join) for node in walk_plan(plan))
    assert sum(isinstance(node, Scan) for node in walk_plan(plan)) == 1
    database = Database()
    random = Random(1)
    for name in ("p", "q"):
        keys = [(k, random.choice((None, 0, 1, 2))) for k in (None, *range(30))]
        rows = [(*key, random.choice((None, 0, 1, 2))) for key in keys]
        database.append(name, [SourceEvent(row, 1) for row in rows])
    expected = evaluate(bound, database, 2)
    assert expected
    assert evaluate(plan, database, 2) == expected


@pytest.mark.parametrize("text", TWICE)
def test_other_joins_of_a_source_with_itself_stay(text: str) -> None:
    _, plan = rewritten(text)
    assert sum(isinstance(node, Scan) for node in walk_plan(plan)) == 2
