"""Quotas of accounts, and the time for planning that they have used."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from federated_optimizer.coordinator.contract.grant_model import DEFAULT_QUOTAS, Quotas
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.planning_processes import charged
from federated_optimizer.coordinator.store.grant_store import StoredRights
from host.clocks import monotonic_clock
from streamsql.data.types import MICROSECONDS
from streamsql.errors import FederationError

MINUTE = 60 * MICROSECONDS
QUOTA_EXCEEDED = "quota_exceeded"
MAX_AT_ONCE = 4
"""Statements of one account that are planned at a time: half of the processes that do it."""
MAX_WAITING = 100
"""Statements of one account that may wait for that; pages send many at once."""


class AccountQuotas:
    """Quotas by account, and the planning of the last minute."""

    def __init__(self, stored: StoredRights) -> None:
        self._own = dict(stored.quotas)
        self._planned: dict[str, deque[tuple[int, int]]] = {}
        self._queues: dict[str, _Queue] = {}

    def own(self, account: str) -> Quotas:
        """Return what was set for an account."""
        return self._own.get(account, Quotas())

    def set(self, account: str, quotas: Quotas | None) -> None:
        """Set the quotas of an account; None: those of its role."""
        if quotas is None:
            self._own.pop(account, None)
        else:
            self._own[account] = quotas

    def of(self, principal: Principal) -> Quotas:
        """Return the quotas of somebody: what was set for them, and else what their role has."""
        if principal.name == LOCAL.name:
            return Quotas()
        own, role = self.own(principal.name), DEFAULT_QUOTAS[principal.role]
        found = {
            name: getattr(role, name) if getattr(own, name) is None else getattr(own, name)
            for name in Quotas.__struct_fields__
        }
        return Quotas(**found)

    def check_queries(self, principal: Principal, running: int) -> None:
        """Refuse one query too many.

        Raises:
            FederationError: As many of the account run as may.
        """
        most = self.of(principal).max_queries
        if most is not None and running >= most:
            raise _exceeded(
                principal,
                f"has {running} running queries, and {most} at most",
                "stop one: DROP QUERY id",
            )

    def planned(self, account: str) -> float:
        """Return the seconds of planning in the last minute."""
        spent = self._planned.get(account)
        if spent is None:
            return 0.0
        oldest = monotonic_clock() - MINUTE
        while spent and spent[0][0] < oldest:
            spent.popleft()
        return sum(took for _, took in spent) / MICROSECONDS

    @asynccontextmanager
    async def planning(self, principal: Principal) -> AsyncIterator[None]:
        """Count the time that processes take for what is inside; an account has few at once.

        Raises:
            FederationError: The account has used its time of this minute, or too many of its
                statements wait.
        """
        account = principal.name
        if account == LOCAL.name:
            yield
            return
        most, spent_seconds = self.of(principal).planning_seconds, self.planned(account)
        if most is not None and spent_seconds >= most:
            raise _exceeded(
                principal,
                f"has planned for {spent_seconds:.0f} s in the last minute, and may for {most:g} s",
                "wait a minute, or simplify the statements",
            )
        queue = self._queues.setdefault(account, _Queue())
        if queue.statements >= MAX_AT_ONCE + MAX_WAITING:
            raise _exceeded(
                principal,
                f"has {queue.statements} statements that wait to be planned",
                "send fewer at once",
            )
        spent = self._planned.setdefault(account, deque())
        queue.statements += 1
        try:
            async with queue.room:
                with charged(lambda took: spent.append((monotonic_clock(), took))):
                    yield
        finally:
            queue.statements -= 1
            if not queue.statements:
                del self._queues[account]


@dataclass(slots=True)
class _Queue:
    """Statements of one account that are planned, or wait for it."""

    statements: int = 0
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_AT_ONCE))


def _exceeded(principal: Principal, what: str, hint: str) -> FederationError:
    more = f"{hint}; an administrator can raise it with ALTER USER {principal.name} SET (…)"
    return FederationError(
        f"{principal.role} {principal.name} {what}", hint=more, code=QUOTA_EXCEEDED
    )
