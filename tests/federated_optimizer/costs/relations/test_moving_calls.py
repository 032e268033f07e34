"""The row of a group changes when one of its aggregates does, each at its own time or together."""

from random import Random

import pytest

from federated_optimizer.costs.relations.moving_calls import any_changes
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.data.types import DataType

F = AggregateFunction
MEMBERS = 20
N, M = Column(0, "n", DataType.INTEGER), Column(1, "m", DataType.INTEGER)


def call(function: AggregateFunction, *arguments: Column) -> AggregateCall:
    return AggregateCall(function, arguments, "v")


def counted(functions: list[AggregateFunction]) -> tuple[dict[AggregateCall, float], float]:
    """Return how often aggregates of a group change of which a random member is replaced."""
    chance, steps = Random(1), 20_000
    compute = {
        F.MIN: lambda rows: min(rows)[0],
        F.MAX: lambda rows: max(rows)[0],
        F.ARG_MAX: lambda rows: max(rows)[1],
        F.SUM: lambda rows: sum(n for n, _ in rows),
        F.COUNT: len,
    }
    arguments = {F.ARG_MAX: (M, N)}
    rows = [(chance.random(), chance.random()) for _ in range(MEMBERS)]
    changed = dict.fromkeys(functions, 0)
    together, before = 0, {f: compute[f](rows) for f in functions}
    for _ in range(steps):
        rows[chance.randrange(MEMBERS)] = chance.random(), chance.random()
        after = {f: compute[f](rows) for f in functions}
        for function in functions:
            changed[function] += after[function] != before[function]
        together += after != before
        before = after
    shares = {call(f, *arguments.get(f, (N,))): changed[f] / steps for f in functions}
    return shares, together / steps


@pytest.mark.parametrize(
    "functions", [[F.MIN, F.MAX], [F.MAX, F.ARG_MAX], [F.MIN, F.SUM], [F.MAX, F.COUNT], [F.MAX]]
)
def test_the_share_is_what_is_counted(functions: list[AggregateFunction]) -> None:
    shares, together = counted(functions)
    assert any_changes(shares) == pytest.approx(together, rel=0.05)


def test_extremes_of_other_columns_change_at_their_own_times() -> None:
    assert any_changes({call(F.MAX, N): 0.5, call(F.MAX, M): 0.5}) == 0.75
    assert any_changes({call(F.MAX, N): 0.5, call(F.BOOL_OR, N): 0.5}) == 0.5
    assert any_changes({}) == 0.0
