"""Moves of a simulated federation in which nothing changes: how many, and that they end."""

import pytest

from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from tests.federated_optimizer.coordinator.simulated_coordinator import TICK
from tests.federated_optimizer.coordinator.simulated_registrations import (
    ADAPT,
    GATEWAYS,
    TABLES,
    SimulatedRegistrations,
)

STILL = 3
"""Looks at all runs without a move, after which there are none any more."""
MOST_LOOKS = 24
"""Looks at all runs within which moves have to come to an end."""
_LONG_AGO = -(10**12)


class Standstill:
    """Lets a simulated federation settle while no row, no query and no site changes.

    Args:
        world: Opened.
        patch: Counts the moves that begin.

    Attributes:
        begun: Moves that have begun so far.
    """

    def __init__(self, world: SimulatedRegistrations, patch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self._world = world
        begin = world.adaptation._moves.begin

        async def counted(*said: object, **how: bool) -> Move | None:
            move = await begin(*said, **how)  # type: ignore[arg-type]
            self.begun += move is not None
            return move

        patch.setattr(world.adaptation._moves, "begin", counted)

    def tell(self) -> None:
        """Let the facts of a source be others, as if a gateway had reported them."""
        world, chance = self._world, self._world._random
        source, gateway = chance.choice(list(TABLES)), chance.choice(GATEWAYS)
        subject = Subject(SubjectKind.SOURCE, source, gateway)
        told = (chance.choice((3.0, 300.0, 30_000.0)), chance.choice((0.0, 0.1, 10.0)))
        for quantity, value in zip((Quantity.SENSORS, Quantity.CHANGES), told, strict=True):
            fact = exact(subject, quantity, value, world.shared.clock(), Origin.COUNTED)
            world.shared.facts.put(fact)

    async def settle(self, *, asked: bool = False) -> int:
        """Look at plans until no query moves any more; return how many have moved.

        Args:
            asked: Look at all runs each time, whether or not anything is a reason to.
        """
        before, still = self.begun, 0
        for _ in range(MOST_LOOKS):
            begun = self.begun
            await self._look(asked=asked)
            still = 0 if self.begun > begun else still + 1
            if still == STILL:
                return self.begun - before
        rows = [
            (row.queries, row.reason, row.plan_before, row.plan_after)
            for row in self._world.shared.decisions.all()
        ]
        raise AssertionError(f"queries move though nothing has changed: {rows[-6:]}")

    async def _look(self, *, asked: bool) -> None:
        world, adaptation = self._world, self._world.adaptation
        for known in adaptation._known.values() if asked else ():
            known.basis, known.looked = None, _LONG_AGO
        world.advance(world.now + int(1.1 * ADAPT * 1_000_000))
        await world.rest()
        while adaptation._moving.all():  # each is completed or given up in a time
            world.advance(world.now + TICK)
            await world.rest()
