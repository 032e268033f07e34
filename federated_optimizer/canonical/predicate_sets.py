"""Conjunctions of predicates as sets: which rows they let through, and which imply others.

A row is let through where every predicate is TRUE, as a filter has it: NULL is as FALSE.
"""

from collections.abc import Sequence
from functools import cached_property

from federated_optimizer.canonical.canonical_expressions import canonical
from federated_optimizer.canonical.implications import Implications
from streamsql.algebra.expressions import Call, Expression, Literal, conjuncts


class PredicateSet:
    """Predicates that are all to be TRUE. Equal sets let the same rows through.

    Attributes:
        sources: The predicates as they were given, split at AND.
        members: In canonical form.
    """

    def __init__(self, sources: tuple[Expression, ...]) -> None:
        self.sources = sources
        forms = (part for source in sources for part in conjuncts(canonical(source)))
        self.members = frozenset(
            form for form in forms if not (isinstance(form, Literal) and form.value is True)
        )

    @classmethod
    def of(cls, predicates: Sequence[Expression]) -> "PredicateSet":
        """Return the set of some predicates; none let every row through."""
        return cls(tuple(dict.fromkeys(part for each in predicates for part in conjuncts(each))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PredicateSet) and self.members == other.members

    def __hash__(self) -> int:
        return hash(self.members)

    def implies(self, other: "PredicateSet") -> bool:
        """Return whether every row that this set lets through is let through by the other one.

        False: it may not be.
        """
        return all(self._implies(member) for member in other.members)

    def residual(self, other: "PredicateSet") -> tuple[Expression, ...]:
        """Return predicates that, with the other set, let through just the rows of this one.

        Args:
            other: Implied by this set.
        """
        return tuple(
            source for source in self.sources if not other.implies(PredicateSet.of([source]))
        )

    def _implies(self, member: Expression) -> bool:
        return member in self.members or (_is_plain(member) and member in self._implications)

    @cached_property
    def _implications(self) -> Implications:
        return Implications(sorted(self.members, key=repr))


def _is_plain(member: Expression) -> bool:
    """Return whether a comparison reads columns and constants as they are: no sum overflows."""
    return isinstance(member, Call) and not any(isinstance(a, Call) for a in member.arguments)
