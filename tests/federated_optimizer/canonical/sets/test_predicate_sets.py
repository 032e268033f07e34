"""Sets of predicates: an implication holds for every row, and a residual is exact."""

from random import Random
from typing import Any

import pytest

from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar_functions.scalar import compile_expression
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
        ("a = 2", "a IN (1, 2, 3)"),
        ("a IN (1, 2)", "a IN (3, 2, 1)"),
        ("a IN (1, 3)", "a BETWEEN 1 AND 3"),
        ("a BETWEEN 1 AND 3", "a IN (0, 1, 2, 3)"),
        ("a = 1 OR a = 2", "a < 5"),
        ("a > 2 AND a < 3.5", "a = 3 OR b = 1"),
        ("a = 1 OR (a = 2 AND b = 3)", "a IN (1, 2)"),
        ("a = 1 AND b = 2 OR a = 2 AND b = 3", "a IN (1, 2) AND b BETWEEN 2 AND 3"),
        ("s LIKE 'abc%'", "s LIKE 'ab%'"),
        ("s LIKE 'abc%'", "s >= 'abc' AND s < 'abd' OR b = 1"),
        ("s = 'abc1'", "s LIKE 'abc%'"),
        ("s = 'abc1'", "s LIKE '%c_'"),
        ("s IN ('abc', 'abd')", "s LIKE 'ab%'"),
        ("s LIKE 'a%bc%d'", "s LIKE 'a%'"),
        ("s LIKE 'a%bc%d'", "s LIKE '%b%'"),
        ("s LIKE 'abc%'", "s LIKE '%b%'"),
        ("STARTS_WITH(s, 'abc')", "s LIKE 'ab%'"),
        ("s LIKE 'ab%'", "s IS NOT NULL"),
        ("a + b > 3", "a IS NOT NULL AND b IS NOT NULL"),
        ("UPPER(s) = 'A'", "s IS NOT NULL"),
        ("a IS NULL", "a IS NULL OR a > 5"),
        ("a = 5", "a IS NOT DISTINCT FROM 5 OR b = 3"),
        ("a = b AND b > 3", "a >= 4"),
        ("a = b AND b = c AND c IN (1, 2)", "a < 3"),
        ("a < b AND b < c", "a < c"),
        ("a < b AND b < c AND c - a < 9", "a - c <= -2"),
        ("a - b <= 10", "a - b < 20"),
        ("2 * a < 7", "a <= 3"),
        ("a > 5 AND b <= 0", "a > b"),
        ("a = 7", "a % 2 = 1"),
        ("a = b AND a % 3 = 1", "b % 3 = 1"),
        ("s = u AND s LIKE '%x'", "u LIKE '%x'"),
        ("d > 10 AND e > 0.5 * d", "e > 4"),
        ("d < e AND e < 1.5", "d < 2"),
        ("d = 0.0", "CAST(d AS TEXT) = '0.0'"),  # of a zero of either sign
        ("a <= d AND d <= 2.5", "a <= 2"),
        ("distance(d, e, 1, 2) < 5", "distance(d, e, 1, 2) < 10"),
        ("distance(d, e, 1, 2) < 5", "distance(1, 2, d, e) <= 5 AND d IS NOT NULL"),
        ("distance(s, '1, 2') < 5", "distance(s, '1, 2') < 10"),
        ("p", "p IS NOT NULL"),
        ("p AND NOT (a > 3)", "p = TRUE"),
        ("t = v AND v < TIMESTAMP '2026-01-01'", "t < TIMESTAMP '2026-01-02'"),
        ("t - v <= INTERVAL '10 s'", "t - v <= INTERVAL '20 s'"),
        ("a > 3 AND a < 3", "b = 7"),
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
        ("a < b AND b < c", "a - c <= -2"),  # the difference may not fit
        ("b <= a + 10", "b <= a + 20"),
        ("a > 5", "b > 5"),
        ("a > 5", "d > 5"),
        ("s LIKE 'ab%'", "s LIKE 'abc%'"),
        ("s LIKE '%a%b%'", "s LIKE '%ab%'"),
        ("s LIKE 'a_%'", "s LIKE 'ab%'"),
        ("d < 1 OR d >= 1", "e IS NOT NULL"),
        ("a IS NOT NULL AND b IS NOT NULL", "a - b <= 10 OR a - b > 10"),  # may not fit
        ("NOT (d < 1)", "d >= 1"),  # NaN
        ("NOT (a = 3)", "a IS NULL OR a = 3"),
        ("a = 9007199254740993", "d = a"),
        ("d = a AND a >= 9007199254740993", "d > 9007199254740992"),  # compared as DOUBLE
        ("d = e AND CAST(d AS TEXT) = '0.0'", "CAST(e AS TEXT) = '0.0'"),
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
        ("a > 2 AND a < 4", "a = 3"),
        ("a = 1 OR a = 3 OR a = 2", "a BETWEEN 1 AND 3"),
        ("a = b AND b = 5", "a = 5 AND b = 5"),
        ("a = b AND b = c", "c = a AND a = b"),
        ("a < b AND b < c", "c > b AND b > a AND a < c"),
        ("s LIKE '%ab%' AND s LIKE '%abc%'", "s LIKE '%abc%'"),
        ("s >= 'ab' AND s < 'ac'", "s LIKE 'ab%'"),
        ("a > 3 OR a IS NULL", "NOT COALESCE(a <= 3, FALSE)"),
        ("a = 1 OR (a = 2 AND b = 3)", "(a = 1 OR b = 3) AND a IN (2, 1)"),
        ("p", "p = TRUE AND p <> FALSE"),
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


def test_years_of_events_keep_sums_within_64_bits() -> None:
    """With limits of both times the greater sum is never NULL."""
    years = predicates(
        "t >= TIMESTAMP '0001-01-01' AND t < TIMESTAMP '9999-12-31'"
        " AND v >= TIMESTAMP '0001-01-01' AND v < TIMESTAMP '9999-12-31'"
    )
    ten = predicates("v <= t + INTERVAL '10 s'")
    twenty = predicates("v <= t + INTERVAL '20 s'")
    moved = predicates("t >= v - INTERVAL '10 s'")
    assert not PredicateSet.of(ten).implies(PredicateSet.of(twenty))
    first, second = PredicateSet.of(ten, years), PredicateSet.of(twenty, years)
    assert first.implies(second)
    assert not second.implies(first)
    assert first.residual(second) == (ten[0],)
    assert first == PredicateSet.of(moved, years)


def test_a_filter_of_an_integer_sum_is_what_fits() -> None:
    """With a limit of its own a sum of integers is never NULL."""
    one, other = predicate_set("b <= a + 10 AND a < 1000"), predicate_set("b <= a + 20")
    assert one.implies(other)
    assert not predicate_set("b <= a + 10").implies(other)


TRANSFERS = catalog_of(
    "CREATE TABLE f ("
    + ", ".join(
        f"{n}_kind INTEGER, {n}_amount DOUBLE, {n}_bank TEXT, {n}_account TEXT, {n}_day INTEGER"
        for n in "abc"
    )
    + ")"
)


def transfers(text: str) -> PredicateSet:
    plan: Any = bound_query(f"SELECT a_day FROM f WHERE {text}", TRANSFERS).plan
    return PredicateSet.of([plan.input.predicate])


def test_the_queries_of_the_thesis() -> None:
    """Sums that travel on within 20 days, and within 10: just the two bounds remain."""
    common = (
        "a_kind = 1000 AND b_kind = 1000 AND c_kind = 1000 AND a_amount > 1000000"
        " AND a_bank = b_bank AND a_account = b_account AND b_amount > 0.5 * a_amount"
        " AND b_bank = c_bank AND b_account = c_account AND b_amount = c_amount"
        " AND a_day <= b_day AND b_day <= c_day"
    )
    twenty = transfers(f"{common} AND b_day - a_day <= 20 AND c_day - b_day <= 20")
    ten = transfers(f"{common} AND b_day - a_day <= 10 AND c_day - b_day <= 10")
    assert ten.implies(twenty)
    assert not twenty.implies(ten)
    assert ten.residual(twenty) == ten.sources[-2:]
    follows = "b_amount > 400000 AND c_amount >= 500000 AND a_bank = c_bank AND c_day >= a_day"
    assert twenty.implies(transfers(follows))
    assert twenty.implies(transfers("c_day - a_day <= 40"))
    assert not twenty.implies(transfers("c_day - a_day <= 39"))


def test_a_predicate_of_very_many_parts_is_compared_as_it_is_written() -> None:
    """It is not read: a list of 30,000 constants took a second."""
    numbers = range(0, 4_000, 2)
    listed = "a IN (" + ", ".join(map(str, numbers)) + ")"
    turned = "a IN (" + ", ".join(map(str, reversed(numbers))) + ")"
    assert predicate_set(listed) == predicate_set(listed)
    assert predicate_set(listed) != predicate_set(turned)
    assert predicate_set(f"{listed} AND b = 3").implies(predicate_set(f"b > 2 AND {listed}"))
    assert not predicate_set(listed).implies(predicate_set("a >= 0"))


def test_zeros_of_a_predicate_of_very_many_parts_differ() -> None:
    """0.0 equals -0.0, but a quotient by them does not."""
    numbers = ", ".join(map(str, range(1_200)))
    one, other = (f"e IN ({numbers}) AND d / {zero} > 1.0 OR p" for zero in ("0.0", "-0.0"))
    assert predicate_set(one) == predicate_set(one)
    assert predicate_set(one) != predicate_set(other)
    assert not predicate_set(one).implies(predicate_set(other))


def test_very_many_disjunctions_imply_themselves() -> None:
    """Only some of them are looked at case by case."""
    parts = predicates("a <> 0 OR b < 0 OR d < 0.0")
    for n in range(1, 100):
        parts += predicates(f"a <> {n} OR b < {n} OR d < {n}.0")
    many = PredicateSet.of(parts)
    assert many.implies(PredicateSet.of(parts))
    assert many == PredicateSet.of(parts)
    more = PredicateSet.of([*parts, *predicates("a = 99 AND b > 200")])
    assert more.implies(predicate_set("d < 99.0"))


@pytest.mark.parametrize(
    ("text", "minimal"),
    [
        ("a < b AND b < c AND a < c", "a < b AND b < c"),  # c is nowhere else
        ("a = b AND s = 'x' AND u = s", "b = a AND u = s AND u = 'x'"),
        ("(a > 3 OR a IS NULL) AND a < b", "a < b AND a > 3"),
    ],
)
def test_sets_of_one_meaning_have_the_same_conditions(text: str, minimal: str) -> None:
    assert predicate_set(text) == predicate_set(minimal)
    assert len(predicate_set(text).clauses) <= len(predicate_set(minimal).clauses)
