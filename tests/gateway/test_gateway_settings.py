"""Settings: what is wrong is refused with the file's and the field's name."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.gateway_settings import FORMER, GatewaySettings, load_settings
from gateway.testing import settings_for
from streamsql.errors import DeploymentError

PLAIN = {"site": "demo", "gateway": "gw-1", "broker": "mqtt://h", "data_dir": "/d"}


def load(folder: Path, content: Any, environ: dict[str, str] | None = None) -> GatewaySettings:
    path = folder / "gw-1.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return load_settings(path, environ or {})


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, functions="mine")
    assert load(tmp_path, msgspec.json.encode(settings)) == settings


def test_the_environment_wins(tmp_path: Path) -> None:
    environ = {"PANDO_BROKER": "mqtt://other", "PANDO_SITE": "s2", "PANDO_DATA": "", "X": "y"}
    settings = load(tmp_path, PLAIN, environ)
    assert (settings.broker, settings.site, settings.data_dir) == ("mqtt://other", "s2", "/d")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"gateway": "a/b"}, "gateway 'a/b' is not an id"),
        ({"site": ""}, "site '' is not an id"),
        ({"role": "king"}, r"'king' - at `\$.role`"),
        ({"role": "static"}, "role 'static' is neither"),
        ({"grace_seconds": -1}, "grace_seconds"),
        ({"tick_ms": 0}, "tick_ms"),
        ({"keepalive": 0}, "keepalive"),
        ({"grace_second": 5}, "grace_second"),
        ({"broker": 5}, r"\$.broker"),
        ({"clock": {"speed": 0}}, "clock.speed"),
        ({"clock": {"origin": 5}}, "clock.origin"),
        ({"buffer": {"max_bytes": 0}}, "buffer.max_bytes"),
        ({"buffer": {"max_hours": 0}}, "buffer.max_hours"),
        ({"buffer": {"replay_per_second": 0}}, "buffer.replay_per_second"),
        ({"endpoints": {"home": {}}}, "home names no connector"),
        ({"endpoints": {"a": {"connector": "mqtt", "correct_times": 1}}}, "is a boolean"),
        ({"endpoints": {"a": {"connector": "mqtt", "correct_times": True}}}, "clock.correct"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DeploymentError, match=complaint) as caught:
        load(tmp_path, {**PLAIN, **changes})
    assert "gw-1.json" in str(caught.value)


@pytest.mark.parametrize("missing", PLAIN)
def test_what_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    with pytest.raises(DeploymentError, match=missing):
        load(tmp_path, {name: value for name, value in PLAIN.items() if name != missing})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'"gw-1"'])
def test_what_is_no_settings_file_is_explained(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DeploymentError, match=r"gw-1\.json"):
        load(tmp_path, content)


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="cannot read settings"):
        load_settings(tmp_path / "none.json", {})


def test_a_wrong_environment_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match=r"environment.*not an id"):
        load(tmp_path, PLAIN, {"PANDO_SITE": "a b"})


@pytest.mark.parametrize("name", FORMER)
def test_a_file_of_an_earlier_version_says_what_to_write_instead(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        DeploymentError, match=f"{name} are no longer settings of a gateway"
    ) as caught:
        load(tmp_path, {**PLAIN, name: []})
    hint = caught.value.hint
    assert '"endpoints": {"here": {"connector": "replay"' in hint
    assert "CREATE SOURCE" in hint
    assert "WITH (connector = 'replay', endpoint = 'here')" in hint


def test_the_connector_named_to_a_file_of_an_earlier_version_is_its_wrappers(
    tmp_path: Path,
) -> None:
    wrappers = [{"kind": "calendar", "options": {"location": "a.ics"}}, 5]
    with pytest.raises(
        DeploymentError, match="sources and wrappers are no longer settings"
    ) as caught:
        load(tmp_path, {**PLAIN, "sources": [], "wrappers": wrappers})
    assert "connector = 'calendar'" in caught.value.hint
