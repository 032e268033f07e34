"""Why there is no strategy "counting": counts of derivations fail on cycles.

A row's count is the number of ways to derive it in one step; a deletion takes away the derivations
through it, and a row goes when its count is zero (Gupta, Mumick, Subrahmanian 1993, for views
without recursion).
"""

from collections import Counter, deque

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import reachable
from stream_engine.testing.recursion_schedules import database
from streamsql.algebra.choices import Strategy
from streamsql.data.types import Row
from streamsql.reference import evaluate

Pair = tuple[str, str]


class Counting:
    """Connected pairs with the number of their derivations: a link, or a link and a pair."""

    def __init__(self) -> None:
        self.links: set[Pair] = set()
        self.counts: Counter[Pair] = Counter()

    def change(self, link: Pair, sign: int) -> None:
        source, target = link
        if sign > 0:
            self.links.add(link)
        else:
            self.links.remove(link)
        through = [(source, end) for start, end in self.counts if start == target]
        todo = deque([link, *through])
        while todo:
            pair = todo.popleft()
            self.counts[pair] += sign
            if self.counts[pair] == (1 if sign > 0 else 0):
                start, end = pair
                todo.extend((before, end) for before, middle in self.links if middle == start)
            if not self.counts[pair]:
                del self.counts[pair]


def connected(links: set[Pair]) -> set[Row]:
    rows: set[Row] = {(*link, 1) for link in links}
    return set(evaluate(reachable(), database({"link": rows}), 0))


def test_counts_are_right_without_cycles() -> None:
    counting = Counting()
    for link in (("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")):
        counting.change(link, 1)
        assert set(counting.counts) == connected(counting.links)
    for link in (("a", "c"), ("b", "c")):
        counting.change(link, -1)
        assert set(counting.counts) == connected(counting.links)


def test_rows_of_a_cycle_keep_each_other_alive() -> None:
    """(c, d) is counted for the link and for (b, d), which is counted for (c, d) alone."""
    counting = Counting()
    for link in (("b", "c"), ("c", "b"), ("c", "d")):
        counting.change(link, 1)
    assert set(counting.counts) == connected(counting.links)
    assert counting.counts["c", "d"] == 2
    counting.change(("c", "d"), -1)
    ghosts = {("b", "d"), ("c", "d")}
    assert set(counting.counts) - connected(counting.links) == ghosts


def test_other_strategies_leave_no_ghosts() -> None:
    for strategy in ("dred", "relative", "absorption"):
        ensemble = Ensemble(reachable(), ("one",), RecursionOptions(strategy=Strategy(strategy)))
        for link in (("b", "c"), ("c", "b"), ("c", "d")):
            ensemble.apply("one", 0, {(*link, 1): 1})
            ensemble.step("one")
        ensemble.apply("one", 0, {("c", "d", 1): -1})
        ensemble.step("one")
        assert ensemble.rows() == connected({("b", "c"), ("c", "b")})
