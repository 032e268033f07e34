"""Payloads of commands and answers; what is no command."""

import json

import pytest

from broker.access.rights import SiteKind, rights_of
from broker.access.security_commands import (
    MAX_COMMANDS,
    Command,
    RefusedCommandError,
    Response,
    create_site,
    decode_commands,
    decode_responses,
    encode_commands,
    encode_responses,
    list_clients,
    set_password,
)

RIGHTS = rights_of(SiteKind.GATEWAY, "gw-4", "house")


def test_a_command_has_only_its_own_fields() -> None:
    payload = encode_commands([set_password("gw-4", "secret", correlation="7")])
    assert json.loads(payload) == {
        "commands": [
            {
                "command": "setClientPassword",
                "correlationData": "7",
                "username": "gw-4",
                "password": "secret",
            }
        ]
    }


def test_commands_are_read_as_they_were_written() -> None:
    commands = [*create_site("gw-4", "secret", RIGHTS, correlation="1"), list_clients()]
    assert decode_commands(encode_commands(commands)) == commands


def test_answers_are_read_as_they_were_written() -> None:
    answers = (
        Response(command="createClient", correlation_data="1"),
        Response(command="getClient", error="Client not found"),
        Response(command="listClients", data={"clients": ["a"]}),
    )
    assert decode_responses(encode_responses(answers)) == answers


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b'{"responses": 3}', b"\xff"])
def test_what_is_no_answer_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="not an answer"):
        decode_responses(payload)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"not json", "Payload not valid JSON"),
        (b"[]", "Invalid/missing commands"),
        (b'{"commands": 3}', "Invalid/missing commands"),
        (b"[" * 100_000, "Payload not valid JSON"),
        (b"x" * 2_000_000, "Payload longer than"),
        (json.dumps({"commands": [{}] * (MAX_COMMANDS + 1)}).encode(), "More than"),
    ],
)
def test_a_malformed_payload_is_answered(payload: bytes, error: str) -> None:
    with pytest.raises(RefusedCommandError) as refused:
        decode_commands(payload)
    assert refused.value.response.error.startswith(error)
    assert refused.value.response.command == "Unknown command"


@pytest.mark.parametrize(
    ("content", "name", "error"),
    [
        (3, "Unknown command", "Command not an object"),
        ({"x": 1}, "Unknown command", "Missing command"),
        ({"command": "createClient", "username": 3}, "createClient", "Invalid/missing"),
    ],
)
def test_a_malformed_command_does_not_keep_others_from_being_read(
    content: object, name: str, error: str
) -> None:
    payload = json.dumps({"commands": [content, {"command": "listRoles"}]}).encode()
    first, second = decode_commands(payload)
    assert isinstance(first, RefusedCommandError)
    assert first.response.command == name
    assert first.response.error.startswith(error)
    assert second == Command(command="listRoles")


def test_too_many_commands_are_not_sent() -> None:
    with pytest.raises(ValueError, match="max is"):
        encode_commands([list_clients()] * (MAX_COMMANDS + 1))
