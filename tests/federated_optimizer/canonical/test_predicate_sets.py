"""Sets of predicates: an implication holds for every row, and a residual is exact."""

from random import Random
from typing import Any

import pytest

from federated_optimizer.canonical.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar import compile_expression
from streamsql.data.types import Row
from tests.federated_optimizer.canonical.random_predicates import RandomPredicates, random_row
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE TABLE r (a INTEGER, b INTEGER, c INTEGER, d DOUBLE, e DOUBLE, s TEXT, u TEXT,"
    " t TIMESTAMP, v TIMESTAMP, w INTERVAL, p BOOLEAN)"
)


def predicates(text: str) -> list[Expression]:
    plan: Any = bound_query(f"SELECT a FROM r WHERE {text}", CATALOG).plan
    return [plan.input.predicate]


def predicate_set(text: str) -> PredicateSet:
    return PredicateSet.of(predicates(text) if text else [])


def passes(parts: list[Expression], row: Row) -> bool:
    return all(compile_expression(part)(row) is True for part in parts)


@pytest.mark.parametrize("seed", range(3))
def test_implications_hold_for_every_row(seed: int) -> None:
    random = Random(seed)
    author, found = RandomPredicates(random), 0
    for _ in range(1_500):
        parts = [author.literal(1) for _ in range(random.randrange(1, 4))]
        others = [author.literal(1) for _ in range(random.randrange(1, 3))]
        others = [random.choice((*parts, other)) for other in others]
        one, other = PredicateSet.of(parts), PredicateSet.of(others)
        if not one.implies(other):
            continue
        found += 1
        rest = list(one.residual(other))
        for _ in range(40):
            row = random_row(random)
            if passes(parts, row):
                assert passes(others, row), (parts, others, row)
            assert passes(others + rest, row) == passes(parts, row), (parts, others, rest, row)
    assert found > 100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 5 AND b > 3", "b > 3"),
        ("a > 5", "a > 3"),
        ("a = 5", "a BETWEEN 3 AND 7"),
        ("d = 1.5 AND a < b", "b > a AND d > 1.0"),
        ("a = b AND b = c", "a = c"),
        ("a = b AND b = 3", "a < 4"),
        ("s = u AND u LIKE 'a%'", "s LIKE 'a%'"),
        ("a > 3", ""),
    ],
)
def test_implied(one: str, other: str) -> None:
    assert predicate_set(one).implies(predicate_set(other))
    assert not predicate_set(other).implies(predicate_set(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a > 5", "a + 1 > 5"),  # NULL at 2^63 - 1
        ("a > 5", "a * 2 > 5"),
        ("b <= a + 10", "b <= a + 20"),
        ("d = 0.0", "CAST(d AS TEXT) = '0.0'"),  # minus zero
        ("a > 5", "b > 5"),
        ("a > 5", "d > 5"),
    ],
)
def test_not_implied(one: str, other: str) -> None:
    assert not predicate_set(one).implies(predicate_set(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a > 5 AND b = 3", "3 = b AND 5 < a"),
        ("a IN (1, 2) AND TRUE", "a IN (2, 1, 2)"),
        ("a >= 5", "a > 4"),
        ("NOT (a > 5 OR b = 3)", "b <> 3 AND a <= 5"),
    ],
)
def test_equal(one: str, other: str) -> None:
    first, second = predicate_set(one), predicate_set(other)
    assert first == second
    assert hash(first) == hash(second)
    assert first.residual(second) == ()


def test_residual_is_what_the_other_lacks() -> None:
    one = predicate_set("a = 5 AND b > 3 AND s LIKE 'a%'")
    assert one.residual(predicate_set("b > 2 AND s LIKE 'a%'")) == (one.sources[0], one.sources[1])
    assert one.residual(predicate_set("")) == one.sources
