"""The document of Mosquitto's plug-in for dynamic security: accounts, roles, access rules.

The JSON is what `mosquitto_dynamic_security.so` of Mosquitto 2.0.11 and later reads and writes;
the embedded broker reads and writes it too. An account of ours has one role, `site-ID`, made from
`broker.access.rights`; nothing is allowed that no role allows. Passwords are kept as PBKDF2 with
SHA-512.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from broker.access.rights import Mode, Right
from host.mqtt.topic_filters import check_filter

MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
MAX_NAME: Final = 200
"""Characters of the name of an account or a role."""
ITERATIONS: Final = 1_000
"""Of the password hash. Mosquitto takes 101: passwords of sites are random, and each connection
that is opened costs the broker's only thread a hash (0.6 ms for 1,000)."""
MAX_ITERATIONS: Final = 1_000_000
_HASH_BYTES: Final = 64


class AclType(StrEnum):
    """Kinds of access rules.

    PUBLISH: the client publishes. RECEIVE: a message is sent to the client. The others: the client
    subscribes to, or unsubscribes from, exactly this filter (LITERAL) or any filter that this one
    covers (PATTERN).
    """

    PUBLISH = "publishClientSend"
    RECEIVE = "publishClientReceive"
    SUBSCRIBE_LITERAL = "subscribeLiteral"
    SUBSCRIBE_PATTERN = "subscribePattern"
    UNSUBSCRIBE_LITERAL = "unsubscribeLiteral"
    UNSUBSCRIBE_PATTERN = "unsubscribePattern"


class Acl(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a role; of several that fit the one with the highest priority decides."""

    acltype: AclType
    topic: str
    priority: int = 0
    allow: bool


class RoleOfClient(msgspec.Struct, frozen=True, omit_defaults=True):
    """A role that an account has; the rules of the role with the highest priority come first."""

    rolename: str
    priority: int = 0


class Role(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named list of access rules."""

    rolename: str
    textname: str = ""
    textdescription: str = ""
    acls: tuple[Acl, ...] = ()


class PasswordHash(msgspec.Struct, frozen=True):
    """A password as it is kept."""

    password: str
    salt: str
    iterations: int

    @classmethod
    def of(cls, password: str, salt: bytes, iterations: int = ITERATIONS) -> PasswordHash:
        """Hash a password.

        Args:
            password: In clear; with enough entropy that its hash may be read by others.
            salt: Random bytes, 12 of them as Mosquitto has it.
            iterations: Of PBKDF2.
        """
        digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, iterations, _HASH_BYTES)
        return cls(base64.b64encode(digest).decode(), base64.b64encode(salt).decode(), iterations)

    def fits(self, password: bytes) -> bool:
        """Compare in constant time."""
        digest = base64.b64decode(self.password)
        salt = base64.b64decode(self.salt)
        made = hashlib.pbkdf2_hmac("sha512", password, salt, self.iterations, len(digest))
        return hmac.compare_digest(made, digest)


class Client(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An account.

    Attributes:
        clientid: The only client id that it may connect with, or empty for any.
        password: With `salt` and `iterations`: the hash. Without it nobody connects by password;
            a certificate may still do.
        disabled: It may not connect.
    """

    username: str
    clientid: str = ""
    textname: str = ""
    textdescription: str = ""
    disabled: bool = False
    roles: tuple[RoleOfClient, ...] = ()
    groups: tuple[dict[str, object], ...] = ()
    password: str = ""
    salt: str = ""
    iterations: int = 0

    @property
    def password_hash(self) -> PasswordHash | None:
        """The kept password, if there is one."""
        if not self.password:
            return None
        return PasswordHash(self.password, self.salt, self.iterations)


class DefaultAccess(msgspec.Struct, frozen=True, rename="camel"):
    """Access where no rule fits; unsubscribing harms nobody."""

    publish_client_send: bool = False
    publish_client_receive: bool = False
    subscribe: bool = False
    unsubscribe: bool = True


class Document(msgspec.Struct, frozen=True, kw_only=True, rename={"default": "defaultACLAccess"}):
    """All of it."""

    default: DefaultAccess = DefaultAccess()
    clients: tuple[Client, ...] = ()
    groups: tuple[dict[str, object], ...] = ()
    roles: tuple[Role, ...] = ()


def role_name(site: str) -> str:
    """Return the name of the role that the account of a site has."""
    return f"site-{site}"


def acls_of(rights: Sequence[Right]) -> tuple[Acl, ...]:
    """Return the rules of a role that has these rights.

    A right to read allows the subscription and each delivery: after a role was narrowed, older
    subscriptions bring nothing more.
    """
    acls: list[Acl] = []
    for right in rights:
        types = (
            (AclType.PUBLISH,)
            if right.mode is Mode.WRITE
            else (AclType.SUBSCRIBE_PATTERN, AclType.RECEIVE)
        )
        acls.extend(Acl(acltype=each, topic=right.topic, allow=True) for each in types)
    return tuple(acls)


def role_of(site: str, rights: Sequence[Right]) -> Role:
    """Return the role `site-ID` with these rights."""
    return Role(rolename=role_name(site), acls=acls_of(rights))


def client_of(site: str, password: PasswordHash | None, *, text: str = "") -> Client:
    """Return the account of a site: user name and client id are its id, its role is `site-ID`."""
    return Client(
        username=site,
        clientid=site,
        textname=text,
        roles=(RoleOfClient(role_name(site)),),
        password=password.password if password else "",
        salt=password.salt if password else "",
        iterations=password.iterations if password else 0,
    )


def encode_document(document: Document) -> bytes:
    """Return the document as the plug-in reads it, indented, the accounts in order of name."""
    ordered = msgspec.structs.replace(
        document,
        clients=tuple(sorted(document.clients, key=lambda client: client.username)),
        roles=tuple(sorted(document.roles, key=lambda role: role.rolename)),
    )
    return msgspec.json.format(msgspec.json.encode(ordered), indent=2) + b"\n"


def decode_document(content: bytes) -> Document:
    """Return what a file of the plug-in says.

    Raises:
        ValueError: It is not such a document, or has groups, which we do not evaluate.
    """
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it has {len(content)} bytes; the max is {MAX_DOCUMENT_BYTES}")
    try:
        document = msgspec.json.decode(content, type=Document)
    except msgspec.DecodeError as error:
        raise ValueError(f"it is not a document of dynamic security: {error}") from error
    if document.groups or any(client.groups for client in document.clients):
        raise ValueError("it has groups; give each client its roles and remove the groups")
    roles = {role.rolename for role in document.roles}
    if len(roles) < len(document.roles):
        raise ValueError("a role is there twice")
    if len({client.username for client in document.clients}) < len(document.clients):
        raise ValueError("a client is there twice")
    for role in document.roles:
        for acl in role.acls:
            _check_acl(role.rolename, acl)
    for client in document.clients:
        _check_client(client, roles)
    return document


def _check_acl(rolename: str, acl: Acl) -> None:
    try:
        check_filter(acl.topic)
    except ValueError as error:
        raise ValueError(f"role {rolename!r:.80}: {error}") from error


def _check_client(client: Client, roles: set[str]) -> None:
    name = f"client {client.username!r:.80}"
    for role in client.roles:
        if role.rolename not in roles:
            raise ValueError(f"{name} has the role {role.rolename!r:.80}, which is not there")
    if not client.password:
        return
    # The values are not repeated: who reads the message need not see the hash.
    if not 0 < client.iterations <= MAX_ITERATIONS:
        raise ValueError(f"{name}: iterations must be 1 to {MAX_ITERATIONS}")
    try:
        base64.b64decode(client.password, validate=True)
        base64.b64decode(client.salt, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{name}: password or salt is not base64") from error
