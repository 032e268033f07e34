"""UPDATE and MERGE change the rows that they change in DuckDB, which shares no code with ours."""

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.session.session import LocalSession
from streamsql.data.types import Row
from streamsql.errors import BindingError

Rows = list[tuple[int | None, str | None, int | None]]
KEYS = st.none() | st.integers(1, 4)
TEXTS = st.none() | st.sampled_from(["a", "b", "end"])
NUMBERS = st.none() | st.integers(-2, 2)
ROWS = st.lists(st.tuples(KEYS, TEXTS, NUMBERS), max_size=6)
CONDITIONS = st.sampled_from(
    ["t.n > s.n", "s.v IS NULL", "t.v <> s.v OR s.n = 0", "CASE WHEN s.v = 'end' THEN TRUE END"]
)
THEIRS = st.sampled_from(["s.n > 0", "s.v IS NULL", "s.k IN (1, 2)"])
MATCHED = st.sampled_from(
    ["UPDATE SET v = s.v, n = t.n + 1", "UPDATE SET n = s.n", "DELETE", "DO NOTHING"]
)
MISSING = st.sampled_from(
    ["INSERT VALUES (s.k, s.v, s.n)", "INSERT (n, k) VALUES (s.n * 2, s.k)", "DO NOTHING"]
)
ON = st.sampled_from(["t.k = s.k", "t.k = s.k AND t.v = s.v", "s.k = t.k AND s.n > 0"])
TABLE = "CREATE TABLE t (k INTEGER, v TEXT, n INTEGER)"


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def literal(value: object) -> str:
    return "NULL" if value is None else repr(value)


def listed(rows: Rows) -> str:
    return ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


def ours(rows: Rows, statement: str) -> list[Row]:
    session = LocalSession("reference")
    session.run(TABLE)
    if rows:
        session.run(f"INSERT INTO t VALUES {listed(rows)}")
    session.run(statement)
    return sorted(session.run("SELECT k, v, n FROM t")[-1].rows, key=repr)


def theirs(duck: duckdb.DuckDBPyConnection, rows: Rows, statement: str) -> list[Row]:
    duck.execute("CREATE OR REPLACE TABLE t (k BIGINT, v TEXT, n BIGINT)")
    if rows:
        duck.execute(f"INSERT INTO t VALUES {listed(rows)}")
    duck.execute(statement)
    return sorted(duck.execute("SELECT * FROM t").fetchall(), key=repr)


@given(
    ROWS,
    st.sampled_from(
        [
            "SET n = n + 1",
            "SET v = 'x', n = k WHERE n > 0 OR v IS NULL",
            "SET k = NULL WHERE v LIKE 'e%'",
            "SET v = CAST(n AS TEXT) || v WHERE k IN (1, 3)",
            "SET n = CASE WHEN v = 'a' THEN 7 ELSE n END",
        ]
    ),
)
def test_updates(duck: duckdb.DuckDBPyConnection, rows: Rows, change: str) -> None:
    assert ours(rows, f"UPDATE t {change}") == theirs(duck, rows, f"UPDATE t {change}")


@given(
    ROWS,
    ROWS.filter(bool),
    ON,
    st.lists(st.tuples(CONDITIONS, MATCHED), max_size=2),
    st.none() | MATCHED,
    st.lists(st.tuples(THEIRS, MISSING), max_size=2),
    st.none() | MISSING,
)
def test_merges(  # noqa: PLR0913, PLR0917
    duck: duckdb.DuckDBPyConnection,
    rows: Rows,
    source: Rows,
    on: str,
    matched: list[tuple[str, str]],
    all_matched: str | None,
    missing: list[tuple[str, str]],
    all_missing: str | None,
) -> None:
    source = list({row[0]: row for row in source}.values())  # else the outcome is open
    parts = [f"WHEN MATCHED AND {condition} THEN {what}" for condition, what in matched]
    parts += [f"WHEN MATCHED THEN {all_matched}"] if all_matched else []
    parts += [f"WHEN NOT MATCHED AND {condition} THEN {what}" for condition, what in missing]
    parts += [f"WHEN NOT MATCHED THEN {all_missing}"] if all_missing else []
    if not parts:
        return
    # A first row without NULL, which is left out again, gives every column its type.
    typed = listed([(0, "typed", 0), *source])
    using = f"(SELECT * FROM (VALUES {typed}) AS q (k, v, n) WHERE k IS NULL OR k <> 0) AS s"
    statement = f"MERGE INTO t USING {using} ON {on} {' '.join(parts)}"
    assert ours(rows, statement) == theirs(duck, rows, statement)


def test_a_row_that_two_rows_of_the_source_change_is_refused() -> None:
    statement = (
        "MERGE INTO t USING (VALUES (1, 5), (1, 6)) AS s (k, n) ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n = s.n"
    )
    with pytest.raises(BindingError, match="two rows of USING change one row"):
        ours([(1, "a", 0)], statement)
