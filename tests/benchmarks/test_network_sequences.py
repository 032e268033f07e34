"""Answers stay right while queries, rows and sites come and go; a wrong row would be found."""

import pytest

from benchmarks._sequences.network_sequence import Sequence, WrongRowsError, bound_templates
from benchmarks._sequences.overlapping_queries import TEMPLATES
from benchmarks._sequences.rows_of_sites import PlainTables
from benchmarks.network_sequences import compared, ways_of
from federated_optimizer.sharing.strategy import Materialize, Strategy
from streamsql.data.delta import Delta


@pytest.mark.parametrize("first", [0, 6, 12, 18])
def test_every_query_has_the_rows_of_each_oracle(first: int) -> None:
    counts = compared(first, 6, 30)
    assert counts.compared > 100
    assert counts.with_duckdb > 10
    assert counts.over_others > 0


def test_there_are_sixty_templates_that_differ() -> None:
    assert len({template.text for template in TEMPLATES}) >= 60


def test_all_strategies_have_their_turn_and_both_ways_of_making_nodes() -> None:
    ways = {ways_of(seed) for seed in range(36)}
    assert {strategy for strategy, _ in ways} == set(Strategy)
    assert {made for strategy, made in ways if strategy == Strategy.ALL} == set(Materialize)


def test_a_row_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = Sequence(1, bound_templates(), PlainTables(), Strategy.ALL, Materialize.EAGER)
    result = sequence.sites.result

    def without_one(query: str) -> Delta:
        rows = dict(result(query))
        if rows and not query.startswith("alone"):
            rows.popitem()
        return rows

    monkeypatch.setattr(sequence.sites, "result", without_one)
    with pytest.raises(WrongRowsError, match="from scratch"):
        sequence.run(60)
