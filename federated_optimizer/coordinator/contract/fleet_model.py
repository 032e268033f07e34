"""Enrolment of gateways, as the console sees it."""

import enum
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from federated_optimizer.coordinator.contract.principal import Principal
from streamsql.errors import FederationError
from streamsql.wire.enrolment import JoinAnswer, JoinRequest


class EnrolmentState(enum.StrEnum):
    """Progress of an enrolment.

    PROVISIONED: a token was made and nobody has joined with it. JOINED: a gateway has credentials.
    REVOKED: the broker refuses it; it may be provisioned again.
    """

    PROVISIONED = "provisioned"
    JOINED = "joined"
    REVOKED = "revoked"


class Enrolment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A gateway that was provisioned; times are microseconds since 1970, 0 is never.

    Attributes:
        name: Of the gateway.
        made: When it was first provisioned.
        made_by: Account that did it.
        token_hash: Of the secret of the token that is still good, or empty.
        token_until: When that token expires.
        joined: When the gateway joined last.
        address: From which it joined.
        serial: Of its certificate; empty: it has none.
        valid_until: When its certificate expires.
        rotated: When its credentials were changed last.
        revoked: When the broker began to refuse it.
    """

    name: str
    state: EnrolmentState
    made: int
    made_by: str
    token_hash: str = ""
    token_until: int = 0
    joined: int = 0
    address: str = ""
    serial: str = ""
    valid_until: int = 0
    rotated: int = 0
    revoked: int = 0


@dataclass(frozen=True, slots=True)
class ProvisionedGateway:
    """A token that was just made; nobody can read it again.

    Attributes:
        token: For `pando gateway join`.
        until: Microseconds since 1970 when it expires.
    """

    name: str
    token: str = field(repr=False)
    until: int = 0


class JoinRefusedError(FederationError):
    """A gateway may not join; says as much as somebody without an account may know."""

    code = "join_refused"


class FleetApi(Protocol):
    """Gateways that administrators enrol; every change is noted in the audit."""

    @property
    def authority(self) -> str:
        """Certificate of the federation's authority in PEM form; empty where there is none."""
        ...

    def enrolments(self) -> tuple[Enrolment, ...]:
        """Return all enrolments in the order of their names."""
        ...

    async def provision(
        self, name: str, asker: Principal, *, hours: float = 24.0
    ) -> ProvisionedGateway:
        """Make account, rights and a one-time token of a gateway; an earlier token is void.

        Raises:
            FederationError: The name is no id or is taken, or the broker keeps no accounts.
        """
        ...

    async def join(self, request: JoinRequest, address: str) -> JoinAnswer:
        """Give a gateway its credentials; the token is void from then on.

        Args:
            request: The gateway's.
            address: From which it asks.

        Raises:
            JoinRefusedError: The token or the certificate request is not good.
            FederationError: The broker does not answer.
        """
        ...

    async def revoke(self, name: str, asker: Principal) -> Enrolment:
        """Let the broker refuse a gateway and cut it off.

        Raises:
            KeyError: No such gateway was provisioned.
            FederationError: The broker does not answer.
        """
        ...

    async def rotate(self, name: str, asker: Principal) -> Enrolment:
        """Give a connected gateway a new key, certificate and password.

        Raises:
            KeyError: No such gateway was provisioned.
            FederationError: It is not connected, or it or the broker does not answer.
        """
        ...

    async def rename(self, name: str, new: str, asker: Principal) -> Enrolment:
        """Give a connected gateway another name.

        Raises:
            KeyError: No such gateway was provisioned.
            FederationError: The name is taken, or the gateway or the broker does not answer.
        """
        ...

    async def retire(self, name: str, asker: Principal) -> None:
        """Remove a gateway: account, rights, and what is known of it.

        Raises:
            KeyError: No such gateway was provisioned.
            FederationError: The broker does not answer.
        """
        ...
