"""Predicate sets by key, and which of them a further one implies or is implied by."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from federated_optimizer.canonical.predicate_sets import PredicateSet

Key = TypeVar("Key", bound=Hashable)


class PredicateIndex(Generic[Key]):
    """Predicate sets over one space of columns, by key."""

    def __init__(self) -> None:
        self._sets: dict[Key, PredicateSet] = {}

    def add(self, key: Key, predicates: PredicateSet) -> None:
        """Add a set, or replace that of its key."""
        self._sets[key] = predicates

    def remove(self, key: Key) -> None:
        """Remove the set of a key, if there is one."""
        self._sets.pop(key, None)

    def weaker_or_equal(self, predicates: PredicateSet) -> set[Key]:
        """Return the keys of the sets that let through every row that a set lets through."""
        return {key for key, each in self._sets.items() if predicates.implies(each)}

    def stronger_or_equal(self, predicates: PredicateSet) -> set[Key]:
        """Return the keys of the sets every row of which a set lets through."""
        return {key for key, each in self._sets.items() if each.implies(predicates)}
