"""Grants and quotas: what the console is told of them, and asks."""

from typing import Protocol

import msgspec

from federated_optimizer.coordinator.contract.principal import Role
from streamsql.syntax.statement_parsers.grant_statements import GranteeKind


class Grantee(msgspec.Struct, frozen=True, order=True):
    """Grantee of a right.

    Attributes:
        kind: A user, all who have a role or one above it, or everybody.
        name: Of the account or role; empty for everybody.
    """

    kind: GranteeKind
    name: str = ""


class Grant(msgspec.Struct, frozen=True):
    """That somebody may read a relation.

    Attributes:
        relation: Source, table or view, in lower case.
        grantee: Who may.
        by: Account that granted it.
        at: When, in microseconds since 1970.
    """

    relation: str
    grantee: Grantee
    by: str
    at: int


class Quotas(msgspec.Struct, frozen=True):
    """Bounds of what an account may use; None is no bound of its own.

    Attributes:
        max_queries: Running queries, those of alarms, sinks and sessions included.
        max_state_rows: Rows that one of its queries keeps at all sites together.
        max_result_rows: Different rows in the result of one of its queries.
        planning_seconds: Of planning and checking statements, in each minute.
    """

    max_queries: int | None = None
    max_state_rows: int | None = None
    max_result_rows: int | None = None
    planning_seconds: float | None = None


class Usage(msgspec.Struct, frozen=True):
    """Use of what quotas bound.

    Attributes:
        queries: That run.
        state_rows: Of its query that keeps most.
        result_rows: Of its query that has most.
        planning_seconds: In the last minute.
    """

    queries: int
    state_rows: int
    result_rows: int
    planning_seconds: float


DEFAULT_QUOTAS = {
    Role.VIEWER: Quotas(20, 1_000_000, 50_000, 20.0),
    Role.ANALYST: Quotas(50, 5_000_000, 200_000, 60.0),
    Role.OPERATOR: Quotas(),
    Role.ADMINISTRATOR: Quotas(),
}
"""Of accounts for which ALTER USER has set nothing else. A viewer's queries are those of pages."""


class GrantsApi(Protocol):
    """Rights to read, and quotas. Changes are statements: GRANT, REVOKE, …."""

    def grants(self) -> tuple[Grant, ...]:
        """Return all grants that whoever asks may know of, by relation."""
        ...

    def makers(self) -> dict[str, str]:
        """Return the account that made each view, alarm, display or sink, by name."""
        ...

    def quotas(self, account: str) -> Quotas:
        """Return the quotas of an account: its own, and else those of its role."""
        ...

    def usage(self, account: str) -> Usage:
        """Return what an account uses at the moment."""
        ...
