"""No text about an endpoint shows its secrets."""

import pytest

from gateway.connectors.endpoint_secrets import Secrets

OPTIONS = {
    "url": "mqtt://me:in-the-url@broker",
    "user": "pando",
    "password": "hunter2",
    "auth": {"kind": "basic", "values": ["nested-secret", 12345678]},
    "headers": {"X-Site": "header-secret"},
    "api_token": "t0ken-longer",
    "private_key": "k",
    "port": 1883,
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("login with hunter2 refused", "login with *** refused"),
        ("nested-secret, 12345678, header-secret", "***, ***, ***"),
        ("t0ken-longer", "***"),
        ("cannot reach mqtt://me:in-the-url@broker", "cannot reach mqtt://me:***@broker"),
        ("user pando on port 1883", "user pando on port 1883"),
        ("a key is a key", "a key is a key"),
    ],
)
def test_secrets_are_replaced(text: str, shown: str) -> None:
    assert Secrets(OPTIONS).hidden(text) == shown


def test_a_longer_secret_comes_before_one_in_it() -> None:
    secrets = Secrets({"password": "abc", "token": "abcdef"})
    assert secrets.hidden("abcdef abc") == "*** ***"


def test_settings_nested_too_deeply_end() -> None:
    options: dict[str, object] = {"password": "deep-secret"}
    for _ in range(10_000):
        options = {"token": options}
    assert Secrets(options).hidden("text") == "text"
