"""The secrets that admit somebody, in memory: the answer to every request's first question."""

from collections.abc import Iterator
from dataclasses import dataclass

from federated_optimizer.coordinator.contract.people_model import Admission, ApiToken
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.people.account_rules import lower_role
from federated_optimizer.coordinator.people.people_store import (
    StoredAccount,
    StoredPeople,
    StoredSession,
    StoredToken,
)
from federated_optimizer.coordinator.people.random_secrets import MAX_SECRET, digest
from streamsql.data.types import MICROSECONDS

_HOUR = 3_600 * MICROSECONDS
NOTED_EVERY = 300 * MICROSECONDS
"""How often it is stored that a session or token is in use."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Limits of sessions, in hours.

    Attributes:
        idle: Without any request; an open page of events is in use.
        longest: In all.
    """

    idle: float = 12.0
    longest: float = 168.0

    @property
    def idle_time(self) -> int:
        """The idle time in microseconds."""
        return int(self.idle * _HOUR)

    @property
    def longest_time(self) -> int:
        """The longest time in microseconds."""
        return int(self.longest * _HOUR)


@dataclass(slots=True)
class _Admitted:
    """A session or token.

    Attributes:
        idle: After so many microseconds without use it ends; None for a token.
        noted: When it was last stored that it is in use.
    """

    digest: str
    account: str
    admission: Admission
    expires: int | None
    idle: int | None
    last_used: int
    noted: int

    def ends(self, now: int) -> bool:
        """True once a session or token has expired; an open stream counts as use."""
        if self.expires is not None and now >= self.expires:
            return True
        idle = self.idle is not None and now - self.last_used >= self.idle
        return idle and not self.admission.readers


class Admissions:
    """All sessions and tokens that admit somebody.

    Args:
        idle: Microseconds without use after which a session ends.
        owner: Secret that admits whoever runs the console, or nothing.
    """

    def __init__(self, idle: int, owner: str = "") -> None:
        self._idle = idle
        self._owner = digest(owner) if owner else ""
        self._owners = Admission(LOCAL)
        self._by_digest: dict[str, _Admitted] = {}

    def admit(self, secret: str, now: int) -> Admission | None:
        """Return what a secret admits, and note that it is in use."""
        if not 0 < len(secret) <= MAX_SECRET:
            return None
        key = digest(secret)
        if key == self._owner:
            return self._owners
        found = self._by_digest.get(key)
        if found is None:
            return None
        if found.ends(now):
            self._end(found)
            return None
        found.last_used = max(found.last_used, now)
        return found.admission

    def replace(self, people: StoredPeople, now: int) -> None:
        """Go on with what is stored; what is gone or asks for somebody else now ends."""
        accounts = {found.account.name: found for found in people.accounts}
        stored: dict[str, tuple[StoredSession | StoredToken, Principal]] = {}
        entries: tuple[StoredSession | StoredToken, ...] = (*people.sessions, *people.tokens)
        for entry in entries:
            principal = _principal(entry, accounts)
            if principal is not None:
                stored[entry.digest] = (entry, principal)
        for known in list(self._by_digest.values()):
            kept = stored.get(known.digest)
            if kept is None or kept[1] != known.admission.principal:
                self._end(known)
        for key, (entry, principal) in stored.items():
            admitted = self._admitted(entry, principal)
            if key not in self._by_digest and not admitted.ends(now):
                self._by_digest[key] = admitted

    def end_overdue(self, now: int) -> list[str]:
        """End what is over; return the digests of sessions."""
        over = [found for found in self._by_digest.values() if found.ends(now)]
        for found in over:
            self._end(found)
        return [found.digest for found in over if found.idle is not None]

    def uses_to_note(self, now: int) -> list[tuple[str, int]]:
        """Return digests and times of use that are due to be stored; they count as stored then."""
        due = []
        for found in self._by_digest.values():
            if found.admission.readers:
                found.last_used = max(found.last_used, now)
            if found.last_used - found.noted >= NOTED_EVERY:
                found.noted = found.last_used
                due.append((found.digest, found.last_used))
        return due

    def last_used(self) -> Iterator[tuple[str, int]]:
        """Yield the digest and last use of all."""
        for found in self._by_digest.values():
            yield found.digest, found.last_used

    def _admitted(self, entry: StoredSession | StoredToken, principal: Principal) -> _Admitted:
        if isinstance(entry, StoredSession):
            used, expires, idle = entry.last_used, entry.expires, self._idle
            return _Admitted(
                entry.digest, entry.account, Admission(principal), expires, idle, used, used
            )
        token = entry.token
        used = token.last_used or 0
        return _Admitted(
            *(entry.digest, token.account, Admission(principal), token.expires, None, used, used)
        )

    def _end(self, found: _Admitted) -> None:
        self._by_digest.pop(found.digest, None)
        found.admission.ended.set()


def _principal(
    entry: StoredSession | StoredToken, accounts: dict[str, StoredAccount]
) -> Principal | None:
    """Return who asks with a session or token; None where its account lets nobody in."""
    found = accounts.get(entry.account)
    if found is None or found.account.disabled:
        return None
    return principal_of(found, entry.token if isinstance(entry, StoredToken) else None)


def principal_of(found: StoredAccount, token: ApiToken | None = None) -> Principal:
    """Return who asks for an account, or with one of its tokens."""
    account = found.account
    if token is None:
        return Principal(account.name, account.role)
    role = lower_role(account.role, token.role)
    return Principal(account.name, role, token=token.label or token.id, sources=token.sources)
