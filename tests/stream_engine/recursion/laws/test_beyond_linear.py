"""Rules that read the recursive relation more than once, and mutual recursion by a tag."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions, Shipping
from stream_engine.recursion.program.placement import LeafRoute, placement_of
from stream_engine.recursion.program.program import program_of
from stream_engine.recursion.program.rules import RECURSIVE
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import (
    bridged,
    doubling,
    doubling_cheapest,
    odd_and_even,
)
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate

SITES = ("s0", "s1", "s2", "s3")
NODES = "abcde"
LINKS = [(a, b, cost) for a in NODES for b in NODES if a != b for cost in (1, 3)]
PROGRAMS = [doubling(), doubling_cheapest(), bridged(), odd_and_even()]
OPTIONS = [
    *[
        RecursionOptions(
            strategy="absorption", shipping=shipping, annotations=annotations, width=width
        )
        for annotations in ("dnf", "bdd")
        for shipping in Shipping
        for width in (1, 64)
        if shipping is not Shipping.WITNESS
    ],
    RecursionOptions(strategy="absorption", shipping=Shipping.WITNESS),
]
QUARTER = settings(max_examples=max(settings().max_examples // 4, 1))


def describe(value: RecursionOptions | Fixpoint) -> str:
    if isinstance(value, Fixpoint):
        return value.name
    return f"{value.shipping}-{value.annotations}-{value.width}"


def from_scratch(node: Fixpoint, links: set[Row]) -> Delta:
    database = Database()
    database.append("link", [SourceEvent(row, ts=0) for row in sorted(links)])
    return evaluate(node, database, 0)


@pytest.mark.parametrize("options", OPTIONS, ids=describe)
@pytest.mark.parametrize("node", PROGRAMS, ids=describe)
@QUARTER
@given(batches=st.lists(st.lists(st.sampled_from(LINKS[:24]), max_size=4), max_size=10))
def test_alone(node: Fixpoint, options: RecursionOptions, batches: list[list[Row]]) -> None:
    operator = FixpointOperator(node, site="one", sites=("one",), epoch=1, options=options)
    live: set[Row] = set()
    total: Delta = {}
    for batch in batches:
        for row in batch:
            operator.apply(0, {row: -1 if row in live else 1})
            live ^= {row}
        accumulate(total, operator.settle())
        assert total == from_scratch(node, live)
        assert set(operator.state_rows()) == set(total)


def run_schedule(
    node: Fixpoint, options: RecursionOptions, seed: int, changes: int
) -> tuple[Ensemble, set[Row]]:
    choice = random.Random(seed)
    ensemble = Ensemble(node, SITES, options, seed=seed)
    live: set[Row] = set()
    for _ in range(changes):
        row = choice.choice(LINKS)
        site = SITES[LINKS.index(row) % len(SITES)]
        ensemble.apply(site, 0, {row: -1 if row in live else 1})
        live ^= {row}
        ensemble.step(site)
        for _ in range(choice.randrange(6)):
            ensemble.act()
    ensemble.run()
    return ensemble, set(from_scratch(node, live))


@pytest.mark.parametrize("options", OPTIONS, ids=describe)
@pytest.mark.parametrize("node", PROGRAMS, ids=describe)
def test_links_change_during_delivery(node: Fixpoint, options: RecursionOptions) -> None:
    for seed in range(2):
        ensemble, expected = run_schedule(node, options, seed, changes=12)
        assert ensemble.rows() == expected
        for site, operator in ensemble.operators.items():
            assert ensemble.views[site] == dict.fromkeys(operator.state_rows(), 1)


@given(seed=st.integers(0, 10**6), options=st.sampled_from(OPTIONS), node=st.sampled_from(PROGRAMS))
def test_any_interleaving(seed: int, options: RecursionOptions, node: Fixpoint) -> None:
    ensemble, expected = run_schedule(node, options, seed, changes=10)
    assert ensemble.rows() == expected


@pytest.mark.parametrize("shipping", list(Shipping))
def test_death_of_a_site_takes_its_rows_out_of_copies_too(shipping: Shipping) -> None:
    ensemble = Ensemble(
        doubling(), SITES, RecursionOptions(strategy="absorption", shipping=shipping), seed=3
    )
    ensemble.apply("s0", 0, {("a", "b", 1): 1, ("b", "c", 1): 1})
    ensemble.apply("s1", 0, {("c", "d", 1): 1, ("a", "b", 2): 1})
    for site in SITES:
        ensemble.step(site)
    ensemble.run()
    assert ("a", "d") in ensemble.rows()
    for site in SITES:
        ensemble.operators[site].kill_site("s0", 1)
        ensemble.step(site)
    ensemble.run()
    assert ensemble.rows() == {("c", "d"), ("a", "b")}
    for operator in ensemble.operators.values():
        assert isinstance(operator, FixpointOperator)
        for copy in operator._partition.copies:
            assert set(copy.entries) <= {("c", "d"), ("a", "b")}


def test_one_of_two_joined_rows_is_at_home_and_the_other_is_copied() -> None:
    program = program_of(doubling())
    placement = placement_of(program.rules, len(program.uses))
    assert placement.columns == (0,)
    assert placement.copies == (LeafRoute((1,)),)
    assert [rule.atoms for rule in placement.rules] == [(0,), (1, RECURSIVE)]
    assert placement.routes == ((),)


def test_without_an_equality_copies_go_to_all_sites() -> None:
    program = program_of(bridged())
    placement = placement_of(program.rules, len(program.uses))
    assert placement.copies == (LeafRoute(None),)


def test_a_tag_does_not_divide_a_mutual_recursion() -> None:
    program = program_of(odd_and_even())
    placement = placement_of(program.rules, len(program.uses))
    assert placement.columns in {(1,), (2,)}
