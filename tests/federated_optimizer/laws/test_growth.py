"""The work from text to fragments grows slowly with the text, whatever is in it.

Work is counted in calls of functions, not in seconds.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import plan
from streamsql.catalog.catalog import Catalog
from streamsql.errors import QueryError
from tests.streamsql.from_text import bound_query, catalog_of

TABLES = 48
NAMES = [f"t{number}" for number in range(TABLES)]


TABLE, STREAM = (
    catalog_of(*(f"CREATE {kind} {name} (k INTEGER, v DOUBLE, s TEXT)" for name in NAMES))
    for kind in ("TABLE", "STREAM")
)
TOPOLOGY = Topology(
    gateways={"gw-1": frozenset(NAMES), "gw-2": frozenset(NAMES)},
    bases=("base",),
    static="static",
    coordinator="console",
)


def calls_of(work: Callable[[], object]) -> int:
    count = 0

    def called(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def work_on(text: str, catalog: Catalog) -> int:
    def from_text_to_fragments() -> None:
        with suppress(QueryError):  # refusing takes no longer
            plan(bound_query(text, catalog), TOPOLOGY, query="q1", text=text)

    return calls_of(from_text_to_fragments)


def chain(n: int, join: str, condition: str = "") -> str:
    joins = (f"{join} t{i}{condition.format(i=i, before=i - 1)}" for i in range(1, n))
    return f"SELECT COUNT(*) AS n FROM t0 {' '.join(joins)}"


def listed(n: int, item: str, separator: str) -> str:
    return separator.join(item.format(i=i, t=i % TABLES) for i in range(n))


LONG: dict[str, Callable[[int], str]] = {
    "IN": lambda n: f"SELECT * FROM t0 WHERE k IN ({listed(n, '{i}', ',')})",
    "NOT IN": lambda n: (
        f"SELECT * FROM t0 WHERE s NOT IN ({listed(n, chr(39) + '{i}' + chr(39), ',')})"
    ),
    "VALUES": lambda n: f"SELECT * FROM (VALUES {listed(n, '({i})', ',')}) v",
    "CASE": lambda n: f"SELECT CASE {listed(n, 'WHEN k = {i} THEN {i}', ' ')} END AS x FROM t0",
    "columns": lambda n: f"SELECT {listed(n, 'k + {i} AS c{i}', ', ')} FROM t0",
}
"""Lists that may be long: n is hundreds."""
WIDE: dict[str, Callable[[int], str]] = {
    "comma": lambda n: f"SELECT COUNT(*) AS n FROM {listed(n, 't{i}', ', ')}",
    "comma with keys": lambda n: (
        f"SELECT COUNT(*) AS n FROM {listed(n, 't{i}', ', ')} "
        f"WHERE {listed(n, 't{i}.k = t0.k', ' AND ')}"
    ),
    "CROSS JOIN": lambda n: chain(n, "CROSS JOIN"),
    "JOIN without ON": lambda n: chain(n, "JOIN"),
    "JOIN with one ON": lambda n: chain(n, "JOIN") + " ON t1.k = t0.k",
    "LEFT JOIN without ON": lambda n: chain(n, "LEFT JOIN"),
    "comma and JOIN": lambda n: f"SELECT 1 AS n FROM {listed(n, 't{i} JOIN t{i}', ', ')}",
    "JOIN": lambda n: chain(n, "JOIN", " ON t{i}.k = t{before}.k"),
    "JOIN to the first": lambda n: chain(n, "JOIN", " ON t{i}.k = t0.k"),
    "LEFT JOIN": lambda n: chain(n, "LEFT JOIN", " ON t{i}.k = t0.k"),
    "NATURAL JOIN": lambda n: chain(n, "NATURAL JOIN"),
    "EXISTS": lambda n: (
        "SELECT k FROM t0 WHERE "
        + listed(n, "EXISTS (SELECT 1 FROM t{t} x WHERE x.k = t0.k)", " AND ")
    ),
    "UNION ALL": lambda n: listed(n, "SELECT k FROM t{t}", " UNION ALL "),
    "INTERSECT": lambda n: listed(n, "SELECT k FROM t{t}", " INTERSECT "),
    "WITH": lambda n: (
        f"WITH c0 AS (SELECT k FROM t0), {listed(n, 'd{i} AS (SELECT k FROM t{t})', ', ')} "
        f"SELECT COUNT(*) AS n FROM {listed(n, 'd{i}', ', ')}"
    ),
    "AND": lambda n: f"SELECT * FROM t0 WHERE {listed(n, 'k <> {i}', ' AND ')}",
    "OR": lambda n: f"SELECT * FROM t0 WHERE {listed(n, 'k = {i}', ' OR ')}",
    "GROUP BY": lambda n: f"SELECT COUNT(*) AS n FROM t0 GROUP BY {listed(n, 'k + {i}', ', ')}",
    "nested queries": lambda n: (
        "SELECT k FROM (" * (n // 2) + "SELECT k FROM t0" + ") x" * (n // 2)
    ),
    "sums of sums": lambda n: (
        "SELECT x FROM ("
        + "SELECT x + x AS x FROM (" * (n // 2)
        + "SELECT k AS x FROM t0"
        + ") q" * (n // 2)
        + ") r WHERE x > 1"
    ),
    "sums of sums in joins": lambda n: (
        "SELECT x FROM ("
        + "SELECT x + x AS x FROM (" * (n // 2)
        + "SELECT k AS x FROM t0"
        + ") q" * (n // 2)
        + ") r JOIN t1 ON t1.k + x > 1 AND x > 1"
    ),
    "WITH read twice": lambda n: (
        "WITH c0 AS (SELECT k FROM t0), "
        + ", ".join(
            f"c{i} AS (SELECT a.k FROM c{i - 1} a JOIN c{i - 1} b ON a.k = b.k)"
            for i in range(1, n)
        )
        + f" SELECT k FROM c{n - 1}"
    ),
    "brackets": lambda n: f"SELECT {'(' * n}k{')' * n} AS x FROM t0",
    "CASE in CASE": lambda n: (
        "SELECT " + "CASE WHEN k > 1 THEN " * (n // 2) + "1" + " END" * (n // 2) + " AS x FROM t0"
    ),
    "+": lambda n: f"SELECT {listed(n, 'k', ' + ')} AS x FROM t0",
}
"""Shapes whose size is limited: n is some tens."""


@pytest.mark.parametrize("catalog", [TABLE, STREAM], ids=["tables", "streams"])
@pytest.mark.parametrize("shape", LONG.values(), ids=LONG)
def test_lists_take_work_in_proportion_to_their_length(
    shape: Callable[[int], str], catalog: Catalog
) -> None:
    assert work_on(shape(480), catalog) < 2.3 * work_on(shape(240), catalog)


@pytest.mark.parametrize("catalog", [TABLE, STREAM], ids=["tables", "streams"])
@pytest.mark.parametrize("shape", WIDE.values(), ids=WIDE)
def test_no_shape_takes_more_than_the_cube_of_its_size(
    shape: Callable[[int], str], catalog: Catalog
) -> None:
    assert work_on(shape(40), catalog) < 8 * work_on(shape(20), catalog)
