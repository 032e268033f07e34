"""Data that a kernel cannot take: another engine takes over, and the view stays right."""

import pytest

from stream_engine.recursion.strategies import recursive_operator
from stream_engine.testing.recursion_programs import cheapest_path, reachable
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import RecursionLimitError
from streamsql.reference import Database, evaluate

CHAIN: list[Row] = [("a", "b", 3), ("b", "c", 4), ("a", "c", 9), ("c", "d", 1)]


def expected(node: Fixpoint, links: set[Row]) -> Delta:
    database = Database()
    database.append("link", [SourceEvent(row, ts=0) for row in links])
    return evaluate(node, database, 0)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("b", "d", -2), "a weight is negative"),
        (("b", "d", 2**62), "near the end of the range"),
    ],
)
def test_another_engine_takes_over(row: Row, reason: str) -> None:
    node = cheapest_path()
    operator = recursive_operator(node, site="s", sites=("s",), epoch=1)
    view: Delta = {}
    links: set[Row] = set()

    def change(delta: Delta) -> None:
        operator.apply(0, delta)
        accumulate(view, operator.settle())
        links.update(row for row, weight in delta.items() if weight > 0)
        links.difference_update(row for row, weight in delta.items() if weight < 0)
        assert view == expected(node, links)
        assert set(operator.state_rows()) == set(view)

    change(dict.fromkeys(CHAIN, 1))
    assert operator.description == "kernel: cheapest (python)"
    change({row: 1, ("d", "e", 1): 1, ("a", "c", 9): -1})
    assert operator.description.startswith("ranked")
    assert reason in operator.description
    change({("a", "b", 3): -1})
    change({row: -1})
    assert operator.counters.settles == 4


def test_a_view_beyond_its_limit_stops() -> None:
    operator = recursive_operator(reachable(limit=5), site="s", sites=("s",), epoch=1)
    operator.apply(0, {(a, b, 1): 1 for a, b in zip("abcd", "bcda", strict=True)})
    with pytest.raises(RecursionLimitError, match="reachable has more than 5 rows"):
        operator.settle()
