"""Differences that read parts of values, from those that read other parts of the same values."""

from collections.abc import Mapping
from itertools import product

from federated_optimizer.canonical.conditions.difference_bounds import Bounds
from federated_optimizer.canonical.conditions.presence import is_surely_present
from federated_optimizer.canonical.conditions.scaled_values import ScaledValues, scaled
from federated_optimizer.canonical.conditions.terms import Term
from federated_optimizer.canonical.regions.regions import (
    BOTTOM,
    TOP,
    Cut,
    Domain,
    Region,
    before,
    behind,
)
from streamsql.algebra.expressions import Call, Expression


def difference_of_parts(
    term: Term, ends: Region, reached: "NumberedAtoms", present: set[Expression]
) -> Region:
    """Return where a difference of atoms lies, not both of which have a number.

    Args:
        term: The difference.
        ends: Where it lies by the ends of its atoms alone.
        reached: What is known of the atoms that have a number.
        present: Expressions that are not NULL.
    """
    (first, _), (second, _) = term.parts
    if not isinstance(first, Call) and not isinstance(second, Call):
        return ends
    most, least = reached.greatest(first, second), reached.greatest(second, first)
    low: Cut = BOTTOM if least is None else before(-least)
    high: Cut = TOP if most is None else behind(most)
    spans = ends.intersection(Region(Domain.WHOLE, ((low, high),) if low < high else ())).spans
    null = not all(_is_present(each, present) for each in (first, second))
    return Region(Domain.WHOLE, spans, null=null)


def _is_present(atom: Expression, present: set[Expression]) -> bool:
    """Return whether an atom is not NULL: a quotient is not where its value is not."""
    part = scaled(atom) if isinstance(atom, Call) else None
    return is_surely_present(atom if part is None else part.value, present)


class NumberedAtoms:
    """Bounds and orders of numbered atoms, extended to atoms that have no number.

    Args:
        parts: The atoms, as parts of values.
        numbers: Of the atoms.
        differences: Of the numbers, closed.
    """

    def __init__(
        self, parts: ScaledValues, numbers: Mapping[Expression, int], differences: Bounds
    ) -> None:
        self._parts, self._numbers, self._differences = parts, numbers, differences

    def greatest(self, first: Expression, second: Expression) -> int | None:
        """Return the greatest difference first - second; None: nothing is known."""
        found = []
        for (one, more), (other, less) in product(
            self._beyond(first, above=True), self._beyond(second, above=False)
        ):
            apart = 0 if one == other else self._differences.get((one, other))
            if apart is not None:
                found.append(more + apart - less)
        return min(found, default=None)

    def _beyond(self, atom: Expression, *, above: bool) -> list[tuple[int, int]]:
        """Return numbers of atoms, and what an atom is at most (at least) more than each."""
        if atom in self._numbers:
            return [(self._numbers[atom], 0)]
        found = [(self._numbers[each], 0) for each in self._parts.beyond(atom, above=above)]
        limits = self._parts.limits(atom)
        if limits is not None and limits.hull is not None:
            rank, end, _ = limits.hull[1 if above else 0]
            if not rank and isinstance(end, int):
                found.append((0, end))
        return found
