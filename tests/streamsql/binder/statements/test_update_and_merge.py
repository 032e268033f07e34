"""UPDATE and MERGE bound: names, types, and what they may read."""

import pytest

from streamsql.binder import bind_merge, bind_update, define
from streamsql.catalog.catalog import Catalog
from streamsql.errors import QueryError
from streamsql.syntax import CreateSource, Merge, Update, parse_statement

TABLE = "CREATE TABLE t (k INTEGER PRIMARY KEY, x DOUBLE, v TEXT, at TIMESTAMP)"
MERGE = "MERGE INTO t USING (VALUES (1, 'a')) AS s (k, v) ON t.k = s.k "


def catalog() -> Catalog:
    statement = parse_statement(TABLE)
    assert isinstance(statement, CreateSource)
    return Catalog((define(statement, Catalog()),))


def bound(text: str) -> object:
    statement = parse_statement(text)
    if isinstance(statement, Update):
        return bind_update(statement, catalog())
    assert isinstance(statement, Merge)
    return bind_merge(statement, catalog())


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET x = k, v = NULL, at = '2026-01-01' WHERE v IS NOT NULL",
        "UPDATE t SET x = 1, at = at + INTERVAL '1 s'",
        MERGE + "WHEN MATCHED THEN UPDATE SET v = s.v || t.v WHEN NOT MATCHED THEN "
        "INSERT (v, k) VALUES (s.v, s.k)",
    ],
)
def test_what_fits_is_taken(text: str) -> None:
    assert bound(text) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("UPDATE u SET x = 1", "no source or table 'u'"),
        ("UPDATE t SET y = 1", "has no column 'y'"),
        ("UPDATE t SET x = 1, x = 2", "'x' is named twice"),
        ("UPDATE t SET k = x", "column 'k' is INTEGER, but this has type DOUBLE"),
        ("UPDATE t SET k = 'seven'", "column 'k'"),
        ("UPDATE t SET v = at", "column 'v' is TEXT, but this has type TIMESTAMP"),
        ("UPDATE t SET at = 5", "column 'at' is TIMESTAMP"),
        ("UPDATE t SET x = (SELECT 1)", "can read only its own relation"),
        ("UPDATE t SET x = 1 WHERE k IN (SELECT 1)", "can read only its own relation"),
        ("UPDATE t SET x = 1 WHERE k", "WHERE"),
        (MERGE.replace("AS s", "AS t") + "WHEN MATCHED THEN DELETE", "both called 't'"),
        (MERGE + "WHEN NOT MATCHED THEN INSERT VALUES (s.k)", "1 values for 4 columns"),
        (MERGE + "WHEN NOT MATCHED THEN INSERT (k) VALUES (t.k)", "t"),
        (MERGE + "WHEN NOT MATCHED AND t.x > 1 THEN INSERT (k) VALUES (s.k)", "t"),
        (MERGE + "WHEN MATCHED AND EXISTS (SELECT 1) THEN DELETE", "only its own relation"),
    ],
)
def test_what_does_not_fit_is_named(text: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        bound(text)
