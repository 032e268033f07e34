"""Bound plans, run by the reference evaluator, answer as DuckDB does on the same tables.

Queries are generated: names, joins, WHERE, grouping, DISTINCT and UNION combine freely. This
finds mistakes in scopes, join order, outer joins and three-valued logic. What the languages define
differently is left out: integer division, the order of texts in other alphabets, result names.
"""

import math
from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

TABLES = {
    "t": ("a INTEGER", "b DOUBLE", "c TEXT"),
    "u": ("a INTEGER", "d DOUBLE", "e TEXT"),
    "v": ("f INTEGER", "c TEXT", "g BOOLEAN"),
}
VALUES: dict[str, list[Any]] = {
    "INTEGER": [None, 0, 1, 2, -1],
    "DOUBLE": [None, 0.0, 1.0, 2.5],
    "TEXT": [None, "", "a", "ab"],
    "BOOLEAN": [None, True, False],
}
Tables = dict[str, list[Row]]

rows = {
    name: st.lists(
        st.tuples(*(st.sampled_from(VALUES[column.split()[1]]) for column in columns)), max_size=4
    )
    for name, columns in TABLES.items()
}
CREATED = {name: f"CREATE TABLE {name} ({', '.join(columns)})" for name, columns in TABLES.items()}
CATALOG = catalog_of(*CREATED.values())


@st.composite
def numbers(draw: st.DrawFn, columns: list[str]) -> str:
    number = draw(st.sampled_from([*columns, "1", "2", "0.5"]))
    form = draw(st.integers(0, 7))
    other = draw(st.sampled_from([*columns, "1"]))
    return {
        0: f"{number} + {other}",
        1: f"({number} - {other}) * 2",
        2: f"COALESCE({number}, {other})",
        3: f"CASE WHEN {number} > {other} THEN {number} ELSE 0 END",
        4: f"NULLIF({number}, {other})",
        5: f"-ABS({number})",
    }.get(form, number)


@st.composite
def conditions(draw: st.DrawFn, numeric: list[str], texts: list[str], depth: int = 0) -> str:
    form = draw(st.integers(0, 11 if depth < 2 else 7))
    one = draw(numbers(numeric))
    other = draw(numbers(numeric))
    text = draw(st.sampled_from([*texts, "'a'"]))
    if form <= 2:
        operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
        return f"{one} {operator} {other}"
    if form == 3:
        return f"{text} {draw(st.sampled_from(['LIKE', 'NOT LIKE']))} 'a%'"
    if form == 4:
        return f"{one} {draw(st.sampled_from(['IN', 'NOT IN']))} (1, {other}, 2)"
    if form == 5:
        return f"{one} {draw(st.sampled_from(['BETWEEN', 'NOT BETWEEN']))} 0 AND {other}"
    if form == 6:
        return f"{draw(st.sampled_from([one, text]))} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if form == 7:
        word = draw(st.sampled_from(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]))
        return f"{one} {word} {other}"
    inner = draw(conditions(numeric, texts, depth + 1))
    if form == 8:
        return f"NOT ({inner})"
    word = "AND" if form < 11 else "OR"
    return f"({inner} {word} {draw(conditions(numeric, texts, depth + 1))})"


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """Return a FROM clause with its numeric and its text columns."""
    count = draw(st.integers(1, 3))
    names = [draw(st.sampled_from(sorted(TABLES))) for _ in range(count)]
    numeric: list[str] = []
    texts: list[str] = []
    clause = ""
    for number, name in enumerate(names):
        alias = f"x{number}"
        mine = [column.split() for column in TABLES[name]]
        new_numeric = [f"{alias}.{c}" for c, kind in mine if kind in ("INTEGER", "DOUBLE")]
        new_texts = [f"{alias}.{c}" for c, kind in mine if kind == "TEXT"]
        item = f"{name} AS {alias}"
        if draw(st.booleans()) and draw(st.booleans()):
            item = f"(SELECT * FROM {name} WHERE {mine[0][0]} > 0) AS {alias}"
        if not clause:
            clause = item
        else:
            words = [",", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
            word = draw(st.sampled_from(words))
            if word == ",":
                clause = f"{clause} CROSS JOIN {item}"
            else:
                equal = f"{draw(st.sampled_from(numeric))} = {draw(st.sampled_from(new_numeric))}"
                on = draw(
                    st.sampled_from(
                        [equal, equal, draw(conditions(numeric + new_numeric, texts + new_texts))]
                    )
                )
                if draw(st.booleans()):
                    on = f"{on} AND {draw(conditions(numeric + new_numeric, texts + new_texts))}"
                clause = f"{clause} {word} {item} ON {on}"
        numeric += new_numeric
        texts += new_texts
    return clause, numeric, texts


@st.composite
def selects(draw: st.DrawFn, width: int) -> str:
    clause, numeric, texts = draw(sources())
    where = f" WHERE {draw(conditions(numeric, texts))}" if draw(st.booleans()) else ""
    if draw(st.booleans()):
        distinct = draw(st.sampled_from(["", "DISTINCT "]))
        items = ", ".join(draw(numbers(numeric)) for _ in range(width))
        return f"SELECT {distinct}{items} FROM {clause}{where}"
    key = draw(numbers(numeric))
    # A constant in GROUP BY means a position.
    key = key if "." in key and key[0] != "0" else numeric[0]
    calls = []
    for _ in range(width - 1):
        function = draw(st.sampled_from(["COUNT", "SUM", "MIN", "MAX", "AVG", "COUNT(DISTINCT"]))
        inner = draw(numbers(numeric))
        calls.append(f"{function} {inner})" if "(" in function else f"{function}({inner})")
    having = f" HAVING COUNT(*) > {draw(st.integers(0, 1))}" if draw(st.booleans()) else ""
    if draw(st.booleans()):
        calls = ["COUNT(*)", *calls]
        return f"SELECT {', '.join(calls[:width])} FROM {clause}{where}{having}"
    items = ", ".join([key, *calls])
    return f"SELECT {items} FROM {clause}{where} GROUP BY {key}{having}"


@st.composite
def queries(draw: st.DrawFn) -> str:
    width = draw(st.integers(1, 3))
    query = draw(selects(width))
    if draw(st.integers(0, 3)) == 0:
        word = draw(st.sampled_from(["UNION", "UNION ALL"]))
        query = f"{query} {word} {draw(selects(width))}"
    return query


def ours(query: str, tables: Tables) -> Counter[Row]:
    database = Database()
    for name in TABLES:
        database.append(name, [SourceEvent(row, ts=0) for row in tables[name]])
    relation = evaluate(bound_query(query, CATALOG).plan, database, now=0)
    result: Counter[Row] = Counter()
    for row, weight in relation.items():
        result[rounded(row)] += weight
    return result


def theirs(query: str, tables: Tables) -> Counter[Row]:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    try:
        for name, created in CREATED.items():
            connection.execute(created)
            for row in tables[name]:
                connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?)", row)
        return Counter(rounded(row) for row in connection.execute(query).fetchall())
    finally:
        connection.close()


# Numeric constants are DOUBLE here and DECIMAL there, so values are compared as floats.
def rounded(row: tuple[Any, ...]) -> Row:
    return tuple(
        value if value is None or isinstance(value, str) else round(float(value), 9) + 0.0
        for value in row
    )


@given(query=queries(), tables=st.fixed_dictionaries(rows))
def test_same_answer_as_duckdb(query: str, tables: Tables) -> None:
    assert ours(query, tables) == theirs(query, tables)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.c FROM t x CROSS JOIN v y RIGHT JOIN u z ON x.a = z.a WHERE x.c = y.c",
        "SELECT x.a, y.a, z.f FROM t x LEFT JOIN u y ON x.a = y.a JOIN v z ON y.a = z.f",
        "SELECT x.a, y.a, z.f FROM v z JOIN t x ON x.a = z.f LEFT JOIN u y ON x.b = y.d AND z.g",
        "SELECT * FROM t JOIN u USING (a)",
        "SELECT a, COUNT(*) FROM t RIGHT JOIN u USING (a) GROUP BY a",
        "SELECT x.a FROM t x, u y, v z WHERE x.a = z.f AND y.e = z.c",
    ],
)
def test_join_shapes(query: str) -> None:
    tables: Tables = {
        "t": [(0, 1.0, "a"), (1, None, "ab"), (None, 2.5, "a"), (2, 0.0, None)],
        "u": [(0, 1.0, "a"), (0, 2.5, ""), (None, 1.0, "ab"), (-1, 0.0, None)],
        "v": [(0, "a", True), (1, "ab", False), (None, "a", None), (2, None, True)],
    }
    answer = ours(query, tables)
    assert answer == theirs(query, tables)
    assert sum(answer.values()) > 0 or "RIGHT" in query
    assert all(not isinstance(v, float) or math.isfinite(v) for row in answer for v in row)
