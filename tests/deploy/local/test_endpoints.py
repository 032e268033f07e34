"""Endpoints of gateways are kept apart from statements, and privately."""

import json
import stat
from pathlib import Path

import pytest

from deploy.local.endpoints import add_endpoint, remove_endpoint
from deploy.local.kept_endpoints import read_endpoints
from deploy.local.layout import Layout
from streamsql.errors import DeploymentError

HOME = {"connector": "mqtt", "address": "mqtt://127.0.0.1:1883", "password": "s3cret"}


def test_an_endpoint_is_added_changed_and_removed(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert read_endpoints(layout, "gw-1") == {}
    add_endpoint(layout, "gw-1", "home", HOME)
    add_endpoint(layout, "gw-1", "ttn", {**HOME, "keepalive": 60})
    add_endpoint(layout, "gw-1", "home", {**HOME, "username": "u"})
    assert read_endpoints(layout, "gw-1") == {
        "home": {**HOME, "username": "u"},
        "ttn": {**HOME, "keepalive": 60},
    }
    assert read_endpoints(layout, "gw-2") == {}
    mode = stat.S_IMODE(layout.endpoints("gw-1").stat().st_mode)
    assert mode == 0o600
    remove_endpoint(layout, "gw-1", "home")
    assert list(read_endpoints(layout, "gw-1")) == ["ttn"]


def test_the_settings_of_a_running_gateway_follow(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.settings("gw-1").parent.mkdir()
    layout.settings("gw-1").write_text('{"gateway": "gw-1", "tick_ms": 7}')
    add_endpoint(layout, "gw-1", "home", HOME)
    settings = json.loads(layout.settings("gw-1").read_text())
    assert settings == {"gateway": "gw-1", "tick_ms": 7, "endpoints": {"home": HOME}}


@pytest.mark.parametrize(
    ("gateway", "name", "change", "message"),
    [
        ("gw 1", "home", {}, "gateway 'gw 1' is not an id"),
        ("gw-1", "a/b", {}, "endpoint 'a/b' is not an id"),
        ("gw-1", "home", {"connector": "mqt"}, "connector 'mqt' is not installed"),
        ("gw-1", "home", {"adress": "x"}, "has no option `adress`"),
        ("gw-1", "home", {"keepalive": 0}, "keepalive must be between"),
        ("gw-1", "home", {"address": "s3cret"}, "broker address has no usable scheme"),
    ],
)
def test_what_is_wrong_is_said_without_secrets(
    tmp_path: Path, gateway: str, name: str, change: dict[str, object], message: str
) -> None:
    layout = Layout(tmp_path)
    with pytest.raises(DeploymentError, match=message) as refusal:
        add_endpoint(layout, gateway, name, {**HOME, **change})
    assert "s3cret" not in str(refusal.value)
    assert not layout.endpoints(gateway).exists()


def test_only_what_is_there_can_be_removed(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    add_endpoint(layout, "gw-1", "home", HOME)
    with pytest.raises(DeploymentError, match="no endpoint 'hom'\nhint: it has home"):
        remove_endpoint(layout, "gw-1", "hom")


def test_sinks_have_their_endpoints_at_the_console(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    hook = {"connector": "webhook", "url": "https://host.example/x", "secret": "0123456789abcdef"}
    add_endpoint(layout, "console", "orders", hook)
    assert read_endpoints(layout, "console") == {"orders": hook}
    with pytest.raises(DeploymentError, match="secret is shorter than 16 bytes") as refusal:
        add_endpoint(layout, "console", "orders", {**hook, "secret": "s3cret"})
    assert "s3cret" not in str(refusal.value)
    with pytest.raises(DeploymentError, match=r"endpoint orders: .*modbus"):
        add_endpoint(layout, "console", "orders", {**hook, "connector": "modbus"})
