"""The accounts that a broker begins with."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from broker.access.dynamic_security import Document, PasswordHash, client_of, role_of
from broker.access.rights import SINK_ROOTS, SiteKind, rights_of

_SALT_BYTES = 12
_PASSWORD_BYTES = 32


@dataclass(frozen=True, slots=True)
class Account:
    """A client of the broker; the password is in clear."""

    kind: SiteKind
    password: str


def kind_of(site: str) -> SiteKind:
    """Return the kind that an id stands for: the one it is named after, else a gateway.

    Examples:
        >>> kind_of("static").value, kind_of("gw-1").value
        ('static', 'gateway')
    """
    return SiteKind(site) if site in set(SiteKind) else SiteKind.GATEWAY


def new_password() -> str:
    """Return a random password of 256 bits; it needs no quoting in an address."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def initial_document(
    accounts: Mapping[str, Account], federation: str, sinks: tuple[str, ...] = SINK_ROOTS
) -> Document:
    """Return the document with an account and a role for each site.

    Args:
        accounts: By id.
        federation: The federation's name.
        sinks: As in `rights_of`.

    Raises:
        WireError: A name is not an id.
    """
    return Document(
        clients=tuple(
            client_of(site, PasswordHash.of(account.password, secrets.token_bytes(_SALT_BYTES)))
            for site, account in accounts.items()
        ),
        roles=tuple(
            role_of(site, rights_of(account.kind, site, federation, sinks))
            for site, account in accounts.items()
        ),
    )
