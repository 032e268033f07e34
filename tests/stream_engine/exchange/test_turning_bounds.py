"""Comparisons with a constant inside are found where they turn, however numbers are rounded."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from stream_engine.exchange import turning_bounds
from stream_engine.exchange.turning_bounds import TurningBounds
from streamsql.algebra.expressions import Expression, columns_of, conjuncts
from streamsql.algebra.operators import Filter, walk_plan
from streamsql.algebra.scalar_functions.scalar import compile_expression, compile_opened
from streamsql.binder import bind_query
from streamsql.data.types import Row
from streamsql.syntax import Query, parse_statement
from streamsql.wire.bundles.reader_conditions import Turning, predicate_of, term_of
from streamsql.wire.bundles.turning_constants import turning
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE s (k INTEGER, j INTEGER, a DOUBLE, b DOUBLE, t TIMESTAMP, u TIMESTAMP, KEY (k))"
)
SHAPES = (
    "k > j + {}",
    "k - {} >= j",
    "j < k - {}",
    "k = j + {}",
    "k + j = {} - k",
    "a > b + {}",
    "a <= b - {}",
    "a = b + {}",
    "a + {} > b + k",
    "a > {} - b",
    "a > -(b - {})",
    "a >= {} * b",
    "a < b * {} + k",
    "a = {} * b",
    "k = {} * j",
    "k + 2 > j + {}",
    "a > b + 0.1 - {}",
)
WHOLE = (-(2**63), -(2**62), -9, -1, 0, 1, 2, 7, 2**53, 2**62, 2**63 - 1, None)
REAL = (-1e308, -7.5, -0.3, -0.0, 0.0, 0.1, 0.2, 0.3, 0.7, 2.0**53, 1e16, 1e308, None)


def comparison(text: str) -> Expression:
    """Return the comparison of a WHERE clause over the source `s`."""
    statement = parse_statement(f"SELECT k FROM s WHERE {text}")
    assert isinstance(statement, Query)
    plan = bind_query(statement, CATALOG).plan
    (found,) = (node for node in walk_plan(plan) if isinstance(node, Filter))
    (predicate,) = conjuncts(found.predicate)
    return predicate


def constants(rng: random.Random, *, whole: bool) -> Iterator[str]:
    near = [rng.choice(WHOLE[1:-1] if whole else REAL[:-1]) or 1 for _ in range(3)]
    for _ in range(rng.randrange(2, 30)):
        few = rng.randrange(-4, 5) if whole else 0.0 + round(rng.uniform(-2, 2), rng.randrange(3))
        yield repr(few if rng.random() < 0.9 else rng.choice(near))


def tried(shape: str, whole: bool, seed: int) -> tuple[TurningBounds[str], dict[str, Expression]]:
    rng = random.Random(seed)
    texts = {shape.format(f"({c})" if c[0] == "-" else c) for c in constants(rng, whole=whole)}
    bounds: TurningBounds[str] | None = None
    kept: dict[str, Expression] = {}
    terms = set()
    for text in sorted(texts):
        found = turning(comparison(text))
        if found is None:
            continue  # a factor of 0
        terms.add(found.term)
        bounds = bounds or TurningBounds(found)
        bounds.add(found.constant, text)
        kept[text] = comparison(text)
    assert bounds is not None
    assert len(terms) == 1
    return bounds, kept


@pytest.mark.parametrize("shape", SHAPES)
def test_found_are_the_comparisons_that_are_true(shape: str) -> None:
    rng, exact = random.Random(shape), 0
    for seed in range(20):
        whole = shape[0] in "kj"
        bounds, kept = tried(shape, whole, seed)
        evaluate = {text: compile_expression(each) for text, each in kept.items()}
        read = columns_of(next(iter(kept.values())))
        for _ in range(40):
            row = (
                *(rng.choice((*WHOLE, *range(-9, 9))) for _ in range(2)),
                *(rng.choice((*REAL, rng.uniform(-2, 2))) for _ in range(2)),
                *(0, 0),
            )
            values = {text: value(row) for text, value in evaluate.items()}
            true = {text for text, value in values.items() if value}
            found = {text for texts, _rows in bounds.found({row: 1}, ()) for text in texts}
            assert true <= found
            if None not in values.values() or any(row[column] is None for column in read):
                exact += 1
                assert found == true, row
    assert exact > 400


@pytest.mark.parametrize(
    "text",
    [
        "k > j",  # no constant
        "k > 3",  # one by itself is found by the value of the other side
        "a > b / 3.0",
        "a > 0.0 * b",
        "a > k % 3",
        "k > ABS(j + 3)",
        "a > b * (j + 3)",
        "k + 3 <> j",
    ],
)
def test_others_do_not_turn(text: str) -> None:
    found = turning(comparison(text))
    assert found is None or text == "k > 3"


def test_a_time_after_another_one() -> None:
    bounds: TurningBounds[int] | None = None
    for minutes in range(10):
        found = turning(comparison(f"t > u + INTERVAL '{minutes}' MINUTES"))
        assert found is not None
        bounds = bounds or TurningBounds(found)
        bounds.add(found.constant, minutes)
    assert bounds is not None
    row = (0, 0, 0.0, 0.0, 5 * 60_000_001, 0)
    ((found_minutes, rows),) = bounds.found({row: -2}, ())
    assert list(found_minutes) == [0, 1, 2, 3, 4, 5]
    assert rows == {row: -2}


def test_few_constants_are_tried_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Any] = []

    def counted(expression: Expression, place: int) -> Any:
        test = compile_opened(expression, place)

        def noted(row: Row, value: Any) -> Any:
            tries.append(value)
            return test(row, value)

        return noted

    monkeypatch.setattr(turning_bounds, "compile_opened", counted)
    first = turning(comparison("k > j + 0"))
    assert first is not None
    bounds: TurningBounds[int] = TurningBounds(first)
    for number in range(10_000):
        bounds.add(number, number)
    row: Row = (500, 100, None, None, None, None)
    ((holders, _rows),) = bounds.found({row: 1}, ())
    assert list(holders) == list(range(400))
    assert len(tries) <= 2 + 14
    for number in range(10_000):
        if number % 3:
            bounds.remove(number, number)
    ((holders, _rows),) = bounds.found({row: 1}, ())
    assert list(holders) == list(range(0, 400, 3))


def test_rows_of_the_same_comparisons_come_together_and_failing_ones_go_to_all() -> None:
    bounds: TurningBounds[int] | None = None
    for number in range(5):
        found = turning(comparison(f"a > b + {number}.5"))
        assert isinstance(found, Turning)
        bounds = bounds or TurningBounds(found)
        bounds.add(found.constant, number)
    assert bounds is not None

    def row(a: Any, b: Any) -> Row:
        return (1, 1, a, b, 0, 0)

    delta = {row(3.0, 0.0): 1, row(4.0, 1.2): 2, row(0.0, 0.0): 1, row("x", 0.0): 1}
    parts = {tuple(holders): rows for holders, rows in bounds.found(delta, (TypeError,))}
    assert parts == {
        (0, 1, 2): {row(3.0, 0.0): 1, row(4.0, 1.2): 2},
        (0, 1, 2, 3, 4): {row("x", 0.0): 1},
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_a_predicate_has_its_constant_again(shape: str) -> None:
    predicate = comparison(shape.format(3 if shape[0] in "kj" else 3.5))
    found = turning(predicate)
    assert found is not None
    assert predicate_of(found) == term_of(predicate).expression
