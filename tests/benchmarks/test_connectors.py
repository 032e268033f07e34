"""The benchmark of connectors compares the rows of a connector with those of the bare library."""

import pytest

from benchmarks._connectors.pair import SAMPLE, Cost, Pair, Row, Values


def cost(*rows: Row) -> Cost:
    """Return the cost of reading these rows."""
    return Cost(len(rows), 1.0, 0.1, rows)


def difference(values: Values, connector: Cost, bare: Cost) -> str:
    """Return how they differ."""

    async def nothing(_seconds: float) -> Cost:
        return cost()

    return Pair(nothing, nothing, values).difference(connector, bare)


ROWS: tuple[Row, ...] = tuple((f"d{n}", n / 8) for n in range(SAMPLE))


@pytest.mark.parametrize(
    ("connector", "bare", "words"),
    [
        (ROWS, ROWS, ""),
        (ROWS, ROWS[::-1], ""),
        (ROWS[:100], ROWS, ""),  # a slow one has read less
        ((*ROWS[:99], ("d99", 1.0)), ROWS, "only the connector has ('d99', 1.0)"),
        (ROWS, ROWS[1:] + ROWS[1:2], "only the connector has ('d0', 0.0)"),
        (ROWS[1:] + ROWS[1:2], ROWS, "only the bare library has ('d0', 0.0)"),
        ((), ROWS, "the connector has no rows"),
        (ROWS, (), "the bare library has no rows"),
    ],
)
def test_rows_that_repeat_are_the_same(
    connector: tuple[Row, ...], bare: tuple[Row, ...], words: str
) -> None:
    assert difference(Values.REPEAT, cost(*connector), cost(*bare)) == words


@pytest.mark.parametrize(
    ("connector", "words"),
    [
        ([("a", 1), ("b", 1), ("a", 4)], ""),
        ([("a", 2), ("b", 1), ("a", 1)], "a value of the connector falls: ('a', 1)"),
        ([("a", 1, 5)], "a row is ('a', 1, 5), beside ('a', 1)"),
        ([(1, 5), (2, 4)], "a value of the connector falls: (2, 4)"),
    ],
)
def test_values_that_rise_do_not_fall(connector: list[Row], words: str) -> None:
    assert difference(Values.RISE, cost(*connector), cost(("a", 1), ("a", 7))) == words
