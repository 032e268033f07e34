"""Accounts that change while the broker runs: Mosquitto's dynamic security, kept in its file."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker.access.dynamic_security import (
    AclType,
    Client,
    Role,
    decode_document,
    encode_document,
)
from broker.access.security_changes import Accounts, Changes, CommandError
from broker.access.security_commands import (
    Command,
    RefusedCommandError,
    Response,
    decode_commands,
    encode_responses,
)
from broker.embedded.access_rules import covers
from host.files.atomic_file import PRIVATE, replace_file
from host.mqtt.topic_filters import matches

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger(__name__)
_SALT_BYTES: Final = 12
_MAX_DECISIONS: Final = 100_000
_MAX_KEPT_TOPIC: Final = 200
"""Characters of a topic whose decision is kept: others would let any client fill the memory."""


class DynamicAccess:
    """Decides by the accounts and roles of a file, and changes them as commands say.

    Args:
        file: The document, which `carry_out` replaces.
        accounts: Its content.
    """

    def __init__(self, file: Path, accounts: Accounts) -> None:
        self._file = file
        self._accounts = accounts
        self._decisions: dict[tuple[str, str, str], bool] = {}

    @classmethod
    def read(cls, file: Path) -> DynamicAccess:
        """Read a file.

        Raises:
            ValueError: It cannot be read or is no such document; says why.
        """
        try:
            document = decode_document(file.read_bytes())
        except OSError as error:
            raise ValueError(f"cannot read {file}: {error.strerror}") from error
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
        return cls(file, Accounts(document, lambda: secrets.token_bytes(_SALT_BYTES)))

    # --- AccessControl -------------------------------------------------------------------------

    def client_id(self, given: str, user: str | None) -> str:
        """Return the user's name, as `use_username_as_clientid` of Mosquitto does."""
        return user or given

    def may_connect(self, client_id: str, user: str | None, password: bytes | None) -> bool:
        """Check that the account exists, is not disabled, and has this password."""
        client = self._accounts.clients.get(user or "")
        if client is None or client.disabled or password is None:
            return False
        if client.clientid and client.clientid != client_id:
            return False
        kept = client.password_hash
        return kept is not None and kept.fits(password)

    def may_publish(self, client_id: str, user: str | None, topic: str) -> bool:
        """Check a topic; what the broker alone writes (`$SYS`) is nobody's."""
        del client_id
        if topic.startswith("$SYS/"):
            return False
        return self._decide("publish", user, topic, self._may_publish)

    def may_subscribe(self, client_id: str, user: str | None, topic_filter: str) -> bool:
        """Check a plain filter."""
        del client_id
        return self._decide("subscribe", user, topic_filter, self._may_subscribe)

    def receives_all(self, client_id: str, user: str | None, topic_filter: str) -> bool:
        """Return whether a rule allows all deliveries under a filter and none forbids any."""
        del client_id
        rules = [
            acl for role in self._roles(user) for acl in role.acls if acl.acltype is AclType.RECEIVE
        ]
        return all(acl.allow for acl in rules) and (
            self._accounts.default.publish_client_receive
            or any(covers(acl.topic, topic_filter) for acl in rules)
        )

    def may_receive(self, client_id: str, user: str | None, topic: str) -> bool:
        """Check one delivery."""
        del client_id
        return self._decide("receive", user, topic, self._may_receive)

    def _decide(
        self,
        question: str,
        user: str | None,
        topic: str,
        decide: Callable[[str | None, str], bool],
    ) -> bool:
        if len(topic) > _MAX_KEPT_TOPIC:
            return decide(user, topic)
        key = (question, user or "", topic)
        known = self._decisions.get(key)
        if known is None:
            if len(self._decisions) >= _MAX_DECISIONS:
                self._decisions.clear()
            known = self._decisions[key] = decide(user, topic)
        return known

    def _may_publish(self, user: str | None, topic: str) -> bool:
        for role in self._roles(user):
            decision = _first(role, AclType.PUBLISH, topic, matches)
            if decision is not None:
                return decision
        return self._accounts.default.publish_client_send

    def _may_subscribe(self, user: str | None, topic_filter: str) -> bool:
        for role in self._roles(user):
            decision = _first(role, AclType.SUBSCRIBE_LITERAL, topic_filter, str.__eq__)
            if decision is None:
                decision = _first(role, AclType.SUBSCRIBE_PATTERN, topic_filter, covers)
            if decision is not None:
                return decision
        return self._accounts.default.subscribe

    def _may_receive(self, user: str | None, topic: str) -> bool:
        for role in self._roles(user):
            decision = _first(role, AclType.RECEIVE, topic, matches)
            if decision is not None:
                return decision
        return self._accounts.default.publish_client_receive

    def _roles(self, user: str | None) -> list[Role]:
        """Return the roles of an account, the one that decides first in front."""
        client: Client | None = self._accounts.clients.get(user or "")
        if client is None:
            return []
        ordered = sorted(client.roles, key=lambda role: -role.priority)
        return [self._accounts.roles[role.rolename] for role in ordered]

    # --- commands ------------------------------------------------------------------------------

    def carry_out(self, payload: bytes) -> tuple[bytes, Changes]:
        """Carry out the commands of a payload and save what they changed.

        Returns:
            The payload of the answers, and what became of connected clients. If the file cannot
            be replaced nothing is changed, and every answer says so.
        """
        changes = Changes()
        try:
            commands = decode_commands(payload)
        except RefusedCommandError as refused:
            return encode_responses([refused.response]), changes
        accounts = self._accounts.copy()
        responses = [_answer(accounts, command, changes) for command in commands]
        if changes.made:
            try:
                replace_file(self._file, encode_document(accounts.document()), mode=PRIVATE)
            except OSError as error:
                _LOG.error("%s cannot be written: %s; no account changed", self._file, error)
                words = f"Cannot save {self._file.name}: {error.strerror}; nothing was changed"
                failed = [_failed(response, words) for response in responses]
                return encode_responses(failed), Changes()
            self._accounts = accounts
            self._decisions.clear()
        return encode_responses(responses), changes


def _first(
    role: Role, acltype: AclType, topic: str, fits: Callable[[str, str], bool]
) -> bool | None:
    """Return what the rule of the highest priority that fits says; None when none does."""
    rules = [acl for acl in role.acls if acl.acltype is acltype and fits(acl.topic, topic)]
    return max(rules, key=lambda acl: acl.priority).allow if rules else None


def _answer(
    accounts: Accounts, command: Command | RefusedCommandError, changes: Changes
) -> Response:
    if isinstance(command, RefusedCommandError):
        return command.response
    error, data = "", None
    try:
        data = accounts.carry_out(command, changes)
    except CommandError as refused:
        error = str(refused)
    subject = command.username or command.rolename
    _LOG.info("account command %s %r: %s", command.command[:40], subject[:80], error or "done")
    return Response(
        command=command.command,
        correlation_data=command.correlation_data,
        error=error,
        data=data or {},
    )


def _failed(response: Response, words: str) -> Response:
    return Response(
        command=response.command, correlation_data=response.correlation_data, error=words
    )
