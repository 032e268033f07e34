"""Carries commands out on accounts and roles, as Mosquitto's plug-in does. Pure: nothing is kept.

Commands on groups are not known: a federation gives each account its role.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from broker.access.dynamic_security import (
    MAX_NAME,
    Acl,
    Client,
    DefaultAccess,
    Document,
    PasswordHash,
    Role,
    RoleOfClient,
)
from broker.access.security_commands import (
    CLIENT_EXISTS,
    CLIENT_NOT_FOUND,
    ROLE_EXISTS,
    ROLE_NOT_FOUND,
    Command,
)
from host.mqtt.topic_filters import check_filter

MAX_CLIENTS: Final = 10_000
MAX_ROLES: Final = 10_000
MAX_ACLS: Final = 1_000
"""Rules of one role."""


class CommandError(ValueError):
    """A command cannot be carried out; the text is the answer's `error`."""


@dataclass(slots=True)
class Changes:
    """Effects of commands on the connected clients.

    Attributes:
        made: Whether anything was changed that has to be saved.
        cut_off: Users whose connections end.
        deleted: Those of them whose sessions end too.
        touched: Users whose rights are others now, and who stay connected.
    """

    made: bool = False
    cut_off: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)


class Accounts:
    """Accounts and roles of a broker, by name.

    Args:
        document: Where they come from.
        make_salt: Returns random bytes for the hash of a new password.
    """

    def __init__(self, document: Document, make_salt: Callable[[], bytes]) -> None:
        self.default: DefaultAccess = document.default
        self.clients: dict[str, Client] = {each.username: each for each in document.clients}
        self.roles: dict[str, Role] = {each.rolename: each for each in document.roles}
        self._make_salt = make_salt
        self._handlers: dict[str, Callable[[Command, Changes], dict[str, Any] | None]] = {
            "createClient": self._create_client,
            "deleteClient": self._delete_client,
            "enableClient": self._enable_client,
            "disableClient": self._disable_client,
            "setClientPassword": self._set_password,
            "modifyClient": self._modify_client,
            "addClientRole": self._add_client_role,
            "removeClientRole": self._remove_client_role,
            "getClient": self._get_client,
            "listClients": self._list_clients,
            "createRole": self._create_role,
            "deleteRole": self._delete_role,
            "modifyRole": self._modify_role,
            "addRoleACL": self._add_acl,
            "removeRoleACL": self._remove_acl,
            "getRole": self._get_role,
            "listRoles": self._list_roles,
            "getDefaultACLAccess": self._get_default,
        }

    def document(self) -> Document:
        """Return all of it, to be saved."""
        return Document(
            default=self.default,
            clients=tuple(self.clients.values()),
            roles=tuple(self.roles.values()),
        )

    def copy(self) -> Accounts:
        """Return accounts that can be changed without changing these."""
        return Accounts(self.document(), self._make_salt)

    def carry_out(self, command: Command, changes: Changes) -> dict[str, Any] | None:
        """Carry a command out; add its effects to `changes`; return what a look-up found.

        Raises:
            CommandError: It cannot be carried out; nothing was changed.
        """
        handler = self._handlers.get(command.command)
        if handler is None:
            raise CommandError("Unknown command")
        return handler(command, changes)

    # --- accounts ------------------------------------------------------------------------------

    def _client(self, command: Command) -> Client:
        _name(command.username, "username")
        client = self.clients.get(command.username)
        if client is None:
            raise CommandError(CLIENT_NOT_FOUND)
        return client

    def _create_client(self, command: Command, changes: Changes) -> None:
        name = _name(command.username, "username")
        if name in self.clients:
            raise CommandError(CLIENT_EXISTS)
        if len(self.clients) >= MAX_CLIENTS:
            raise CommandError(f"There are {MAX_CLIENTS} clients; delete one first")
        self._put(
            self._changed(Client(username=name), command, command.roles or ()), changes, cut=False
        )

    def _delete_client(self, command: Command, changes: Changes) -> None:
        client = self._client(command)
        del self.clients[client.username]
        changes.made = True
        changes.cut_off.add(client.username)
        changes.deleted.add(client.username)

    def _enable_client(self, command: Command, changes: Changes) -> None:
        self._put(
            msgspec.structs.replace(self._client(command), disabled=False), changes, cut=False
        )

    def _disable_client(self, command: Command, changes: Changes) -> None:
        self._put(msgspec.structs.replace(self._client(command), disabled=True), changes)

    def _set_password(self, command: Command, changes: Changes) -> None:
        client = self._client(command)
        if not command.password:
            raise CommandError("Invalid/missing password")
        self._put(self._with_password(client, command.password), changes)

    def _modify_client(self, command: Command, changes: Changes) -> None:
        client = self._client(command)
        self._put(self._changed(client, command, command.roles or client.roles), changes)

    def _add_client_role(self, command: Command, changes: Changes) -> None:
        client = self._client(command)
        role = self._role(command)
        kept = tuple(each for each in client.roles if each.rolename != role.rolename)
        roles = (*kept, RoleOfClient(role.rolename, command.priority))
        self._put(msgspec.structs.replace(client, roles=roles), changes)

    def _remove_client_role(self, command: Command, changes: Changes) -> None:
        client = self._client(command)
        role = self._role(command)
        roles = tuple(each for each in client.roles if each.rolename != role.rolename)
        self._put(msgspec.structs.replace(client, roles=roles), changes)

    def _changed(self, client: Client, command: Command, roles: Sequence[RoleOfClient]) -> Client:
        for role in roles:
            if role.rolename not in self.roles:
                raise CommandError(ROLE_NOT_FOUND)
        changed = msgspec.structs.replace(
            client,
            clientid=command.clientid or client.clientid,
            textname=command.textname or client.textname,
            textdescription=command.textdescription or client.textdescription,
            roles=tuple(roles),
        )
        return self._with_password(changed, command.password) if command.password else changed

    def _with_password(self, client: Client, password: str) -> Client:
        made = PasswordHash.of(password, self._make_salt())
        return msgspec.structs.replace(
            client, password=made.password, salt=made.salt, iterations=made.iterations
        )

    def _put(self, client: Client, changes: Changes, *, cut: bool = True) -> None:
        self.clients[client.username] = client
        changes.made = True
        if cut:
            changes.cut_off.add(client.username)

    def _get_client(self, command: Command, _changes: Changes) -> dict[str, Any]:
        return {"client": _shown_client(self._client(command))}

    def _list_clients(self, command: Command, _changes: Changes) -> dict[str, Any]:
        names = _page(sorted(self.clients), command)
        shown = [_shown_client(self.clients[n]) for n in names] if command.verbose else names
        return {"totalCount": len(self.clients), "clients": shown}

    # --- roles ---------------------------------------------------------------------------------

    def _role(self, command: Command, missing: str = ROLE_NOT_FOUND) -> Role:
        _name(command.rolename, "rolename")
        role = self.roles.get(command.rolename)
        if role is None:
            raise CommandError(missing)
        return role

    def _create_role(self, command: Command, changes: Changes) -> None:
        name = _name(command.rolename, "rolename")
        if name in self.roles:
            raise CommandError(ROLE_EXISTS)
        if len(self.roles) >= MAX_ROLES:
            raise CommandError(f"There are {MAX_ROLES} roles; delete one first")
        self.roles[name] = Role(
            rolename=name,
            textname=command.textname,
            textdescription=command.textdescription,
            acls=_checked_acls(command.acls or ()),
        )
        changes.made = True

    def _delete_role(self, command: Command, changes: Changes) -> None:
        role = self._role(command)
        for client in self._clients_with(role.rolename):
            roles = tuple(each for each in client.roles if each.rolename != role.rolename)
            self._put(msgspec.structs.replace(client, roles=roles), changes)
        del self.roles[role.rolename]
        changes.made = True

    def _modify_role(self, command: Command, changes: Changes) -> None:
        role = self._role(command, "Role does not exist")
        changed = msgspec.structs.replace(
            role,
            textname=command.textname or role.textname,
            textdescription=command.textdescription or role.textdescription,
            acls=role.acls if command.acls is None else _checked_acls(command.acls),
        )
        self._put_role(changed, changes)

    def _add_acl(self, command: Command, changes: Changes) -> None:
        role = self._role(command)
        acltype, topic = _rule_of(command)
        if any(each.acltype is acltype and each.topic == topic for each in role.acls):
            raise CommandError("ACL with this topic already exists")
        added = Acl(acltype=acltype, topic=topic, priority=command.priority, allow=command.allow)
        acls = _checked_acls((*role.acls, added))
        self._put_role(msgspec.structs.replace(role, acls=acls), changes)

    def _remove_acl(self, command: Command, changes: Changes) -> None:
        role = self._role(command)
        acltype, topic = _rule_of(command)
        acls = tuple(e for e in role.acls if e.acltype is not acltype or e.topic != topic)
        if len(acls) == len(role.acls):
            raise CommandError("ACL not found")
        self._put_role(msgspec.structs.replace(role, acls=acls), changes)

    def _put_role(self, role: Role, changes: Changes) -> None:
        self.roles[role.rolename] = role
        changes.made = True
        changes.touched.update(client.username for client in self._clients_with(role.rolename))

    def _clients_with(self, rolename: str) -> list[Client]:
        return [
            client
            for client in self.clients.values()
            if any(role.rolename == rolename for role in client.roles)
        ]

    def _get_role(self, command: Command, _changes: Changes) -> dict[str, Any]:
        return {"role": _shown_role(self._role(command))}

    def _list_roles(self, command: Command, _changes: Changes) -> dict[str, Any]:
        names = _page(sorted(self.roles), command)
        shown = [_shown_role(self.roles[n]) for n in names] if command.verbose else names
        return {"totalCount": len(self.roles), "roles": shown}

    def _get_default(self, _command: Command, _changes: Changes) -> dict[str, Any]:
        default: dict[str, bool] = msgspec.to_builtins(self.default)
        return {"acls": [{"acltype": name, "allow": allow} for name, allow in default.items()]}


def _name(text: str, field_name: str) -> str:
    if not text or len(text) > MAX_NAME:
        raise CommandError(f"Invalid/missing {field_name}")
    if not text.isprintable():
        raise CommandError(f"{field_name.capitalize()} not valid UTF-8")
    return text


def _rule_of(command: Command) -> tuple[Any, str]:
    if command.acltype is None:
        raise CommandError("Invalid/missing acltype")
    if not command.topic:
        raise CommandError("Invalid/missing topic")
    return command.acltype, command.topic


def _checked_acls(acls: Sequence[Acl]) -> tuple[Acl, ...]:
    if len(acls) > MAX_ACLS:
        raise CommandError(f"{len(acls)} ACLs; the max is {MAX_ACLS}")
    for acl in acls:
        try:
            check_filter(acl.topic)
        except ValueError as error:
            raise CommandError(f"Invalid/missing topic: {error}") from error
    return tuple(acls)


def _page(names: list[str], command: Command) -> list[str]:
    rest = names[max(0, command.offset) :]
    return rest if command.count < 0 else rest[: command.count]


def _shown_client(client: Client) -> dict[str, Any]:
    """Return an account without its password."""
    hidden = msgspec.structs.replace(client, password="", salt="", iterations=0)
    shown: dict[str, Any] = msgspec.to_builtins(hidden)
    return {**shown, "roles": msgspec.to_builtins(client.roles), "groups": []}


def _shown_role(role: Role) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(role)
    return {**shown, "acls": msgspec.to_builtins(role.acls)}
