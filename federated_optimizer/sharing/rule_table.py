"""The rules for operators that are no selections, projections or joins, in the order of trial."""

from collections.abc import Callable

from federated_optimizer.sharing.rules import (
    bounded_views,
    coarser_groups,
    coarser_windows,
    fewer_operands,
    more_functions,
    preserved_sides,
)
from streamsql.algebra.operators import Plan

Rule = Callable[[Plan, Plan, Plan], Plan | None]
"""`answer` of a module of `sharing.rules`: wanted, offered, and the leaf that gives the offered."""

RULES: tuple[Rule, ...] = (
    coarser_groups.answer,
    coarser_windows.answer,
    fewer_operands.answer,
    preserved_sides.answer,
    bounded_views.answer,
)

Widening = Callable[[Plan, Plan], Plan | None]
"""Wanted and offered: the offered with more columns behind its own, from which the wanted comes."""

WIDENINGS: tuple[Widening, ...] = (more_functions.widened,)
"""For parts that nobody can read yet: a node of them may be given what is wanted."""
