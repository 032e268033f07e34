"""Scalar functions and aggregates answer as DuckDB's do on random values with NULLs.

Where DuckDB raises an error the value here is NULL (its TRY says so). What is written differently
there is given in both languages. Left out is what the languages define differently: rounding of
halves, division of integers, the text of doubles and times.
"""

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType, Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

COLUMNS = "i INTEGER, j INTEGER, d DOUBLE, e DOUBLE, s TEXT, p TEXT, b BOOLEAN, ts TIMESTAMP"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

PARTS = ["minute", "hour", "day", "dow", "isodow", "doy", "week", "isoyear", "month", "quarter"]
PARTS += ["year", "decade", "century", "millennium", "epoch"]
CUTS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade"]
SCALARS: list[str | tuple[str, str]] = [
    "SIGN(d)", "ABS(d)", "FLOOR(d)", "CEIL(d)", "CEILING(d)", "MOD(i, j)", "SQRT(d)", "CBRT(d)",
    "LN(d)", "LOG(d)", "LOG10(d)", "LOG(2, d)", "EXP(d)", "POWER(d, 2)", "SIN(d)", "COS(d)",
    "TAN(d)", "ASIN(d)", "ACOS(d)", "ATAN(d)",
    ("ATAN2(d, e)", "ATAN2(d + 0.0, e + 0.0)"), "SINH(d)", "COSH(d)", "TANH(d)",
    "ASINH(d)", "ACOSH(d)", "ATANH(d)", "DEGREES(d)", "RADIANS(d)", "PI()", "TRUNC(d)",
    ("GREATEST(d, e)", "CASE WHEN d IS NOT NULL AND e IS NOT NULL THEN GREATEST(d, e) END"),
    ("LEAST(d, e)", "CASE WHEN d IS NOT NULL AND e IS NOT NULL THEN LEAST(d, e) END"),
    "UPPER(s)", "LENGTH(s)", "LTRIM(s, 'a ')", "RTRIM(s, 'a ')", "TRIM(BOTH 'b' FROM s)",
    "SUBSTRING(s, 2, 2)", "SUBSTR(s, 2)", "POSITION('b' IN s)", "STRPOS(s, p)",
    "REPLACE(s, 'a', 'xy')", "LEFT(s, i)", "RIGHT(s, i)", "CONCAT(s, p, i)",
    "CONCAT_WS('-', s, p, i)", "SPLIT_PART(s, 'b', 2)", "STARTS_WITH(s, 'a')",
    ("ENDS_WITH(s, 'a')", "SUFFIX(s, 'a')"), "LPAD(s, 5, 'xy')", "RPAD(s, 5, 'xy')",
    "REVERSE(s)", "REPEAT(s, 2)", "TRANSLATE(s, 'ab', 'x')", "s LIKE 'a%'", "s NOT LIKE p",
    "s ILIKE 'A_'", "s LIKE 'a!%' ESCAPE '!'", "ASCII(s)",
    ("CHR(65 + ABS(i))", "CHR((65 + ABS(i))::INTEGER)"), "s || p",
    "CASE i WHEN 1 THEN 'one' WHEN 2 THEN 'two' END", "CASE WHEN d > e THEN 1 ELSE 0 END",
    "COALESCE(d, e, 0.0)", "NULLIF(i, j)", "i BETWEEN 0 AND j",
    (
        "i BETWEEN SYMMETRIC 2 AND j",
        "CASE WHEN j IS NOT NULL THEN i BETWEEN LEAST(2, j) AND GREATEST(2, j) END",
    ),
    "i + -9223372036854775808", "i > - 9223372036854775808", "i IN (1, 2, j)",
    "i NOT IN (1, 2)", "i IS DISTINCT FROM j", "b IS TRUE", "b IS NOT FALSE",
    ("b IS UNKNOWN", "b IS NULL"), "b AND i > 0", "b OR i > 0",
    *(
        f"EXTRACT({part} FROM ts)"
        for part in PARTS
    ),
    ("EXTRACT(second FROM ts)", "EXTRACT(microseconds FROM ts) / 1e6"),
    ("EXTRACT(milliseconds FROM ts)", "EXTRACT(microseconds FROM ts) / 1e3"),
    "DATE_PART('hour', ts)",
    *(
        (f"DATE_TRUNC('{part}', ts)", f"DATE_TRUNC('{part}', ts)::TIMESTAMP")
        for part in CUTS
    ),
    (
        "DATE_BIN(INTERVAL '5 min', ts, TIMESTAMP '2000-01-01')",
        "TIME_BUCKET(INTERVAL '5 min', ts, TIMESTAMP '2000-01-01')",
    ),
    ("TO_TIMESTAMP(i)", "MAKE_TIMESTAMP(i * 1000000)"),
    "ts + INTERVAL '90 s'", "ts - INTERVAL '1 day'",
    ("EPOCH(ts - TIMESTAMP '2000-01-01')", "EPOCH(ts) - 946684800"),
    ("EPOCH(INTERVAL '1 s' * d)", "ROUND(d * 1e6) / 1e6"),
    "CAST(i AS TEXT)", "CAST(p AS INTEGER)", "CAST(b AS TEXT)", "CAST(i AS DOUBLE)",
    "MAKE_TIMESTAMP(2000, 1 + ABS(i), 28 + j, 1, 2, 3.5)",
]  # fmt: skip

AGGREGATES: list[str | tuple[str, str]] = [
    "COUNT(*)", "COUNT(d)", "COUNT(DISTINCT i)", "SUM(i)", "SUM(DISTINCT i)", "AVG(d)",
    "AVG(DISTINCT i)", "MIN(s)", "MAX(d)", "STDDEV(d)", "STDDEV_SAMP(i)", "STDDEV_POP(d)",
    "VARIANCE(d)", "VAR_SAMP(i)", "VAR_POP(i)", "MEDIAN(d)", "QUANTILE_CONT(d, 0.3)",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY d)",
    "PERCENTILE_CONT(0.2) WITHIN GROUP (ORDER BY d DESC)",
    "BOOL_AND(b)", "BOOL_OR(b)", ("EVERY(i > 0)", "BOOL_AND(i > 0)"),
    "COUNT(*) FILTER (WHERE i > 0)", "SUM(d) FILTER (WHERE b)",
    ("COUNT_IF(b)", "COUNT(*) FILTER (WHERE b)"),
    "COUNT(DISTINCT s) FILTER (WHERE i > 0)",
    (
        "COUNT(DISTINCT i, s)",
        "COUNT(DISTINCT CASE WHEN i IS NOT NULL AND s IS NOT NULL THEN (i, s) END)",
    ),
    ("ARRAY_AGG(i)", "LIST(i ORDER BY i) FILTER (WHERE i IS NOT NULL)"),
    (
        "ARRAY_AGG(DISTINCT s) FILTER (WHERE b)",
        "LIST(DISTINCT s ORDER BY s) FILTER (WHERE b AND s IS NOT NULL)",
    ),
]  # fmt: skip

numbers = st.sampled_from([None, 0.0, 1.0, -1.0, 0.5, -2.25, 3.0, 100.0, 1e-3, 710.0])
integers = st.sampled_from([None, -3, -1, 0, 1, 2, 5])
texts = st.sampled_from([None, "", "a", "ab", "abab", "b a", " a% ", "ÄB", "7", "-1"])
times = st.none() | st.datetimes(datetime(1800, 1, 1), datetime(2300, 1, 1))  # noqa: DTZ001
rows = st.lists(
    st.tuples(integers, integers, numbers, numbers, texts, texts, st.none() | st.booleans(), times),
    max_size=8,
)


def ours(query: str, table: list[Row]) -> list[tuple[Any, ...]]:
    catalog = catalog_of(f"CREATE TABLE t (n INTEGER, {COLUMNS})")
    database = Database()
    database.append("t", [SourceEvent((n, *row), ts=0) for n, row in enumerate(table)])
    bound = bound_query(query, catalog)
    found = evaluate(bound.plan, database, 0)
    types = bound.schema.dtypes
    return sorted(
        tuple(
            EPOCH + timedelta(microseconds=value)
            if dtype == DataType.TIMESTAMP and isinstance(value, int)
            else value
            for value, dtype in zip(row, types, strict=True)
        )
        for row in found
    )


@pytest.fixture(scope="module")
def peer() -> Any:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    columns = COLUMNS.replace("INTEGER", "BIGINT")
    connection.execute(f"CREATE TABLE t (n BIGINT, {columns})")
    yield connection
    connection.close()


def theirs(query: str, table: list[Row], peer: Any) -> list[tuple[Any, ...]]:
    peer.execute("DELETE FROM t")
    if table:
        filled = [(n, *row) for n, row in enumerate(table)]
        peer.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 9)})", filled)
    found: list[tuple[Any, ...]] = peer.execute(query).fetchall()
    return sorted(found)


def same(mine: Any, other: Any) -> bool:
    if isinstance(other, float) and not math.isfinite(other):
        other = None
    if isinstance(other, list):
        return isinstance(mine, str) and json.loads(mine) == other
    if isinstance(other, datetime):
        aware = other if other.tzinfo else other.replace(tzinfo=UTC)
        return isinstance(mine, datetime) and mine == aware
    if mine is None or other is None or isinstance(mine, str | bool):
        return type(mine) is type(other) and mine == other
    return math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-9)


def with_times(table: list[tuple[Any, ...]]) -> list[Row]:
    """Return rows as we keep them: times as microseconds."""
    return [
        (*row[:-1], None if row[-1] is None else _micros(row[-1].replace(tzinfo=UTC)))
        for row in table
    ]


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def pairs(expressions: list[str | tuple[str, str]]) -> list[tuple[str, str]]:
    return [(e, e) if isinstance(e, str) else e for e in expressions]


@settings(max_examples=15)
@given(table=rows)
def test_scalar_functions(table: list[tuple[Any, ...]], peer: Any) -> None:
    written = pairs(SCALARS)
    mine = ours(f"SELECT n, {', '.join(a for a, _ in written)} FROM t", with_times(table))
    tried = ", ".join(f"TRY({b})" for _, b in written)
    other = theirs(f"SELECT n, {tried} FROM t", table, peer)
    for left, right in zip(mine, other, strict=True):
        for (text, _), a, b in zip(written, left[1:], right[1:], strict=True):
            assert same(a, b), f"{text} on {table[left[0]]}: {a!r}, DuckDB {b!r}"


@settings(max_examples=25)
@given(table=rows)
def test_aggregates(table: list[tuple[Any, ...]], peer: Any) -> None:
    written = pairs(AGGREGATES)
    for tail in ("", " GROUP BY COALESCE(p, '')"):
        key = "COALESCE(p, '')" if tail else "0"
        mine = ours(
            f"SELECT {key}, {', '.join(a for a, _ in written)} FROM t{tail}", with_times(table)
        )
        other = theirs(
            f"SELECT {key}, {', '.join(b for _, b in written)} FROM t{tail}", table, peer
        )
        for left, right in zip(mine, other, strict=True):
            assert left[0] == right[0]
            for (text, _), a, b in zip(written, left[1:], right[1:], strict=True):
                assert same(a, b), f"{text} on {table}: {a!r}, DuckDB {b!r}"


def test_the_negative_of_the_least_integer_does_not_fit() -> None:
    bound = bound_query("SELECT - -9223372036854775808 AS x", catalog_of())
    assert list(evaluate(bound.plan, Database(), 0)) == [(None,)]
