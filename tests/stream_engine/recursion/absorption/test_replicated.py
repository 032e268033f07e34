"""Recursions whose base rows travel: at a centre, or flooded to all sites."""

import random

import pytest

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import cheapest_path, reachable
from streamsql.algebra.choices import Strategy, Way
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import RecursionLimitError
from streamsql.reference import Database, evaluate

SITES = ("s1", "s2", "s3")
WAYS = [RecursionOptions(strategy=Strategy.RECOMPUTE, way=Way(way)) for way in ("centre", "flood")]
NODES = "abcdef"


def expected(node: Fixpoint, links: set[Row]) -> set[Row]:
    database = Database()
    database.append("link", [SourceEvent(row, ts=0) for row in sorted(links)])
    return set(evaluate(node, database, 0))


def random_links(chooser: random.Random, count: int) -> list[Row]:
    return [
        (chooser.choice(NODES), chooser.choice(NODES), chooser.randint(1, 9)) for _ in range(count)
    ]


@pytest.mark.parametrize("options", WAYS, ids=lambda options: options.way)
@pytest.mark.parametrize("node", [reachable(), cheapest_path()], ids=lambda node: node.name)
@pytest.mark.parametrize("seed", range(8))
def test_any_interleaving_gives_the_answer_from_scratch(
    node: Fixpoint, options: RecursionOptions, seed: int
) -> None:
    chooser = random.Random(seed)
    ensemble = Ensemble(node, SITES, options, seed=seed)
    here: dict[str, set[Row]] = {site: set() for site in SITES}
    for _ in range(40):
        site = chooser.choice(SITES)
        changes: Delta = {}
        for row in random_links(chooser, 2):
            if row in here[site]:
                here[site].discard(row)
                changes[row] = -1
            elif row not in changes:
                here[site].add(row)
                changes[row] = 1
        ensemble.apply(site, 0, changes)
        ensemble.step(site)
        for _ in range(chooser.randint(0, 3)):
            ensemble.act()
    ensemble.run()
    links = set().union(*here.values())
    assert ensemble.rows() == expected(node, links)
    views: Delta = {}
    for view in ensemble.views.values():
        assert not views.keys() & view.keys(), "two sites show the same row"
        views.update(view)
    assert set(views) == expected(node, links)
    assert set(views.values()) <= {1}


@pytest.mark.parametrize("options", WAYS, ids=lambda options: options.way)
def test_a_lost_site_takes_its_rows_along_and_keeps_shared_ones(options: RecursionOptions) -> None:
    ensemble = Ensemble(reachable(), SITES, options)
    ensemble.apply("s1", 0, {("a", "b", 1): 1})
    ensemble.apply("s3", 0, {("a", "b", 1): 1, ("b", "c", 1): 1})
    for site in SITES:
        ensemble.step(site)
    ensemble.run()
    assert ensemble.rows() == {("a", "b"), ("b", "c"), ("a", "c")}
    survivors = ("s1", "s2")
    for site in survivors:
        ensemble.operators[site].kill_site("s3", 1)
        ensemble.step(site)
    ensemble.run()
    shown = {row for site in survivors for row in ensemble.operators[site].state_rows()}
    assert shown <= {("a", "b")}
    assert set(ensemble.views["s1"]) | set(ensemble.views["s2"]) == shown
    if options.way == "centre":
        assert shown == {("a", "b")}


def test_a_late_row_of_a_dead_token_changes_nothing() -> None:
    ensemble = Ensemble(reachable(), SITES, WAYS[0])
    ensemble.apply("s2", 0, {("a", "b", 1): 1})
    ensemble.step("s2")
    ensemble.apply("s2", 0, {("a", "b", 1): -1})
    ensemble.step("s2")
    late = list(ensemble.channels["s2", "s1"])
    ensemble.run()
    ensemble.channels["s2", "s1"].extend(late)
    ensemble.run()
    assert ensemble.rows() == set()


def test_a_view_beyond_its_limit_stops_and_says_so() -> None:
    ensemble = Ensemble(
        reachable(limit=5), ("only",), RecursionOptions(strategy=Strategy.RECOMPUTE)
    )
    ensemble.apply("only", 0, {(a, b, 1): 1 for a, b in zip("abcd", "bcda", strict=True)})
    with pytest.raises(RecursionLimitError, match="reachable has more than 5 rows"):
        ensemble.step("only")
    with pytest.raises(RecursionLimitError):
        ensemble.step("only")
