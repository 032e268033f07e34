"""Blocks keep the rows of plans, whatever the order of their joins."""

import pytest

from federated_optimizer.sharing.forms.blocks import (
    block_of,
    connected_parts,
    part_of,
    plan_of,
    with_part,
)
from tests.federated_optimizer.sharing.small_shop import TEXTS, bag, normalized


@pytest.mark.parametrize("text", TEXTS)
def test_a_block_has_the_rows_of_its_plan(text: str) -> None:
    plan = normalized(text)
    made = plan_of(block_of(plan))
    assert made.schema == plan.schema
    assert bag(made) == bag(plan)


@pytest.mark.parametrize("text", TEXTS)
def test_a_part_may_be_put_in_the_place_of_its_inputs(text: str) -> None:
    plan = normalized(text)
    block = block_of(plan)
    for size in range(1, len(block.inputs) + 1):
        for numbers in connected_parts(block, size):
            part = part_of(block, numbers)
            again = plan_of(with_part(block, numbers, plan_of(part)))
            assert again.schema == plan.schema
            assert bag(again) == bag(plan), numbers


def test_parts_are_connected_by_predicates() -> None:
    block = block_of(normalized("SELECT a.x FROM t a, t b, u c WHERE a.x = b.x AND b.y < c.y"))
    assert set(connected_parts(block, 2)) == {(0, 1), (1, 2)}
    assert set(connected_parts(block, 3)) == {(0, 1, 2)}
