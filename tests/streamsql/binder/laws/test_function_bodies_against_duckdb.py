"""Random functions and aggregates whose body is an expression, beside macros of DuckDB.

DuckDB puts the text of a macro in the place of a call and knows nothing of NULLs, FILTER and
DISTINCT of macros. So the oracle writes out in each aggregate that rows with a NULL argument are
skipped, and asks for FILTER and DISTINCT in a subquery over the rows of a group.
"""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.planning import normalize
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import UnsupportedError
from streamsql.reference import Database, evaluate
from tests.federated_optimizer.sharing.readings_shop import TOPOLOGY
from tests.streamsql.from_text import bound_query, catalog_of

TABLE = "CREATE TABLE t (k INTEGER, x DOUBLE, w DOUBLE, n INTEGER)"
NUMBERS = [None, None, 0.0, 0.5, 1.0, -1.0, 2.5, 4.0]
rows = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from(NUMBERS),
        st.sampled_from(NUMBERS),
        st.sampled_from([None, 0, 1, -3, 7]),
    ),
    max_size=9,
)
SCALARS = (
    "{0}", "{0}", "({0} + {1})", "({0} - {1})", "({0} * {1})", "COALESCE({0}, {1})", "-({0})",
    "CASE WHEN {0} > {1} THEN {0} ELSE {1} END", "CASE WHEN {0} IS NULL THEN 2 ELSE {1} END",
    "NULLIF({0}, {1})", "ABS({0})", "CASE WHEN {0} > 1 AND {1} IS NOT NULL THEN {1} END",
    "({0} / NULLIF({1}, 0))",
)  # fmt: skip
CALLS = ("COUNT(*)", "COUNT({0})", "SUM({0})", "MIN({0})", "MAX({0})", "AVG({0})", "SUM({0})",
         "COUNT(DISTINCT {0})", "ARG_MAX({1} * 2, {1})")  # fmt: skip
# DuckDB skips a NULL that ARG_MAX would return, and takes any of several: here neither matters.
CONDITIONS = ("{0} > {1}", "{0} <= 1 OR {1} = 0", "{0} IS NULL", "NOT {0} = {1}")


@st.composite
def scalars(draw: st.DrawFn, names: list[str], depth: int = 2) -> str:
    if depth == 0:
        return draw(st.sampled_from([*names, *names, "1", "0.5"]))
    parts = [draw(scalars(names, depth - draw(st.integers(1, depth)))) for _ in range(2)]
    return draw(st.sampled_from(SCALARS)).format(*parts)


@dataclass(frozen=True)
class Both:
    """A definition in our words and in those of DuckDB."""

    ours: str
    theirs: str
    parameters: int


@st.composite
def functions(draw: st.DrawFn) -> Both:
    names = ["a", "b"][: draw(st.integers(1, 2))]
    body = draw(scalars(names))
    called = draw(st.booleans())
    typed = ", ".join(f"{name} DOUBLE" for name in names)
    clause = " CALLED ON NULL INPUT" if called else ""
    ours = f"CREATE FUNCTION f({typed}) RETURNS DOUBLE{clause} AS ({body})"
    nothing = " OR ".join(f"{name} IS NULL" for name in names)
    theirs = body if called else f"CASE WHEN {nothing} THEN NULL ELSE {body} END"
    return Both(ours, f"CREATE MACRO f({', '.join(names)}) AS ({theirs})", len(names))


@st.composite
def aggregates(draw: st.DrawFn) -> Both:
    names = ["a", "b"][: draw(st.integers(1, 2))]
    called = draw(st.booleans()) and draw(st.booleans())
    present = [] if called else [f"{name} IS NOT NULL" for name in names]
    ours, theirs = [], []
    for _ in range(draw(st.integers(1, 3))):
        call = draw(st.sampled_from(CALLS))
        call = call.format(draw(scalars(names, 1)), draw(st.sampled_from(names)))
        tests = []
        if draw(st.integers(0, 3)) == 0:
            condition = draw(st.sampled_from(CONDITIONS))
            tests = [condition.format(draw(st.sampled_from(names)), draw(scalars(names, 0)))]
        ours.append(filtered(call, tests))
        theirs.append(filtered(call, [*tests, *present]))
    shape = draw(st.sampled_from(("{}", "2 * {}", "COALESCE({}, -1)", "ABS({}) + 1")))
    operator = draw(st.sampled_from((" + ", " - ", " * ")))
    typed = ", ".join(f"{name} DOUBLE" for name in names)
    clause = " CALLED ON NULL INPUT" if called else ""
    body, oracle = (shape.format(f"({operator.join(calls)})") for calls in (ours, theirs))
    return Both(
        f"CREATE AGGREGATE g({typed}) RETURNS DOUBLE{clause} AS ({body})",
        f"CREATE MACRO g({', '.join(names)}) AS (CAST({oracle} AS DOUBLE))",
        len(names),
    )


def filtered(call: str, tests: list[str]) -> str:
    if not tests:
        return call
    return f"{call} FILTER (WHERE {' AND '.join(f'({test})' for test in tests)})"


def plain(found: list[tuple[Any, ...]]) -> Counter[Row]:
    return Counter(
        tuple(v if v is None else round(float(v), 9) + 0.0 for v in row) for row in found
    )


def ours(text: str, definitions: list[str], content: list[Row]) -> Counter[Row]:
    database = Database()
    database.append("t", [SourceEvent(row, ts=0) for row in content])
    plan = bound_query(text, catalog_of(TABLE, *definitions)).plan
    answers = [
        plain([row for row, count in evaluate(p, database, 0).items() for _ in range(count)])
        for p in (plan, normalize(plan, TOPOLOGY))
    ]
    assert answers[0] == answers[1]
    return answers[0]


def theirs(text: str, macros: list[str], content: list[Row]) -> Counter[Row]:
    with closing(duckdb.connect(":memory:", config={"threads": 1})) as connection:
        connection.execute(TABLE.replace("INTEGER", "BIGINT"))
        if content:
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", content)
        for macro in macros:
            connection.execute(macro)
        return plain(connection.execute(text).fetchall())


@given(functions(), functions(), rows, st.data())
def test_functions_answer_as_macros(
    inner: Both, outer: Both, content: list[Row], data: st.DataObject
) -> None:
    """Calls of calls, in the select list, in WHERE and as the value of an aggregate."""
    outer = replace(
        outer,
        ours=outer.ours.replace(" f(", " o("),
        theirs=outer.theirs.replace(" f(", " o("),
    )
    argument = st.sampled_from(["x", "w", "n", "x + w", "1", "NULL", "COALESCE(n, 2)"])
    call = f"f({', '.join(data.draw(argument) for _ in range(inner.parameters))})"
    more = [data.draw(argument) for _ in range(outer.parameters - 1)]
    whole = f"o({', '.join([call, *more])})"
    text = data.draw(
        st.sampled_from(
            (
                f"SELECT k, {call}, {whole} FROM t",
                f"SELECT k FROM t WHERE {whole} > 0",
                f"SELECT {whole}, COUNT(*), MAX({call}) FROM t GROUP BY {whole}",
            )
        )
    )
    known = [inner.ours, outer.ours]
    expected = theirs(text, [inner.theirs, outer.theirs], content)
    assert ours(text, known, content) == expected, (text, known)


@given(aggregates(), rows, st.data())
def test_aggregates_answer_as_macros(both: Both, content: list[Row], data: st.DataObject) -> None:
    argument = st.sampled_from(["x", "w", "n", "x + w", "x * 2"])
    given = [data.draw(argument) for _ in range(both.parameters)]
    call = f"g({', '.join(given)})"
    text = data.draw(
        st.sampled_from(
            (
                f"SELECT {call} FROM t",
                f"SELECT k, {call}, MAX(x) FROM t GROUP BY k",
                f"SELECT k, COUNT(*) FROM t GROUP BY k HAVING {call} > 0",
                f"SELECT {call} + 1 FROM t WHERE w > 0",
            )
        )
    )
    known = [both.ours]
    assert ours(text, known, content) == theirs(text, [both.theirs], content), (text, known)


@given(aggregates(), rows, st.booleans(), st.booleans(), st.data())
def test_filter_and_distinct_reach_every_part(
    both: Both, content: list[Row], distinct: bool, filters: bool, data: st.DataObject
) -> None:
    given = [data.draw(st.sampled_from(["x", "w"])) for _ in range(both.parameters)]
    condition = data.draw(st.sampled_from(["n > 0", "w <= 1 OR n IS NULL"])) if filters else ""
    call = f"g({'DISTINCT ' if distinct else ''}{', '.join(given)})"
    call += f" FILTER (WHERE {condition})" if filters else ""
    text = f"SELECT k, {call} FROM t GROUP BY k"
    names = "pq"[: both.parameters]
    values = ", ".join(f"{value} AS {name}" for value, name in zip(given, names, strict=True))
    rows_of = f"SELECT {'DISTINCT ' if distinct else ''}{values} FROM t u WHERE "
    rows_of += "u.k IS NOT DISTINCT FROM z.k" + (f" AND ({condition})" if filters else "")
    oracle = (
        f"SELECT z.k, (SELECT g({', '.join(names)}) FROM ({rows_of}) d) "
        "FROM (SELECT DISTINCT k FROM t) z"
    )
    try:
        found = ours(text, [both.ours], content)
    except UnsupportedError:
        assert distinct
        return
    assert found == theirs(oracle, [both.theirs], content), (text, both.ours)
