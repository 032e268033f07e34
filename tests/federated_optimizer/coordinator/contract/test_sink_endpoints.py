"""Endpoints of sinks in settings: checked, and no secret in what is said."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.sink_endpoints import (
    MqttSinkEndpoint,
    WebhookEndpoint,
    sink_endpoints,
)
from streamsql.errors import DeploymentError

HOOK = {"connector": "webhook", "url": "https://host.example/x", "secret": "0123456789abcdef"}
HOME = {"connector": "mqtt", "address": "mqtt://host.example", "username": "u@", "password": "s3/t"}


def test_endpoints_are_read() -> None:
    found = sink_endpoints({"hook": HOOK, "home": HOME, "other": {**HOME, "username": ""}})
    hook, home, other = found["hook"], found["home"], found["other"]
    assert isinstance(hook, WebhookEndpoint)
    assert hook.signing_key == b"0123456789abcdef"
    assert isinstance(home, MqttSinkEndpoint)
    assert home.url == "mqtt://u%40:s3%2Ft@host.example"
    assert isinstance(other, MqttSinkEndpoint)
    assert other.url == "mqtt://host.example"


def test_secrets_of_the_standard_are_base64() -> None:
    hook = sink_endpoints({"hook": {**HOOK, "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="}})["hook"]
    assert isinstance(hook, WebhookEndpoint)
    assert hook.signing_key == b"0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a b", HOOK, "not the name of an endpoint"),
        ("hook", {**HOOK, "secret": "s3cret"}, "hook: secret is shorter than 16 bytes"),
        ("hook", {**HOOK, "secret": "whsec_s3cret!"}, "no base64"),
        ("hook", {**HOOK, "url": "s3cret://host"}, "url is not an address"),
        ("hook", {**HOOK, "headers": {"a": "s3cret\r\nb: c"}}, "other than ASCII"),
        ("hook", {**HOOK, "headers": {f"h{n}": "s3cret" for n in range(21)}}, "more than 20"),
        ("hook", {**HOOK, "colour": "s3cret"}, "hook has no option `colour`"),
        ("home", {**HOME, "address": "s3cret"}, "no usable scheme"),
        ("home", {**HOME, "keepalive": 0}, "keepalive must be"),
        ("home", {**HOME, "client_id": "s3cret" * 20}, "more than 100"),
        ("home", {"connector": "kafka"}, "kafka"),
        ("hook", {"connector": "webhook", "url": "https://h"}, "endpoint hook needs `secret`"),
        ("home", {}, "connector"),
        ("home", [], "JSON object"),
    ],
)
def test_what_is_wrong_is_said_without_secrets(
    name: str, value: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeploymentError, match=message) as refused:
        sink_endpoints({name: value})
    assert "s3cret" not in str(refused.value)
