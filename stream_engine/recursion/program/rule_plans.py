"""All probe plans of a recursion, by what they start from."""

from stream_engine.recursion.program.placement import is_base
from stream_engine.recursion.program.probing import ProbePlan, plan_from_atom, plan_from_head
from stream_engine.recursion.program.rules import RECURSIVE, Rule


class RulePlans:
    """The compiled rules of a fixpoint.

    Base rules read one leaf and run where its rows arrive; all others are step rules and run where
    rows join. A rule with several recursive atoms has one plan for each: whichever of its rows
    changes last finds the others in their tables.

    Args:
        leaf_count: Number of its leaves, and of copies of the view behind them.

    Attributes:
        base: Per leaf, the plans of base rules.
        step: Per leaf or copy, the plans of step rules that start from its rows.
        recursive: The plans that start from rows of the recursive relation.
        base_heads: Plans that find the derivations of a given row by base rules.
        step_heads: The same by step rules.
    """

    def __init__(self, rules: tuple[Rule, ...], leaf_count: int) -> None:
        base = [rule for rule in rules if is_base(rule)]
        step = [rule for rule in rules if not is_base(rule)]
        self.base = _by_leaf(base, leaf_count)
        self.step = _by_leaf(step, leaf_count)
        self.recursive = [
            plan_from_atom(rule, number)
            for rule in step
            for number, atom in enumerate(rule.atoms)
            if atom == RECURSIVE
        ]
        self.base_heads = [plan_from_head(rule) for rule in base]
        self.step_heads = [plan_from_head(rule) for rule in step]
        heads = self.base_heads + self.step_heads
        atoms = [plan for plans in (*self.base, *self.step, self.recursive) for plan in plans]
        self._orders = {id(plan): _orders(plan) for plan in heads + atoms}

    def orders(self, plan: ProbePlan) -> tuple[ProbePlan, ...]:
        """Return one of these plans, and one that joins in another order if that may be better."""
        return self._orders[id(plan)]


def _by_leaf(rules: list[Rule], leaf_count: int) -> list[list[ProbePlan]]:
    plans: list[list[ProbePlan]] = [[] for _ in range(leaf_count)]
    for rule in rules:
        for atom, leaf in enumerate(rule.atoms):
            if leaf != RECURSIVE:
                plans[leaf].append(plan_from_atom(rule, atom))
    return plans


def _orders(plan: ProbePlan) -> tuple[ProbePlan, ...]:
    if plan.atom is None:
        other = plan_from_head(plan.rule, leaves_first=True)
    else:
        other = plan_from_atom(plan.rule, plan.atom, leaves_first=True)
    same = [step.atom for step in plan.steps] == [step.atom for step in other.steps]
    return (plan,) if same else (plan, other)
