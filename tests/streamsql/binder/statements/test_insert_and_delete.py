"""INSERT and DELETE become rows and predicates."""

import pytest

from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.binder import bind_delete, bind_insert, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import Row
from streamsql.syntax import CreateSource, Delete, Insert, parse_statement

SOURCE = "CREATE SOURCE s (a TEXT, n INTEGER, x DOUBLE, b BOOLEAN, ts TIMESTAMP, pause INTERVAL)"
SECOND = 1_767_225_600_000_000


def catalog() -> Catalog:
    statement = parse_statement(SOURCE)
    assert isinstance(statement, CreateSource)
    return Catalog((define(statement, Catalog()),))


def inserted(text: str) -> tuple[Row, ...]:
    statement = parse_statement(text)
    assert isinstance(statement, Insert)
    return bind_insert(statement, catalog()).rows


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ("('a', 1, 2.5, TRUE, '2026-01-01', '5 s')", ("a", 1, 2.5, True, SECOND, 5_000_000)),
        ("('a', -1, 2, FALSE, NULL, NULL)", ("a", -1, 2.0, False, None, None)),
        ("('a', 7 / 2, 1 + 1, 1 < 2, NULL, NULL)", ("a", 3, 2.0, True, None, None)),
        (
            "(LOWER('A') || 'b', ABS(-3), SQRT(4), NOT TRUE, TIMESTAMP '2026-01-01', "
            "INTERVAL '1' MINUTE)",
            ("ab", 3, 2.0, False, SECOND, 60_000_000),
        ),
        ("(5, '6', '7', 'true', NULL, NULL)", ("5", 6, 7.0, True, None, None)),
        ("('it''s', 1 / 0, NULL, NULL, NULL, NULL)", ("it's", None, None, None, None, None)),
    ],
)
def test_values(values: str, row: Row) -> None:
    assert inserted(f"INSERT INTO s VALUES {values}") == (row,)


def test_named_columns_in_any_order() -> None:
    rows = inserted("INSERT INTO S (x, A) VALUES (1, 'a'), (2, 'b')")
    assert rows == (("a", None, 1.0, None, None, None), ("b", None, 2.0, None, None, None))


def test_delete() -> None:
    statement = parse_statement("DELETE FROM s WHERE n > 1 AND s.a LIKE 'a%'")
    assert isinstance(statement, Delete)
    bound = bind_delete(statement, catalog())
    assert bound.definition.name == "s"
    assert bound.predicate is not None
    matches = compile_predicate(bound.predicate)
    row: Row = ("ab", 2, None, None, None, None)
    assert matches(row)
    assert not matches(("ab", None, None, None, None, None))


def test_delete_everything() -> None:
    statement = parse_statement("DELETE FROM s")
    assert isinstance(statement, Delete)
    assert bind_delete(statement, catalog()).predicate is None
