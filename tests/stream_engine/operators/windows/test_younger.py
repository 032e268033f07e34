"""Rows of a site come and go with the bounds that this site tells."""

import random

import pytest

from stream_engine.operators.windows.younger import BOUNDS, ROWS, YoungerOperator
from streamsql.algebra.operators import BOUNDS_COLUMNS, RemoteSource, WindowKind, Younger
from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import InternalError

SENT = RemoteSource("f1", Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP)))
TOLD = RemoteSource("f2", BOUNDS_COLUMNS)
PLAN = Younger(SENT, TOLD, 1, WindowKind.RANGE, 10)


def test_a_row_leaves_with_the_bounds_of_its_own_site() -> None:
    younger = YoungerOperator(PLAN)
    younger.apply(BOUNDS, {(0, None, "g1"): 1, (0, None, "g2"): 1})
    assert younger.apply(ROWS, {("a", 5, "g1"): 1, ("b", 5, "g2"): 1}) == {
        ("a", 5): 1,
        ("b", 5): 1,
    }
    change: Delta = {(0, None, "g1"): -1, (5, None, "g1"): 1}
    assert younger.apply(BOUNDS, change) == {("a", 5): -1}


def test_rows_wait_for_the_bounds_of_their_site() -> None:
    younger = YoungerOperator(PLAN)
    assert younger.apply(ROWS, {("a", 5, "g1"): 1, ("b", 1, "g1"): 2}) == {}
    assert younger.apply(BOUNDS, {(3, None, "g1"): 1}) == {("a", 5): 1}
    assert younger.apply(BOUNDS, {(3, None, "g1"): -1}) == {("a", 5): -1}
    assert younger.state_rows() == 2


def test_equal_rows_of_two_sites_are_two() -> None:
    younger = YoungerOperator(PLAN)
    younger.apply(BOUNDS, {(0, None, "g1"): 1, (0, None, "g2"): 1})
    assert younger.apply(ROWS, {("a", 5, "g1"): 1, ("a", 5, "g2"): 1}) == {("a", 5): 2}
    change: Delta = {(0, None, "g2"): -1, (9, None, "g2"): 1}
    assert younger.apply(BOUNDS, change) == {("a", 5): -1}


def test_a_row_without_event_time_is_a_fault() -> None:
    with pytest.raises(InternalError):
        YoungerOperator(PLAN).apply(ROWS, {("a", None, "g1"): 1})


def test_nothing_is_left_when_all_is_taken_back() -> None:
    younger = YoungerOperator(PLAN)
    told: Delta = {(0, 9, "g1"): 1}
    rows: Delta = {("a", 5, "g1"): 2, ("b", 5, "g1"): 1, ("c", 30, "g1"): 1}
    total = dict(younger.apply(BOUNDS, told))
    accumulate(total, younger.apply(ROWS, rows))
    assert total == {("a", 5): 2, ("b", 5): 1}
    accumulate(total, younger.apply(BOUNDS, {row: -w for row, w in told.items()}))
    accumulate(total, younger.apply(ROWS, {row: -w for row, w in rows.items()}))
    assert total == {}
    assert younger.state_rows() == 0


def test_the_output_is_a_function_of_rows_and_bounds() -> None:
    """In any order of changes, bounds that go back and sites without any among them."""
    for seed in range(150):
        chance = random.Random(seed)
        younger = YoungerOperator(PLAN)
        rows: Delta = {}
        bounds: dict[str, Row] = {}
        total: Delta = {}
        for _ in range(40):
            site = chance.choice(("g1", "g2", "g3"))
            if chance.random() < 0.5:
                change: Delta = {}
                if site in bounds:
                    change[(*bounds.pop(site), site)] = -1
                if chance.random() < 0.8:
                    after = chance.randrange(20)
                    bounds[site] = (after, chance.choice((None, after, after + 4)))
                    add(change, (*bounds[site], site), 1)
                accumulate(total, younger.apply(BOUNDS, change))
            else:
                told = (chance.choice("ab"), chance.randrange(24), site)
                weight = -1 if rows.get(told) and chance.random() < 0.5 else 1
                add(rows, told, weight)
                accumulate(total, younger.apply(ROWS, {told: weight}))
            expected: Delta = {}
            for (k, ts, of), weight in rows.items():
                low_high = bounds.get(str(of))
                if low_high is None:
                    continue
                low, high = low_high
                assert isinstance(ts, int)
                assert isinstance(low, int)
                if low < ts and (high is None or ts <= int(high)):
                    add(expected, (k, ts), weight)
            assert total == expected
