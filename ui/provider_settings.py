"""Settings of an OpenID Connect provider, and who gets which role by its claims."""

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from federated_optimizer.coordinator.contract.principal import Role
from streamsql.errors import DeploymentError


class ProviderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One provider.

    Attributes:
        issuer: Its address, as its tokens name it.
        client_id: Of this console at the provider.
        public_url: Address of this console in browsers, to which the provider sends them back.
        client_secret: Of this console; empty for a client without one.
        label: On the button of the sign-in page.
        scopes: That are asked for.
        name_claim: Claim that names a new account.
        role_claim: Claim with groups or roles, levels separated by dots; empty: roles are given on
            the page People.
        roles: Role by value of that claim; of several the highest counts.
        new_role: Role of new accounts whom `roles` gives none; empty: they are refused.
        creates_accounts: Whether whom the provider knows gets an account at the first sign-in.
        ca: File of the authority of the provider's certificate; empty: those of the system.
    """

    issuer: str
    client_id: str
    public_url: str
    client_secret: str = ""
    label: str = "single sign-on"
    scopes: str = "openid profile email"
    name_claim: str = "preferred_username"
    role_claim: str = ""
    roles: dict[str, Role] = msgspec.field(default_factory=dict)
    new_role: Role | None = None
    creates_accounts: bool = True
    ca: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot work, or would send secrets unencrypted."""
        for name in ("issuer", "public_url"):
            check_encrypted(getattr(self, name), f"setting oidc: {name}")
        if "openid" not in self.scopes.split():
            raise DeploymentError("setting oidc: scopes must contain openid")
        if not self.client_id:
            raise DeploymentError("setting oidc: client_id is empty")

    @property
    def redirect_url(self) -> str:
        """Address to which the provider sends browsers back; to be registered there."""
        return f"{self.public_url.rstrip('/')}/sign-in/return"

    def role_of(self, claims: Mapping[str, Any]) -> Role | None:
        """Return the highest role that the claims of a person give, or None."""
        found: Any = claims
        for level in self.role_claim.split("."):
            found = found.get(level) if isinstance(found, Mapping) else None
        values = found if isinstance(found, list) else [found]
        given = [
            self.roles[value] for value in values if isinstance(value, str) and value in self.roles
        ]
        return max(given, key=tuple(Role).index, default=None)


def check_encrypted(address: str, where: str) -> None:
    """Do nothing for an address that is encrypted or on this machine.

    Raises:
        DeploymentError: It is neither, or no address.
    """
    host = ""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        parts = urlsplit("")
    if parts.scheme == "https" and host:
        return
    if parts.scheme == "http" and (host == "localhost" or _is_loopback(host)):
        return
    raise DeploymentError(f"{where} is {address!r:.200}", hint="write an address with https://")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
