"""Predicates, their canonical forms and their clauses pass the rows that DuckDB lets through.

DuckDB reads a text of its own, shares no code with us, and agrees on values that fit: small
integers and finite numbers. Times are integers to it. What it does otherwise is left out: LEAST
skips NULL, a quotient of integers is a DOUBLE.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import duckdb
import pytest

from federated_optimizer.canonical.canonical_expressions import canonical
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Call, Column, Expression, Literal, walk
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType, Row
from tests.federated_optimizer.canonical.conditions.test_truth_conditions import passes
from tests.federated_optimizer.canonical.random_predicates import (
    TYPES,
    RandomPredicates,
    random_row,
)

_SMALL = 1_000
_LEFT_OUT = frozenset({"/", "LEAST", "ABS"})
_TYPES = {
    DataType.DOUBLE: "DOUBLE",
    DataType.TEXT: "VARCHAR",
    DataType.BOOLEAN: "BOOLEAN",
}
_INFIX = frozenset({"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "AND", "OR", "LIKE", "||"})


def text_of(expression: Expression) -> str:
    """Return an expression in DuckDB's words."""
    match expression:
        case Column(position=position):
            return f"c{position}"
        case Literal(value=None, dtype=dtype):
            return f"CAST(NULL AS {_TYPES.get(dtype, 'BIGINT')})"
        case Literal(value=str(text)):
            return "'" + text.replace("'", "''") + "'"
        case Literal(value=value, dtype=dtype):
            return f"CAST({value!r} AS {_TYPES.get(dtype, 'BIGINT')})"
        case Call(function=name, arguments=arguments):
            return called(name, [text_of(each) for each in arguments])


def called(name: str, parts: list[str]) -> str:
    if name in _INFIX:
        return "(" + f" {name} ".join(parts) + ")"
    match name:
        case "NOT":
            return f"(NOT {parts[0]})"
        case "NEGATE":
            return f"(- {parts[0]})"
        case "IS NULL" | "IS NOT NULL":
            return f"({parts[0]} {name})"
        case "IN":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case "LIKE ESCAPE":
            return f"({parts[0]} LIKE {parts[1]} ESCAPE {parts[2]})"
        case "CASE":
            pairs = zip(parts[:-1:2], parts[1::2], strict=True)
            branches = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
            return f"(CASE {branches} ELSE {parts[-1]} END)"
        case "STARTS_WITH" | "COALESCE" | "LOWER" | "UPPER":
            return f"{name}({', '.join(parts)})"
        case _:
            raise AssertionError(name)


def is_known(predicate: Expression) -> bool:
    """Whether DuckDB has all functions and constants of a predicate."""
    return not any(
        (isinstance(node, Call) and node.function in _LEFT_OUT)
        or (isinstance(node, Literal) and type(node.value) is int and abs(node.value) > _SMALL)
        for node in walk(predicate)
    )


def small_rows(random: Random, count: int) -> list[Row]:
    """Return rows whose values every engine has."""
    rows: list[Row] = []
    while len(rows) < count:
        row = random_row(random, tame=True)
        if all(type(value) is not int or abs(value) <= _SMALL for value in row):
            rows.append(row)
    return rows


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute("SET threads = 1")
        yield opened


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_that_pass(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    random = Random(seed)
    rows = small_rows(random, 120)
    columns = ", ".join(f"c{n} {_TYPES.get(dtype, 'BIGINT')}" for n, dtype in enumerate(TYPES))
    connection.execute(f"CREATE TABLE r (n BIGINT, {columns})")
    places = ", ".join("?" for _ in range(len(TYPES) + 1))
    connection.executemany(
        f"INSERT INTO r VALUES ({places})", [[number, *row] for number, row in enumerate(rows)]
    )
    author, compared, mixed = RandomPredicates(random), 0, 0
    while compared < 150:
        predicate = author.predicate(2)
        if not is_known(predicate):
            continue
        found: list[Any] = connection.execute(
            f"SELECT n FROM r WHERE {text_of(predicate)} ORDER BY n"
        ).fetchall()
        expected = [number for (number,) in found]
        written, made = compile_expression(predicate), compile_expression(canonical(predicate))
        clauses = PredicateSet.of([predicate]).clauses
        numbered = list(enumerate(rows))
        assert [n for n, row in numbered if written(row) is True] == expected, predicate
        assert [n for n, row in numbered if made(row) is True] == expected, predicate
        assert [n for n, row in numbered if passes(clauses, row)] == expected, predicate
        compared += 1
        mixed += 0 < len(expected) < len(rows)
    assert mixed > 80
