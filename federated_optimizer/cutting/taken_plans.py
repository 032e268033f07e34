"""Plans with the methods that were chosen, occurrence by occurrence."""

from dataclasses import dataclass

from federated_optimizer.alternatives.method import Method
from streamsql.algebra.operators import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """An occurrence of a sub-plan, with how it is computed.

    Equal sub-plans may be computed in different ways where a query has them twice.

    Attributes:
        plan: As it is cut.
        method: Of its operator; None: nobody has chosen.
        inputs: What it reads, in the order of the plan; empty: nobody has chosen below.
    """

    plan: Plan
    method: Method | None = None
    inputs: tuple["Taken", ...] = ()

    @property
    def below(self) -> tuple["Taken", ...]:
        """What it reads, also where nobody has chosen."""
        return self.inputs or tuple(map(Taken, self.plan.inputs))

    @property
    def methods(self) -> tuple[Method, ...]:
        """All methods that were chosen, each as often as it was."""
        found = {id(self): self}
        waiting = [self]
        while waiting:
            new = {id(each): each for each in waiting.pop().inputs if id(each) not in found}
            found.update(new)
            waiting.extend(new.values())
        return tuple(each.method for each in found.values() if each.method is not None)
