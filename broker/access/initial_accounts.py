"""The accounts that a broker begins with, or has to have when it starts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from broker.access.dynamic_security import (
    AclType,
    Document,
    PasswordHash,
    Role,
    client_of,
    role_name,
    role_of,
)
from broker.access.rights import SINK_ROOTS, SiteKind, rights_of
from streamsql.wire.topics import PREFIX

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
    return with_accounts(Document(), accounts, federation, sinks)


def with_accounts(
    document: Document,
    accounts: Mapping[str, Account],
    federation: str,
    sinks: tuple[str, ...] = SINK_ROOTS,
) -> Document:
    """Return a document in which these accounts have these passwords, and the rights of today.

    Other accounts stay as they are, and a disabled one stays disabled. Of a role that is there the
    rules for topics outside federations stay, which an administrator has added for sinks.

    Raises:
        WireError: A name is not an id.
    """
    clients = {client.username: client for client in document.clients}
    roles = {role.rolename: role for role in document.roles}
    for site, account in accounts.items():
        role = role_of(site, rights_of(account.kind, site, federation, sinks))
        roles[role.rolename] = _with_added(role, roles.get(role.rolename))
        old = clients.get(site)
        kept = old.password_hash if old is not None else None
        if kept is None or not kept.fits(account.password.encode()):
            kept = PasswordHash.of(account.password, secrets.token_bytes(_SALT_BYTES))
        made = client_of(site, kept, text=old.textname if old is not None else "")
        disabled = old is not None and old.disabled
        clients[site] = msgspec.structs.replace(made, disabled=disabled)
    return msgspec.structs.replace(
        document, clients=tuple(clients.values()), roles=tuple(roles.values())
    )


def with_rights_of_today(document: Document, federation: str) -> Document:
    """Return a document in which gateways and base sites have the rights that such sites have now.

    They are the accounts that may publish a birth. Others stay as they are.
    """
    roles = {role.rolename: role for role in document.roles}
    root = f"{PREFIX}/{federation}"
    for site in [client.username for client in document.clients]:
        old = roles.get(role_name(site))
        written = {acl.topic for acl in old.acls if acl.acltype is AclType.PUBLISH} if old else ()
        if f"{root}/gw/{site}/birth" in written:
            is_base = f"{root}/gw/+/cmd/packs/{site}" in written
            kind = SiteKind.BASE if is_base else SiteKind.GATEWAY
            made = role_of(site, rights_of(kind, site, federation))
            roles[made.rolename] = _with_added(made, old)
    return msgspec.structs.replace(document, roles=tuple(roles.values()))


def _with_added(role: Role, old: Role | None) -> Role:
    """Return a role with the rules of the old one that are for topics outside federations."""
    if old is None:
        return role
    added = [
        acl
        for acl in old.acls
        if not acl.topic.startswith((f"{PREFIX}/", "$")) and acl not in role.acls
    ]
    return msgspec.structs.replace(role, acls=(*role.acls, *added))
