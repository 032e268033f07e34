"""The document: our hashes, what is read back, what is refused.

Mosquitto reads it in `tests/broker/laws/test_access_rights.py`.
"""

import json
from typing import Any

import pytest

from broker.access.dynamic_security import (
    Acl,
    AclType,
    Client,
    Document,
    PasswordHash,
    acls_of,
    client_of,
    decode_document,
    encode_document,
    role_of,
)
from broker.access.rights import Mode, Right, SiteKind, rights_of


def test_a_hash_is_that_of_mosquitto() -> None:
    # Written by `mosquitto_ctrl dynsec init FILE admin adminpw` of Mosquitto 2.0.11.
    made = PasswordHash(
        "aAP9aGnbGiPQWncxpO+lsaGZ2dJ8hV1Ss+gebzwQhCLtQL5O0qnl4gAKEN9n5H88bdCqotmnPkmLQQgUiR9nsg==",
        "cuj2vGogQDq/+7Fl",
        101,
    )
    assert made.fits(b"adminpw")
    assert not made.fits(b"adminpW")


def test_a_document_is_read_as_it_was_written() -> None:
    hashed = PasswordHash.of("secret", b"0123456789ab", 101)
    gateway = client_of("gw-1", hashed)
    role = role_of("gw-1", rights_of(SiteKind.GATEWAY, "gw-1", "house"))
    document = Document(clients=(gateway,), roles=(role,))
    assert decode_document(encode_document(document)) == document
    assert hashed.fits(b"secret")


def test_nothing_is_allowed_by_default() -> None:
    written = json.loads(encode_document(Document()))
    assert written["defaultACLAccess"] == {
        "publishClientSend": False,
        "publishClientReceive": False,
        "subscribe": False,
        "unsubscribe": True,
    }


def test_a_right_to_read_allows_the_subscription_and_the_delivery() -> None:
    assert acls_of([Right(Mode.READ, "a/+"), Right(Mode.WRITE, "b")]) == (
        Acl(acltype=AclType.SUBSCRIBE_PATTERN, topic="a/+", allow=True),
        Acl(acltype=AclType.RECEIVE, topic="a/+", allow=True),
        Acl(acltype=AclType.PUBLISH, topic="b", allow=True),
    )


def test_an_account_without_password_has_no_hash() -> None:
    assert client_of("gw-1", None).password_hash is None
    assert Client(username="x").password_hash is None


ROLE = {"rolename": "r", "acls": [{"acltype": "publishClientSend", "topic": "a", "allow": True}]}
HASH = {"password": "AAAA", "salt": "AAAA", "iterations": 101}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "not a document"),
        ("{", "not a document"),
        ({"clients": [{"password": "x"}]}, "username"),
        ({"clients": [{"username": "a"}, {"username": "a"}]}, "client is there twice"),
        ({"roles": [ROLE, ROLE]}, "role is there twice"),
        ({"clients": [{"username": "a", "roles": [{"rolename": "r"}]}]}, "which is not there"),
        ({"clients": [{"username": "a", **HASH, "iterations": 0}]}, "iterations"),
        ({"clients": [{"username": "a", **HASH, "iterations": 10**9}]}, "iterations"),
        ({"clients": [{"username": "a", **HASH, "salt": "%"}]}, "base64"),
        ({"groups": [{"groupname": "g"}]}, "groups"),
        ({"clients": [{"username": "a", "groups": [{"groupname": "g"}]}]}, "groups"),
        (
            {"roles": [{"rolename": "r", "acls": [{**ROLE["acls"][0], "topic": "a/#/b"}]}]},  # type: ignore[dict-item]
            "whole last level",
        ),
        (
            {"roles": [{"rolename": "r", "acls": [{**ROLE["acls"][0], "acltype": "all"}]}]},  # type: ignore[dict-item]
            "not a document",
        ),
    ],
)
def test_a_wrong_document_is_refused(content: Any, words: str) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(ValueError, match=words) as refused:
        decode_document(text.encode())
    assert "AAAA" not in str(refused.value)
