"""Settings of a provider: what is refused when the console starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.principal import Role
from streamsql.errors import DeploymentError
from ui.console_settings import load_settings

GOOD = {"issuer": "https://id.example", "client_id": "c", "public_url": "https://pando.example/"}


def load(folder: Path, oidc: dict[str, Any]) -> Any:
    file = folder / "console.json"
    file.write_text(json.dumps({"broker": "mqtt://h", "data_dir": "/tmp", "oidc": oidc}))  # noqa: S108
    return load_settings(file, {}).oidc


def test_settings_are_read(tmp_path: Path) -> None:
    found = load(tmp_path, {**GOOD, "role_claim": "groups", "roles": {"a": "operator"}})
    assert found.redirect_url == "https://pando.example/sign-in/return"
    assert found.role_of({"groups": ["a"]}) == Role.OPERATOR
    assert found.role_of({"groups": "b"}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://id.example"},
        {"issuer": "id.example"},
        {"public_url": "http://pando.example"},
        {"public_url": "https://"},
        {"client_id": ""},
        {"scopes": "profile"},
        {"roles": {"a": "king"}},
        {"rolls": {}},
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(DeploymentError):
        load(tmp_path, {**GOOD, **wrong})
