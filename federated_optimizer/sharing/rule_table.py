"""The rules for operators that are no selections, projections or joins, in the order of trial."""

from collections.abc import Callable
from dataclasses import dataclass

from federated_optimizer.sharing.rule_bases import Basis
from federated_optimizer.sharing.rules import (
    bounded_views,
    coarser_groups,
    coarser_windows,
    fewer_operands,
    more_functions,
    preserved_sides,
)
from streamsql.algebra.operators import Plan

Answer = Callable[[Plan, Plan, Plan], Plan | None]
"""Wanted, offered, and the leaf that gives the offered: wanted over the leaf."""

Widening = Callable[[Plan, Plan], Plan | None]
"""Wanted and offered: the offered with more columns behind its own, from which the wanted comes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A module of `sharing.rules`.

    Attributes:
        answer: Answers a plan.
        offered: The basis of an offer; None: it answers nothing by this rule.
        wanted: The bases of a plan: an offer answers it only if one of them lies on its own.
        widened: For parts that nobody can read yet: a node of them may be given what is wanted.
    """

    answer: Answer
    offered: Callable[[Plan], Basis | None]
    wanted: Callable[[Plan], tuple[Basis, ...]]
    widened: Widening | None = None


RULES: tuple[Rule, ...] = (
    Rule(
        coarser_groups.answer, coarser_groups.offered, coarser_groups.wanted, more_functions.widened
    ),
    Rule(coarser_windows.answer, coarser_windows.offered, coarser_windows.wanted),
    Rule(fewer_operands.answer, fewer_operands.offered, fewer_operands.wanted),
    Rule(preserved_sides.answer, preserved_sides.offered, preserved_sides.wanted),
    Rule(bounded_views.answer, bounded_views.offered, bounded_views.wanted),
)
