"""On whose behalf something is asked of the coordinator, and what each role may do."""

from enum import StrEnum

import msgspec


class Role(StrEnum):
    """Rights of people; each role may do what the ones before it may.

    VIEWER: look at maps, displays, alarms and results whose inputs are granted. ANALYST: ask
    queries of what is granted, make views, alarms and displays. OPERATOR: run the federation:
    sources, tables, sinks, settings and restarts of gateways, everybody's queries; look at
    enrolments and the audit. ADMINISTRATOR: people, grants, enrolment of gateways.
    """

    VIEWER = "viewer"
    ANALYST = "analyst"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"

    def may_act_as(self, other: "Role") -> bool:
        """Compare two roles: True if this one includes the other.

        Examples:
            >>> Role.OPERATOR.may_act_as(Role.ANALYST), Role.VIEWER.may_act_as(Role.ANALYST)
            (True, False)
        """
        order = tuple(Role)
        return order.index(self) >= order.index(other)


class Principal(msgspec.Struct, frozen=True):
    """Somebody who asks.

    Attributes:
        name: Of the account.
        role: Of the account, or the lower one that an API token is limited to.
        token: Name of the API token that was used, or empty.
        address: Of the client, or empty.
        sources: All that an API token lets read of sources, tables and views, in lower case; None
            without such a limit.
    """

    name: str
    role: Role
    token: str = ""
    address: str = ""
    sources: tuple[str, ...] | None = None


LOCAL = Principal("local", Role.ADMINISTRATOR)
"""Whoever asks at a console without accounts, which listens on loopback only."""
