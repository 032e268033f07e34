"""A query bound with more columns keeps those that it had."""

import pytest

from streamsql.binder import with_columns
from streamsql.data.events import SourceEvent
from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database
from tests.streamsql.from_text import bound_query, catalog_of

BEFORE = catalog_of("CREATE SOURCE s (a TEXT, n INTEGER)")
AFTER = catalog_of("CREATE SOURCE s (x TEXT, n INTEGER, a TEXT)")
ROWS = (("x1", 1, "a"), ("x2", 1, "a"), ("x1", 2, "b"))


def database(*rows: tuple[str | int, ...]) -> Database:
    made = Database()
    made.append("s", [SourceEvent(row, 0) for row in rows])
    return made


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM s",
        "SELECT DISTINCT * FROM s",
        "SELECT n, a FROM s",
        "SELECT * FROM s WHERE n > 1",
        "SELECT * FROM (SELECT * FROM s) AS t",
        "SELECT * FROM s UNION SELECT * FROM s WHERE n = 2",
        "SELECT *, a FROM s",
    ],
)
def test_the_answer_is_the_same(text: str) -> None:
    before = bound_query(text, BEFORE)
    after = with_columns(bound_query(text, AFTER), before.schema)
    assert after is not None
    assert after.schema == before.schema == after.plan.schema
    old = evaluate(before.plan, database(*((a, n) for _, n, a in ROWS)), 0)
    assert evaluate(after.plan, database(*ROWS), 0) == old
    assert old


def test_the_order_follows_the_columns() -> None:
    text = "SELECT * FROM s ORDER BY n DESC, a"
    before = bound_query(text, BEFORE)
    after = with_columns(bound_query(text, AFTER), before.schema)
    assert after is not None
    assert after.order == before.order
    assert [key.position for key in after.order] == [1, 0]


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("SELECT * FROM s EXCEPT SELECT * FROM s WHERE n = 1", "x TEXT, n INTEGER, a TEXT"),
        ("SELECT * FROM s", "x TEXT, n INTEGER"),
        ("SELECT * FROM s", "a TEXT, n DOUBLE"),
        # What was a || 'x' would be the second x: nobody could tell which is meant.
        ("SELECT *, a || 'x' AS x FROM s", "x TEXT, n INTEGER, a TEXT"),
        ("SELECT a || 'x' AS x, * FROM s", "x TEXT, n INTEGER, a TEXT"),
    ],
)
def test_columns_that_cannot_be_had(text: str, then: str) -> None:
    wanted = bound_query(text, BEFORE).schema
    after = bound_query(text, catalog_of(f"CREATE SOURCE s ({then})"))
    assert with_columns(after, wanted) is None
