"""The rounds of a recursion end with what the language means by it; frames are lists here."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from static_engine.lowering import spark_recursion
from streamsql.algebra.operators import (
    AggregateSelection,
    Fixpoint,
    Plan,
    RecursiveReference,
    RemoteSource,
    transform_up,
    walk_plan,
)
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from streamsql.reference.evaluate import best_rows
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE TABLE e (a TEXT, b TEXT, c INTEGER)")
STEP = "FROM r JOIN e ON e.a = r.b"
RECURSIONS = {
    "closure": f"r (a, b) AS (SELECT a, b FROM e UNION SELECT r.a, e.b {STEP}) SELECT * FROM r",
    "doubling": "r (a, b) AS (SELECT a, b FROM e UNION "
    "SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a) SELECT * FROM r",
    "cheapest": f"r (a, b, c) AS (SELECT a, b, c FROM e UNION SELECT r.a, e.b, r.c + e.c {STEP}) "
    "SELECT a, b, MIN(c) AS c FROM r GROUP BY a, b",
    "copies": "r (a, b, n) AS (SELECT a, b, 1 FROM e UNION ALL "
    f"SELECT r.a, e.b, r.n + 1 {STEP} WHERE r.n < 4) SELECT * FROM r",
    "mutual": "p (x, y) AS (SELECT q.x, e.b FROM q JOIN e ON e.a = q.y), q (x, y) AS (SELECT a, b "
    "FROM e UNION SELECT p.x, e.b FROM p JOIN e ON e.a = p.y) SELECT * FROM p",
}


class Frame:
    """Rows with as much of a DataFrame as rounds need."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)

    def distinct(self) -> "Frame":
        return Frame(dict.fromkeys(self.rows))

    def unionAll(self, other: "Frame") -> "Frame":  # noqa: N802
        return Frame(self.rows + other.rows)

    def subtract(self, other: "Frame") -> "Frame":
        return Frame(row for row in dict.fromkeys(self.rows) if row not in other.rows)

    def localCheckpoint(self, *, eager: bool) -> "Frame":  # noqa: N802
        assert eager
        return self

    def limit(self, count: int) -> "Frame":
        return Frame(self.rows[: max(count, 0)])

    def count(self) -> int:
        return len(self.rows)


def best(frame: Frame, selection: AggregateSelection, _plan: Fixpoint) -> Frame:
    return Frame(best_rows(selection, set(frame.rows)))


links = st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), st.integers(1, 9))


@pytest.mark.parametrize("text", RECURSIONS.values(), ids=RECURSIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(links, max_size=10), pieces=st.sampled_from((1, 2, 16)))
def test_rounds_find_what_the_language_means(
    text: str, monkeypatch: pytest.MonkeyPatch, rows: list[Row], pieces: int
) -> None:
    database = Database()
    database.append("e", [SourceEvent(row, 0) for row in rows])
    plan = bound_query(f"WITH RECURSIVE {text}", CATALOG).plan
    fixpoint = next(node for node in walk_plan(plan) if isinstance(node, Fixpoint))

    def named(node: Plan) -> Plan:
        if isinstance(node, RecursiveReference):
            return RemoteSource(node.name, node.columns)
        return node

    def lower(part: Plan, scope: Mapping[str, Any]) -> Any:
        remote = {name: frame.rows for name, frame in scope.items()}
        return Frame(expand(evaluate(transform_up(part, named), database, 0, remote)))

    for name, value in (
        ("DataFrame", Frame), ("FEW_ROWS", -1), ("_PIECES", pieces), ("best_rows", best),
    ):  # fmt: skip
        monkeypatch.setattr(spark_recursion, name, value)
    found: Any = spark_recursion.SparkRecursion(fixpoint, lower, lambda frame: frame).rows()
    assert Counter(found.rows) == Counter(expand(evaluate(fixpoint, database, 0)))
