"""Groups and their alternatives."""

from dataclasses import dataclass

from federated_optimizer.alternatives.method import REWRITTEN, TO_GATEWAYS, Method
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.memo.properties import Properties


@dataclass(frozen=True, slots=True)
class Wanted:
    """A group, by its number in the memo, with the properties that are asked of it."""

    group: int
    properties: Properties

    def __hash__(self) -> int:
        # Few properties are asked of one group, and all of them are hashed one by one.
        return self.group


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to have a group with some properties.

    Attributes:
        method: Of its operator.
        children: What it reads.
        cost: Without that of its children.
        words: Of a method whose name does not say it all, for EXPLAIN.
    """

    method: Method
    children: tuple[Wanted, ...] = ()
    cost: Cost = NOTHING
    words: str = ""

    @property
    def is_rewritten(self) -> bool:
        """Whether its child is the same relation by another plan."""
        return self.method in REWRITTEN

    @property
    def is_in_network(self) -> bool:
        """Whether rows travel to gateways for it."""
        return self.method in TO_GATEWAYS or any(c.properties.joined for c in self.children)
