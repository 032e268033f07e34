"""The rules for operators that are no selections, projections or joins, in the order of trial."""

from collections.abc import Callable

from federated_optimizer.sharing.rules import (
    bounded_views,
    coarser_groups,
    fewer_operands,
    preserved_sides,
)
from streamsql.algebra.operators import Plan

Rule = Callable[[Plan, Plan, Plan], Plan | None]
"""`answer` of a module of `sharing.rules`: wanted, offered, and the leaf that gives the offered."""

RULES: tuple[Rule, ...] = (
    coarser_groups.answer,
    fewer_operands.answer,
    preserved_sides.answer,
    bounded_views.answer,
)
