"""Index of offers by the bases of rules: which of them a rule may answer a plan from."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.sharing.block_shapes import Key
from federated_optimizer.sharing.rule_bases import Basis
from federated_optimizer.sharing.rule_table import RULES, Rule
from streamsql.algebra.operators import Plan

MAX_NEAR = 200
"""Bounds of one term that are looked at, the nearest."""


@dataclass(slots=True)
class _Shape:
    """Bases whose columns have the same numbers.

    Attributes:
        basis: One of them.
        conditions: Of all of them.
    """

    basis: Basis
    conditions: PredicateIndex[Key] = field(default_factory=PredicateIndex)


class _Bases:
    """The bases that one rule states of offers."""

    def __init__(self) -> None:
        self._families: dict[Hashable, dict[Hashable, _Shape]] = {}
        self._places: dict[Key, tuple[Hashable, Hashable]] = {}

    def add(self, key: Key, basis: Basis) -> None:
        name, basis = basis.in_canonical_order()
        shapes = self._families.setdefault(basis.family, {})
        if name not in shapes:
            shapes[name] = _Shape(basis)
        shapes[name].conditions.add(key, basis.condition)
        self._places[key] = basis.family, name

    def remove(self, key: Key) -> None:
        place = self._places.pop(key, None)
        if place is None:
            return
        family, name = place
        shapes = self._families[family]
        shapes[name].conditions.remove(key)
        if not len(shapes[name].conditions):
            del shapes[name]
        if not shapes:
            del self._families[family]

    def below(self, wanted: Basis) -> set[Key]:
        """Return the offers on whose bases a wanted one lies."""
        found: set[Key] = set()
        for shape in self._families.get(wanted.family, {}).values():
            for moved in wanted.over(shape.basis):
                found |= shape.conditions.weaker_or_equal(moved.condition, MAX_NEAR)
        return found


class RuleIndex:
    """Offers by what the rules of operators need of them."""

    def __init__(self) -> None:
        self._bases: tuple[tuple[Rule, _Bases], ...] = tuple((rule, _Bases()) for rule in RULES)

    def add(self, key: Key, plan: Plan) -> None:
        """Add an offer that computes a plan."""
        for rule, bases in self._bases:
            basis = rule.offered(plan)
            if basis is not None:
                bases.add(key, basis)

    def remove(self, key: Key) -> None:
        """Remove an offer; nothing happens if no rule has it."""
        for _, bases in self._bases:
            bases.remove(key)

    def rules_for(self, wanted: Plan) -> dict[Key, tuple[Rule, ...]]:
        """Return the offers from which a plan may come, with the rules by which, in their order."""
        found: dict[Key, tuple[Rule, ...]] = {}
        for rule, bases in self._bases:
            keys = {key for basis in rule.wanted(wanted) for key in bases.below(basis)}
            for key in keys:
                found[key] = (*found.get(key, ()), rule)
        return found
