"""Outer, semi and anti joins over nodes of more preserved rows: exactly their own rows."""

from itertools import product

import pytest

from federated_optimizer.sharing.rules import preserved_sides, same
from streamsql.algebra.operators import Plan
from tests.federated_optimizer.sharing.readings_shop import answered, checked, normalized

LEFT = "SELECT r.a, r.b, r.s, r.x, q.b AS qb, q.a AS qa, q.s AS qs FROM r LEFT JOIN q ON q.a = r.a"
FULL = LEFT.replace("LEFT", "FULL")
IN = "SELECT a, b, s, x FROM r WHERE a IN (SELECT a FROM q WHERE b > 1)"
EXISTS = "SELECT a, b, s FROM r WHERE {} EXISTS (SELECT 1 FROM q WHERE q.a = r.a AND q.x < r.x)"
ANSWERED = (
    ("SELECT r.a, q.b FROM r LEFT JOIN q ON q.a = r.a WHERE r.b > 1", LEFT),
    (
        "SELECT r.a, r.b + q.b AS n FROM r LEFT JOIN q ON r.a = q.a WHERE r.b > 1 AND q.b IS NULL",
        LEFT,
    ),
    (
        "SELECT q.b FROM r RIGHT JOIN q ON q.a = r.a WHERE q.b > 1",
        "SELECT q.b, q.a, r.s FROM q LEFT JOIN r ON r.a = q.a",
    ),
    (
        "SELECT r.a, q.b FROM r LEFT JOIN q ON q.a = r.a AND q.b > 1 WHERE r.b = 2",
        "SELECT r.a, q.b, r.b AS rb FROM r LEFT JOIN (SELECT * FROM q WHERE b > 1) q ON q.a = r.a",
    ),
    ("SELECT r.a, q.b FROM r FULL JOIN q ON q.a = r.a WHERE COALESCE(r.x, q.b) > 1", FULL),
    ("SELECT a FROM r WHERE b > 1 AND a IN (SELECT a FROM q WHERE b > 1)", IN),
    (EXISTS.format("") + " AND b = 1", EXISTS.format("")),
    (EXISTS.format("NOT") + " AND b = 1", EXISTS.format("NOT")),
    ("SELECT a, s FROM r WHERE b > 1 AND NOT EXISTS (SELECT 1 FROM q WHERE q.a = r.a)", LEFT),
)
REFUSED = (
    (
        "SELECT r.a, q.b FROM r LEFT JOIN (SELECT * FROM q WHERE b > 1) q ON q.a = r.a",
        LEFT,
        "fewer partners",
    ),
    ("SELECT r.a, q.b FROM r LEFT JOIN q ON q.a = r.a AND r.b > 1", LEFT, "fewer partners"),
    ("SELECT r.a, q.b FROM r LEFT JOIN q ON q.a = r.b", LEFT, "another join"),
    (
        "SELECT r.a, q.b FROM r LEFT JOIN q ON q.a = r.a",
        LEFT + " WHERE r.b > 1",
        "rows are missing",
    ),
    (
        "SELECT r.a, q.b FROM (SELECT * FROM r WHERE b > 1) r FULL JOIN q ON q.a = r.a",
        FULL,
        "more are lonely",
    ),
    (
        "SELECT r.a, COALESCE(q.b, 7) AS n FROM r LEFT JOIN q ON q.a = r.a",
        "SELECT r.a, r.b FROM r LEFT JOIN q ON q.a = r.a",
        "a column is not shown",
    ),
    (
        "SELECT r.a, q.n FROM r LEFT JOIN (SELECT a, COALESCE(b, 7) AS n FROM q) q ON q.a = r.a",
        LEFT,
        "padding is no NULL that is replaced",
    ),
    ("SELECT a FROM r WHERE a IN (SELECT a FROM q WHERE b > 2)", IN, "fewer partners"),
    (EXISTS.format("NOT"), EXISTS.format(""), "the others"),
    (
        "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.a = r.a)",
        "SELECT r.a, q.b FROM r LEFT JOIN q ON q.a = r.a",
        "no key of a partner is shown",
    ),
    (
        "SELECT a, s FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.a = r.a)",
        LEFT,
        "as often as there are partners",
    ),
    ("SELECT r.a, q.b FROM r, q WHERE q.a = r.a", LEFT, "an inner join"),
)


@pytest.mark.parametrize(("wanted", "offered"), ANSWERED)
def test_joins_come_from_those_of_more_preserved_rows(wanted: str, offered: str) -> None:
    assert answered(preserved_sides.answer, wanted, offered) is not None


@pytest.mark.parametrize(("wanted", "offered", "why"), REFUSED)
def test_others_are_refused(wanted: str, offered: str, why: str) -> None:
    assert answered(preserved_sides.answer, wanted, offered) is None, why


JOINS = ("LEFT", "RIGHT", "FULL")
ON = (
    "r.a = q.a",
    "q.a = r.a AND r.b > 1",
    "r.a = q.a AND q.b > 1",
    "r.a = q.a AND r.b < q.b",
    "r.s = q.s",
)
WHERE = ("TRUE", "r.b > 1", "q.b > 1", "r.a = 2", "q.b IS NULL", "r.b = q.b OR r.x > 0")
SHOWN = ("r.a, r.b, q.a AS qa, q.b AS qb, r.s, r.x", "r.a, q.b AS qb", "q.a AS qa, r.b")


def test_no_answer_among_all_pairs_is_wrong() -> None:
    tables = (
        ("r", "q"),
        ("(SELECT * FROM r WHERE b > 1) r", "q"),
        ("r", "(SELECT * FROM q WHERE b > 1) q"),
    )

    def queries(columns: tuple[str, ...], conditions: tuple[str, ...]) -> list[Plan]:
        texts = (
            f"SELECT {shown} FROM {left} {join} JOIN {right} ON {on} WHERE {where}"
            for join, on, where, shown, (left, right) in product(
                JOINS, ON, conditions, columns, tables
            )
        )
        return [*dict.fromkeys(map(normalized, texts))]

    found = 0
    offered = queries(SHOWN[:1], WHERE[:3])
    for ours in queries(SHOWN[1:], WHERE)[::3]:
        for theirs in offered:
            if same.answer(ours, theirs, theirs) is None:
                found += checked(preserved_sides.answer, ours, theirs) is not None
    assert found > 100
