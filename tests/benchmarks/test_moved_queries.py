"""Queries of the protocol's network move onto the node of their inside, and answers stay right."""

from collections.abc import Sequence

import pytest

from benchmarks._argus.arriving_rows import Sizes
from benchmarks._argus.configurations import CONFIGURATIONS, WANTED_TWICE
from benchmarks._argus.live_network import LiveNetwork, planning_over, source_of
from benchmarks._argus.moved_queries import Moves
from benchmarks._argus.query_sets import SETS
from streamsql.catalog.catalog import Catalog
from streamsql.wire.bundles.trimmed_bundles import is_trimmed

STREAM = SETS["med"].stream(Sizes(800, 20, 2), 3)
TEXTS = [asked.text for asked in SETS["med"].queries()]
FAR, NEAR = TEXTS[1], TEXTS[2]
"""Both group the same pairs of cases, and choose other groups."""
NEW, NEWER = (asked.text for asked in list(SETS["med"].queries())[:9:8])
"""Both are later cases EXCEPT those within some days: semi joins with other bounds."""


def sizes(texts: Sequence[str]) -> dict[str, float]:
    network = LiveNetwork(STREAM, WANTED_TWICE)
    network.register(texts)
    for number in range(2):
        network.update(number)
    assert network.unlike_duckdb() == []
    return network.figures()


def test_the_older_query_reads_the_node_that_was_made_of_its_inside() -> None:
    catalog = Catalog()
    catalog.define(source_of(STREAM))
    registry = CONFIGURATIONS[WANTED_TWICE](catalog, planning_over(STREAM), lambda _run: None)
    first = registry.register(FAR)
    second = registry.register(NEAR)
    assert set(second.moved) == {first.run}
    node, by_run = second.bundles[0].query, {bundle.query: bundle for bundle in second.bundles}
    for run in (second.run, second.moved[first.run]):
        assert by_run[run].results_read == {node}
    assert second.ended == (first.run,)


def test_queries_that_ask_for_partners_read_one_join(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog()
    catalog.define(source_of(STREAM))
    registry = CONFIGURATIONS[WANTED_TWICE](catalog, planning_over(STREAM), lambda _run: None)
    looked: list[str] = []
    better = Moves._better

    def noted(self: Moves, run: str) -> object:
        looked.append(run)
        return better(self, run)

    monkeypatch.setattr(Moves, "_better", noted)
    first = registry.register(NEW)
    second = registry.register(NEWER)
    assert first.run in looked
    assert second.run not in looked, "it has just been planned"
    node, by_run = second.bundles[0].query, {bundle.query: bundle for bundle in second.bundles}
    for run in (second.run, second.moved[first.run]):
        assert by_run[run].results_read == {node}
    assert second.ended == (first.run,)


def test_the_network_is_smaller_with_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = sizes(TEXTS[:24])
    monkeypatch.setattr(Moves, "after", lambda _self, _nodes, _made_for: iter(()))
    assert moved["weighted"] < sizes(TEXTS[:24])["weighted"]


def test_a_run_whose_rows_others_read_is_trimmed() -> None:
    network = LiveNetwork(STREAM, WANTED_TWICE)
    network.register(TEXTS[:24])
    assert any(map(is_trimmed, network._bundles.values()))
    network.update(0)
    assert network.unlike_duckdb() == []
