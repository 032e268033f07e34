"""Figures of columns, beside DuckDB's of the same rows."""

import random
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from static_engine.sources.values.conversion import arrow_schema
from static_engine.tables.column_figures import BARS, figures_of
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SCHEMA = Schema.of(
    ("n", DataType.INTEGER),
    ("x", DataType.DOUBLE),
    ("t", DataType.TEXT),
    ("b", DataType.BOOLEAN),
    ("at", DataType.TIMESTAMP),
)


def table_of(*columns: Sequence[object]) -> pa.Table:
    return pa.table(dict(zip(arrow_schema(SCHEMA).names, columns, strict=True))).cast(
        arrow_schema(SCHEMA)
    )


def answer(text: str, rows: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("t", rows)
        return connection.execute(text).fetchall()


@pytest.mark.parametrize("seed", range(6))
def test_figures_are_those_of_another_engine(seed: int) -> None:
    choice = random.Random(seed)
    count = choice.choice([1, 20, 3_000])
    rows = table_of(
        [choice.choice([None, *range(-40, 40)]) for _ in range(count)],
        [choice.choice([None, choice.gauss(0, 1e3)]) for _ in range(count)],
        [choice.choice([None, *"abcdefghijklmnopqrstuvwxyzABCDEFGH"]) for _ in range(count)],
        [choice.choice([None, True, False]) for _ in range(count)],
        [choice.choice([None, choice.randrange(10**15)]) for _ in range(count)],
    )
    for figures, name in zip(figures_of(SCHEMA.fields, rows), rows.column_names, strict=True):
        ((least, greatest, distinct, there),) = answer(
            f"SELECT MIN({name}), MAX({name}), COUNT(DISTINCT {name}), COUNT({name}) FROM t", rows
        )
        assert figures.distinct == distinct
        assert figures.nulls == count - there
        assert sum(figures.counts) + figures.others == there
        assert len(figures.labels) == len(figures.counts) <= min(distinct, BARS)
        if name in {"c0", "c1"} and there:
            assert [float(figures.least), float(figures.greatest)] == [least, greatest]
        if name == "c2":
            counted = answer(
                "SELECT c2, COUNT(*) FROM t WHERE c2 IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1",
                rows,
            )
            assert list(zip(figures.labels, figures.counts, strict=True)) == counted[:BARS]


def test_intervals_have_the_values_that_lie_in_them() -> None:
    numbers = [float(number) for number in range(240)]
    rows = table_of([0] * 240, numbers, [""] * 240, [True] * 240, [0] * 240)
    figures = figures_of(SCHEMA.fields, rows)[1]
    assert figures.labels[0] == "0.0 to 9.95833"
    assert figures.labels[-1] == "229.042 to 239.0"
    assert figures.counts == (10,) * BARS


def test_extremes_have_a_plot_all_the_same() -> None:
    large = [*([1.7e308, -1.7e308] * 15), *map(float, range(30))]
    numbers = [2**63 - 1, -(2**63), *range(58)]
    moments = [10**17 * (n % 3 - 1) + n for n in range(60)]
    rows = table_of(numbers, large, ["x" * 9_999] * 60, [None] * 60, moments)
    whole, double, text, truth, time = figures_of(SCHEMA.fields, rows)
    assert sum(whole.counts) == 60
    assert (whole.least, whole.greatest) == (str(-(2**63)), str(2**63 - 1))
    assert (sum(double.counts), double.others) == (60, 0)
    assert double.greatest == "1.7e+308"
    assert text.labels == ("x" * 120 + "…",)
    assert (truth.nulls, truth.labels, truth.distinct) == (60, (), 0)
    assert sum(time.counts) == 60


@pytest.mark.parametrize("least", [0, 2**60, 1_541_815_603_606_036_480, -(2**63), 2**63 - 60])
def test_numbers_that_doubles_do_not_tell_apart_have_bars(least: int) -> None:
    numbers = [least + n for n in range(60)]
    rows = table_of(numbers, [5e-324 * n for n in range(60)], [""] * 60, [True] * 60, [0] * 60)
    whole, tiny = figures_of(SCHEMA.fields, rows)[:2]
    assert whole.counts == (3,) * 20
    assert whole.labels[0] == f"{least} to {least + 3}"
    assert whole.labels[-1] == f"{least + 57} to {least + 59}"
    assert sum(tiny.counts) == 60
