"""Plans of texts that run: an equal text is not planned again."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from federated_optimizer.coordinator.contract.principal import Principal

MOST_KEPT = 1_000
"""Texts whose plans are kept: those used last."""

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Asked:
    """All that a plan is made from but definitions, sites and rights.

    Attributes:
        text: As it was written.
        gathered: Whether rows of gateways are brought together first.
        whole_changes: As of `BoundQuery`.
    """

    text: str
    principal: Principal
    gathered: bool
    whole_changes: bool


@dataclass(slots=True)
class KnownPlans(Generic[P]):
    """The plans of the texts that came last.

    Args:
        holds: Returns whether a plan is still what planning would give.
    """

    holds: Callable[[P, Principal], bool]
    _plans: OrderedDict[Asked, P] = field(default_factory=OrderedDict)

    def find(self, asked: Asked) -> P | None:
        """Return the plan of an equal text that holds, or None."""
        found = self._plans.get(asked)
        if found is None:
            return None
        if not self.holds(found, asked.principal):
            del self._plans[asked]
            return None
        self._plans.move_to_end(asked)
        return found

    def keep(self, asked: Asked, plan: P) -> None:
        """Remember a plan."""
        self._plans[asked] = plan
        if len(self._plans) > MOST_KEPT:
            self._plans.popitem(last=False)
