"""People in a catalog of their own, with clocks that a test turns and an audit it reads."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from argon2 import PasswordHasher

from federated_optimizer.coordinator.contract.audit_model import AuditEntry, Outcome
from federated_optimizer.coordinator.contract.people_model import Admission
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.people.admissions import SessionLimits
from federated_optimizer.coordinator.people.passwords import Passwords, PasswordWork
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore

QUICK = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
ROOT = Principal("root", Role.ADMINISTRATOR)
GOOD = "a long enough one"
HOME = "192.0.2.1"


@dataclass
class Office:
    """A catalog, clocks and an audit that tests look at, and the people of it.

    Attributes:
        url: Of the catalog.
        now: Seconds, of both clocks.
        noted: Who, action, target and outcome of each entry of the audit.
        details: Detail and address of each.
    """

    url: str
    now: float = 1_000_000.0
    noted: list[tuple[str, str, str, Outcome]] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    async def open(self, *, looking: bool = False) -> People:
        """Return the people as a console has them."""
        people = People(
            PeopleStore(self.url),
            lambda: int(self.now * 1_000_000),
            self,
            limits=SessionLimits(idle=1.0, longest=10.0),
            work=PasswordWork(Passwords(QUICK)),
            elapsed=lambda: self.now,
        )
        if looking:
            await people.begin()
        else:
            await people.read()
        return people

    def note(  # noqa: PLR0913
        self,
        principal: Principal | None,
        action: str,
        target: str,
        outcome: Outcome,
        detail: str = "",
        *,
        address: str = "",
    ) -> None:
        """Keep an entry, as an audit does."""
        who = principal.name if principal else ""
        self.noted.append((who, action, target, outcome))
        self.details.append(f"{detail} {address}".strip())

    def entries(self) -> tuple[AuditEntry, ...]:
        """Return none: tests read `noted`."""
        return ()

    def run(self, scenario: Callable[[People], Awaitable[None]], *, looking: bool = False) -> None:
        """Run a scenario with the people of this office."""

        async def all_of_it() -> None:
            people = await self.open(looking=looking)
            try:
                await scenario(people)
            finally:
                await people.close()

        asyncio.run(all_of_it())


def admitted(people: People, secret: str) -> Admission:
    """Return what a secret admits.

    Raises:
        AssertionError: Nobody.
    """
    found = people.admit(secret)
    assert found is not None
    return found
