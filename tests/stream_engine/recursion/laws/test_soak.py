"""Recursion with expiring rows keeps no more than what is alive needs; in full it is a benchmark.

Everything that could grow is bounded by live rows: entries, indexes, mentions, tombstones, tokens.
"""

import random
from collections import deque

import pytest

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import doubling, reachable
from stream_engine.testing.recursion_sizes import sizes_of
from streamsql.algebra.choices import Annotations, Shipping, Strategy
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta
from streamsql.data.types import Row

ALIVE = 40
ROOMS, NODES = 10, 4


class Lives:
    """A fixed number of links alive; each new one expires the oldest."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.alive: deque[Row] = deque()

    def step(self) -> Delta:
        while True:
            room = self.random.randrange(ROOMS)
            source, target = self.random.sample(range(NODES), 2)
            row: Row = (f"r{room}n{source}", f"r{room}n{target}", 1)
            if row not in self.alive:
                break
        self.alive.append(row)
        change: Delta = {row: 1}
        if len(self.alive) > ALIVE:
            change[self.alive.popleft()] = -1
        return change


def reached(links: deque[Row]) -> set[Row]:
    pairs = {(source, target) for source, target, _ in links}
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return {(a, b) for a, b in pairs}
        pairs |= more


def check(state: dict[str, int], sites: int = 1) -> None:
    """Assert bounds that follow from the links alive and the rows they can support."""
    rows = ROOMS * NODES * NODES
    tables = 1 if sites == 1 else 3 * sites
    assert state["leaf rows"] <= 2 * sites * ALIVE
    assert state["entries"] <= tables * rows
    assert state["alternatives"] <= tables * rows * sites
    assert state["index entries"] <= 3 * (state["leaf rows"] + 3 * state["entries"]) + 4 * ALIVE
    assert state["mentions"] <= sites * 2 * 25_000
    assert state["unswept tokens"] <= sites * 2 * 600
    assert state["tombstone intervals"] <= sites * (ALIVE + 1)
    assert state["inbox"] == 0


@pytest.mark.parametrize(
    ("options", "updates"),
    [
        (RecursionOptions(shipping=Shipping.WITNESS), 20_000),
        (RecursionOptions(shipping=Shipping.LAZY), 4_000),
        (RecursionOptions(shipping=Shipping.EAGER, width=4), 2_000),
        (RecursionOptions(shipping=Shipping.LAZY, annotations=Annotations.BDD), 1_500),
    ],
    ids=lambda value: f"{value.shipping}-{value.annotations}" if hasattr(value, "way") else "",
)
def test_alone(options: RecursionOptions, updates: int) -> None:
    operator = FixpointOperator(reachable(), site="s", sites=("s",), epoch=1, options=options)
    lives = Lives(1)
    for number in range(updates):
        operator.apply(0, lives.step())
        operator.settle()
        if number % 500 == 499:
            check(sizes_of(operator))
    assert set(operator.state_rows()) == reached(lives.alive)
    partition = operator._partition
    partition.sweep()
    partition.view._rebuild_holders()
    live_tokens = set(operator._leaf_rows.arrived[0].by_token)
    assert len(live_tokens) == ALIVE
    assert partition.view.tokens() <= live_tokens


@pytest.mark.parametrize("node", [reachable(), doubling()], ids=lambda node: node.name)
def test_over_sites(node: Fixpoint) -> None:
    sites = ("s0", "s1", "s2")
    ensemble = Ensemble(node, sites, RecursionOptions(strategy=Strategy.ABSORPTION), seed=2)
    lives = Lives(2)
    for number in range(1_500):
        for row, weight in lives.step().items():
            site = sites[sum(map(ord, str(row[0]))) % 3]
            ensemble.apply(site, 0, {row: weight})
            ensemble.step(site)
        ensemble.run()
        if number % 300 == 299:
            total: dict[str, int] = {}
            for operator in ensemble.operators.values():
                assert isinstance(operator, FixpointOperator)
                for what, size in sizes_of(operator).items():
                    total[what] = total.get(what, 0) + size
            check(total, sites=3)
    assert ensemble.rows() == reached(lives.alive)
    assert sum(map(len, ensemble.views.values())) == len(ensemble.rows())
