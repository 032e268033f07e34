"""The audit of a federation: kept in memory for `sys_audit`, written to the catalog soon after.

Bounded in number and age. When there is no room, the oldest entry of whoever has most goes, so
that nobody pushes out what others did.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable

from typing_extensions import override

from federated_optimizer.coordinator.contract.audit_model import Audit, AuditEntry, Outcome
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.store.audit_store import store_audit
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from host.clocks import Clock
from streamsql.data.types import MICROSECONDS
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

MAX_ENTRIES = 10_000
MAX_DAYS = 400
_SHOWN = 200
"""Characters of a detail in the service's log."""
_DAY = 86_400 * MICROSECONDS
_LONGEST = {"action": 60, "target": 200, "detail": 1_000, "address": 64}
_NOBODY = Principal("", Role.VIEWER)
_Party = tuple[str, bool]
"""Who, and whether it was done: what somebody did is not pushed out by what they were refused."""


def _line(entry: AuditEntry) -> str:
    """Return an entry for the service's log; the table has the whole detail."""
    origin = f" from {entry.address}" if entry.address else ""
    failed = entry.outcome != Outcome.DONE and entry.detail
    why = f": {entry.detail[:_SHOWN]!r}" if failed else ""
    who = entry.who or "somebody"
    return f"audit: {who!r}{origin}: {entry.action} {entry.target!r} {entry.outcome}{why}"


class AuditLog(Audit):
    """All entries there are."""

    def __init__(self, store: CatalogStore, clock: Clock, known: Iterable[AuditEntry]) -> None:
        """Go on with the entries of a catalog, oldest first."""
        self._store = store
        self._clock = clock
        self._parties: dict[_Party, deque[AuditEntry]] = {}
        self._size = 0
        self._last = 0
        self._unwritten: dict[int, AuditEntry] = {}
        self._removed: set[int] = set()
        self._writing = asyncio.Lock()
        for entry in known:
            self._add(entry)

    @override
    def note(
        self,
        principal: Principal | None,
        action: str,
        target: str,
        outcome: Outcome,
        detail: str = "",
        *,
        address: str = "",
    ) -> None:
        who = principal or _NOBODY
        told = {"action": action, "target": target, "detail": detail}
        told["address"] = address or who.address
        entry = AuditEntry(
            id=self._last + 1,
            ts=self._clock(),
            who=_clean(who.name, 200),
            role="" if principal is None else str(who.role),
            token=_clean(who.token, 200),
            outcome=outcome,
            **{name: _clean(text, _LONGEST[name]) for name, text in told.items()},
        )
        log.info("%s", _line(entry))
        self._unwritten[entry.id] = entry
        self._add(entry)

    @override
    def entries(self) -> tuple[AuditEntry, ...]:
        found = [entry for party in self._parties.values() for entry in party]
        return tuple(sorted(found, key=lambda entry: entry.id))

    async def keep(self) -> None:
        """Write what is new to the catalog, and remove what is too old.

        Raises:
            DeploymentError: It cannot be written; it is tried again with the next call.
        """
        oldest = self._clock() - MAX_DAYS * _DAY
        for party, entries in tuple(self._parties.items()):
            while entries and entries[0].ts < oldest:
                self._remove(party)
        async with self._writing:
            added, removed = dict(self._unwritten), set(self._removed)
            if not added and not removed:
                return
            await asyncio.to_thread(store_audit, self._store, tuple(added.values()), removed)
            self._removed -= removed
            for number in added:
                # One that was removed meanwhile is in the catalog now.
                if self._unwritten.pop(number, None) is None:
                    self._removed.add(number)

    async def end(self) -> None:
        """Write what is new, for the last time."""
        try:
            await self.keep()
        except FederationError as error:
            log.warning("the last entries of the audit are not saved: %s", error.message)

    def _add(self, entry: AuditEntry) -> None:
        self._last = entry.id
        party = (entry.who, entry.outcome == Outcome.DONE)
        self._parties.setdefault(party, deque()).append(entry)
        self._size += 1
        while self._size > MAX_ENTRIES:
            self._remove(max(self._parties, key=lambda party: len(self._parties[party])))

    def _remove(self, party: _Party) -> None:
        entries = self._parties[party]
        number = entries.popleft().id
        self._size -= 1
        if not entries:
            del self._parties[party]
        if self._unwritten.pop(number, None) is None:
            self._removed.add(number)


def _clean(text: str, longest: int) -> str:
    """Return a text that every database takes."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return cut.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")
