"""Rules that read the recursive relation more than once, and mutual recursion by a tag."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.placement import LeafRoute, placement_of
from stream_engine.recursion.program.program import program_of
from stream_engine.recursion.program.rules import RECURSIVE
from stream_engine.testing.recursion_programs import (
    bridged,
    doubling,
    doubling_cheapest,
    odd_and_even,
)
from stream_engine.testing.recursion_schedules import database
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import Row
from streamsql.reference import evaluate
from tests.stream_engine.recursion.several_sites import LINKS, OPTIONS, describe

PROGRAMS = [doubling(), doubling_cheapest(), bridged(), odd_and_even()]
QUARTER = settings(max_examples=max(settings().max_examples // 4, 1))


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
        assert total == evaluate(node, database({"link": live}), 0)
        assert set(operator.state_rows()) == set(total)


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
