"""Commands on `$CONTROL/dynamic-security/v1`, and the broker's answers. Pure: nothing is sent.

One payload holds several commands; the broker carries them out in order and answers each in one
payload on `$CONTROL/dynamic-security/v1/response`, which every subscriber of that topic gets.
`correlationData` tells whose answer it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from broker.access.dynamic_security import Acl, AclType, RoleOfClient, role_name, role_of
from broker.access.rights import Right

MAX_COMMANDS: Final = 1_000
MAX_COMMAND_BYTES: Final = 1024 * 1024
MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024

# Errors, as Mosquitto words them.
CLIENT_NOT_FOUND: Final = "Client not found"
CLIENT_EXISTS: Final = "Client already exists"
ROLE_NOT_FOUND: Final = "Role not found"
ROLE_EXISTS: Final = "Role already exists"


class Command(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One command; the fields that it does not use are left out.

    Attributes:
        command: Its name, as `createClient`.
        correlation_data: Comes back with the answer.
        username: Of the account that it is about.
        clientid: The only client id that the account may use.
        password: In clear: over TLS or loopback only.
        rolename: Of the role that it is about.
        roles: Of an account.
        acls: Of a role.
        acltype: With `topic` and `allow`: a single access rule that is added or removed.
        verbose: Whether lists have the whole accounts or roles, not their names only.
        count: Max number of entries of a list; -1 for all.
        offset: Entries of a list that are passed over.
    """

    command: str
    correlation_data: str = ""
    username: str = msgspec.field(default="", name="username")
    clientid: str = msgspec.field(default="", name="clientid")
    password: str = ""
    textname: str = msgspec.field(default="", name="textname")
    textdescription: str = msgspec.field(default="", name="textdescription")
    rolename: str = msgspec.field(default="", name="rolename")
    priority: int = 0
    roles: tuple[RoleOfClient, ...] | None = None
    acls: tuple[Acl, ...] | None = None
    acltype: AclType | None = msgspec.field(default=None, name="acltype")
    topic: str = ""
    allow: bool = False
    verbose: bool = False
    count: int = -1
    offset: int = 0


class _Commands(msgspec.Struct, frozen=True):
    commands: tuple[Command, ...]


class Response(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The broker's answer to one command.

    Attributes:
        error: Why it was not carried out; empty when it was.
        data: What a list or a look-up found.
    """

    command: str
    correlation_data: str = ""
    error: str = ""
    data: dict[str, Any] = {}


class _Responses(msgspec.Struct, frozen=True):
    responses: tuple[Response, ...]


def create_site(
    site: str, password: str, rights: Sequence[Right], *, text: str = "", correlation: str = ""
) -> tuple[Command, ...]:
    """Return the commands that make the account and the role of a site."""
    role = role_of(site, rights)
    return (
        Command(
            command="createRole",
            rolename=role.rolename,
            acls=role.acls,
            correlation_data=correlation,
        ),
        Command(
            command="createClient",
            username=site,
            clientid=site,
            password=password,
            textname=text,
            roles=(RoleOfClient(role.rolename),),
            correlation_data=correlation,
        ),
    )


def delete_site(site: str, *, correlation: str = "") -> tuple[Command, ...]:
    """Return the commands that remove account and role; the broker cuts the client off.

    The client's will is not published: say that it is gone in its place.
    """
    return (
        Command(command="deleteClient", username=site, correlation_data=correlation),
        Command(command="deleteRole", rolename=role_name(site), correlation_data=correlation),
    )


def change_rights(site: str, rights: Sequence[Right], *, correlation: str = "") -> Command:
    """Return the command that gives the role of a site other rights; the client stays connected."""
    role = role_of(site, rights)
    return Command(
        command="modifyRole",
        rolename=role.rolename,
        acls=role.acls,
        correlation_data=correlation,
    )


def set_password(site: str, password: str, *, correlation: str = "") -> Command:
    """Return the command that changes a password; the broker cuts the client off."""
    return Command(
        command="setClientPassword",
        username=site,
        password=password,
        correlation_data=correlation,
    )


def disable(site: str, *, correlation: str = "") -> Command:
    """Return the command that refuses an account from now on; the broker cuts the client off.

    The client's will is not published: say that it is gone in its place.
    """
    return Command(command="disableClient", username=site, correlation_data=correlation)


def enable(site: str, *, correlation: str = "") -> Command:
    """Return the command that lets a disabled account connect again."""
    return Command(command="enableClient", username=site, correlation_data=correlation)


def list_clients(*, correlation: str = "") -> Command:
    """Return the command that lists the names of all accounts (`data["clients"]`)."""
    return Command(command="listClients", correlation_data=correlation)


def get_client(site: str, *, correlation: str = "") -> Command:
    """Return the command that shows an account (`data["client"]`), without its password."""
    return Command(command="getClient", username=site, correlation_data=correlation)


def encode_commands(commands: Sequence[Command]) -> bytes:
    """Return the payload of commands.

    Raises:
        ValueError: There are too many.
    """
    if len(commands) > MAX_COMMANDS:
        raise ValueError(f"{len(commands)} commands in one message; the max is {MAX_COMMANDS}")
    return msgspec.json.encode(_Commands(tuple(commands)))


def decode_responses(payload: bytes) -> tuple[Response, ...]:
    """Return the answers in a payload.

    Raises:
        ValueError: It is none of a broker.
    """
    if len(payload) > MAX_RESPONSE_BYTES:
        raise ValueError(f"an answer of {len(payload)} bytes; the max is {MAX_RESPONSE_BYTES}")
    try:
        return msgspec.json.decode(payload, type=_Responses).responses
    except msgspec.DecodeError as error:
        raise ValueError(f"not an answer of dynamic security: {error}") from error


def encode_responses(responses: Sequence[Response]) -> bytes:
    """Return the payload of answers."""
    return msgspec.json.encode(_Responses(tuple(responses)))


class RefusedCommandError(ValueError):
    """The payload is no command; `response` is the answer."""

    def __init__(self, command: str, error: str, correlation_data: str = "") -> None:
        super().__init__(error)
        self.response = Response(command=command, error=error, correlation_data=correlation_data)


def decode_commands(payload: bytes) -> list[Command | RefusedCommandError]:
    """Return the commands in a payload, each malformed one as what is wrong with it.

    Raises:
        RefusedCommandError: The payload as a whole is malformed.
    """
    unknown = "Unknown command"
    if len(payload) > MAX_COMMAND_BYTES:
        raise RefusedCommandError(unknown, f"Payload longer than {MAX_COMMAND_BYTES} bytes")
    try:
        content = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedCommandError(unknown, "Payload not valid JSON") from error
    commands = content.get("commands") if isinstance(content, dict) else None
    if not isinstance(commands, list):
        raise RefusedCommandError(unknown, "Invalid/missing commands")
    if len(commands) > MAX_COMMANDS:
        raise RefusedCommandError(unknown, f"More than {MAX_COMMANDS} commands")
    return [_command(each) for each in commands]


def _command(content: object) -> Command | RefusedCommandError:
    if not isinstance(content, dict):
        return RefusedCommandError("Unknown command", "Command not an object")
    name = content.get("command")
    if not isinstance(name, str):
        return RefusedCommandError("Unknown command", "Missing command")
    token = content.get("correlationData")
    try:
        return msgspec.convert(content, Command)
    except msgspec.ValidationError as error:
        told = token if isinstance(token, str) else ""
        return RefusedCommandError(name, f"Invalid/missing value: {error}", told)
