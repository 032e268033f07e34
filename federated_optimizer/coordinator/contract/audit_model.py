"""The audit: who did what when, from where, with which outcome."""

import enum
from typing import Protocol

import msgspec

from federated_optimizer.coordinator.contract.principal import Principal


class Outcome(enum.StrEnum):
    """Result of an action."""

    DONE = "done"
    REFUSED = "refused"  # they may not
    FAILED = "failed"


class AuditEntry(msgspec.Struct, frozen=True):
    """One row of `sys_audit`.

    Attributes:
        id: Grows by one an entry.
        ts: Microseconds since 1970.
        who: Name of the account, or empty for somebody who has not signed in.
        role: Of the principal, or empty.
        token: Name of the API token that was used, or empty.
        action: In the field's words: "CREATE VIEW", "sign in", "enrol gateway".
        target: Of the action: a name, or empty.
        detail: The reason of a refusal or failure, or the statement.
        address: Of the client, or empty.
    """

    id: int
    ts: int
    who: str
    role: str
    token: str
    action: str
    target: str
    outcome: Outcome
    detail: str
    address: str


class Audit(Protocol):
    """Takes entries at once and keeps them, in bounded number and for bounded time."""

    def note(  # noqa: PLR0913 - the columns of an entry
        self,
        principal: Principal | None,
        action: str,
        target: str,
        outcome: Outcome,
        detail: str = "",
        *,
        address: str = "",
    ) -> None:
        """Add an entry; texts that are too long are cut.

        Args:
            principal: Who, or None for somebody who has not signed in.
            action: At most 60 characters.
            target: At most 200.
            outcome: What became of it.
            detail: At most 1,000. Never a secret.
            address: At most 64; empty for the one of the principal.
        """
        ...

    def entries(self) -> tuple[AuditEntry, ...]:
        """Return all entries, oldest first."""
        ...
