"""Passwords and access rules, in Mosquitto's formats."""

import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.embedded.access_rules import Access, covers
from host.mqtt.topic_filters import matches


def _password_line(user: str, password: str) -> str:
    salt = b"123456789012"
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 101)
    return f"{user}:$7$101${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}\n"


@pytest.fixture
def access(tmp_path: Path) -> Access:
    passwords, acl = tmp_path / "passwords", tmp_path / "acl"
    passwords.write_text(_password_line("gw1", "secret"))
    acl.write_text(
        "# rules\n"
        "topic read public/#\n\n"
        "pattern write site/gw/%c/#\n"
        "pattern read site/cmd/%c/+\n"
        "user coordinator\n"
        "topic site/#\n"
    )
    return Access.read(passwords, acl)


def test_passwords(access: Access) -> None:
    assert access.may_connect("gw1", "gw1", b"secret")
    assert not access.may_connect("gw1", "gw1", b"wrong")
    assert not access.may_connect("gw1", "gw1", None)
    assert not access.may_connect("gw2", "gw1", b"secret"), "a stolen id"
    assert not access.may_connect("gw9", "gw9", b"secret")
    assert not access.may_connect("", None, None)


def test_rights(access: Access) -> None:
    assert access.may_publish("gw1", "gw1", "site/gw/gw1/obs")
    assert not access.may_publish("gw1", "gw1", "site/gw/gw2/obs")
    assert access.may_publish("x", "coordinator", "site/gw/gw2/obs")
    assert not access.may_publish("x", "coordinator", "$SYS/broker/version")
    assert access.may_subscribe("gw1", "gw1", "site/cmd/gw1/+")
    assert access.may_subscribe("gw1", "gw1", "site/cmd/gw1/reboot")
    assert not access.may_subscribe("gw1", "gw1", "site/cmd/+/reboot")
    assert not access.may_subscribe("gw1", "gw1", "#")
    assert access.may_subscribe("anybody", None, "public/#")
    assert not access.may_subscribe("gw1", "gw1", "public/#"), "of those without a name only"


@pytest.mark.parametrize("client_id", ["+", "#", "a/b", ""])
def test_an_id_cannot_smuggle_in_wildcards(access: Access, client_id: str) -> None:
    assert not access.may_publish(client_id, client_id, f"site/gw/{client_id}/obs")
    assert not access.may_publish(client_id, client_id, "site/gw/gw1/obs")


def test_without_files_everything_is_allowed() -> None:
    access = Access.read(None, None)
    assert access.may_connect("a", None, None)
    assert access.may_publish("a", None, "t")
    assert access.may_subscribe("a", None, "#")


@pytest.mark.parametrize(
    ("passwords", "acl", "expected"),
    [
        ("gw1:plain\n", "", "line 1: expected user"),
        ("ok line\n", "", "line 1: expected user"),
        ("gw1:$7$101$!!$AAAA\n", "", "not base64"),
        ("", "\ntopic read a#\n", "line 2: filter"),
        ("", "pattern deny a\nallow everything\n", "line 2: expected user, topic or pattern"),
    ],
)
def test_malformed_files_name_the_line(
    tmp_path: Path, passwords: str, acl: str, expected: str
) -> None:
    (tmp_path / "passwords").write_text(passwords)
    (tmp_path / "acl").write_text(acl)
    with pytest.raises(ValueError, match=expected) as caught:
        Access.read(tmp_path / "passwords", tmp_path / "acl")
    assert "plain" not in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        Access.read(tmp_path / "none", None)


_levels = st.sampled_from(["a", "b", "$s", "+"])
_filters = st.tuples(st.lists(_levels, min_size=1, max_size=3), st.booleans()).map(
    lambda pair: "/".join([*pair[0], "#"] if pair[1] else pair[0])
)
_topics = st.lists(st.sampled_from(["a", "b", "$s"]), min_size=1, max_size=4).map("/".join)


@given(_filters | st.just("#"), _filters | st.just("#"), _topics)
def test_what_covers_matches_at_least_as_much(allowed: str, wanted: str, topic: str) -> None:
    if covers(allowed, wanted) and matches(wanted, topic):
        assert matches(allowed, topic)
