"""Settings of any service: a file, and the environment above it; what is wrong is named."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from host.files.json_file import read_json
from host.files.settings_file import VARIABLES, read_settings
from streamsql.errors import DeploymentError

KNOWN = "known: broker, site, kept, options"


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    days: int = 1

    def __post_init__(self) -> None:
        if self.days < 1:
            raise DeploymentError("setting days must be at least 1", hint="leave it out")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    broker: str
    site: str = "demo"
    kept: Kept = Kept()
    options: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if " " in self.site:
            raise ValueError(f"site {self.site!r} is not an id")
        if self.broker == "nowhere":
            raise DeploymentError("setting broker is nowhere", hint="say where")


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "service.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, environ: dict[str, str] | None = None) -> Settings:
    variables = {"PANDO_BROKER": "broker", "PANDO_SITE": "site"}
    return read_settings(path, Settings, environ or {}, variables)


def test_the_environment_wins_where_it_says_something(tmp_path: Path) -> None:
    path = write(tmp_path, '{"broker": "here", "site": "mine"}')
    assert read(path) == Settings("here", "mine")
    environ = {"PANDO_BROKER": "there", "PANDO_SITE": "", "PANDO_DATA": "of no matter"}
    assert read(path, environ) == Settings("there", "mine")


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        ("", "Input data was truncated", KNOWN),
        ("[]", "Expected `object`, got `array`", KNOWN),
        (b"\xff", "JSON is malformed", KNOWN),
        ("{}", "missing required field `broker`", KNOWN),
        (
            '{"broker": "b", "sight": "s"}',
            "unknown field `sight`",
            KNOWN,
        ),
        ('{"broker": 3}', r"\$.broker", KNOWN),
        (
            '{"broker": "b", "site": "a b"}',
            "site 'a b' is not an id",
            KNOWN,
        ),
        ('{"broker": "nowhere"}', "setting broker is nowhere", "say where"),
        ('{"broker": "b", "kept": {"days": 0}}', "setting days must be", "leave it out"),
        (
            '{"broker": "b", "options": {"a": ' + "[" * 100_000,
            "recursion",
            KNOWN,
        ),
        (" " * 1_000_001, "larger than 1000000 bytes", ""),
    ],
)
def test_what_is_wrong_with_a_file_is_named(
    tmp_path: Path, content: str | bytes, said: str, hint: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DeploymentError, match=rf"settings .*service\.json: .*{said}") as refusal:
        read(path)
    assert refusal.value.hint == hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.json", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(DeploymentError, match=f"cannot read settings {path}: {why}") as refusal:
            read(path)
        assert "--config" in refusal.value.hint


@pytest.mark.parametrize(
    ("variable", "value", "said", "hint"),
    [
        ("PANDO_SITE", "a b", "site 'a b' is not an id", ""),
        ("PANDO_BROKER", "nowhere", "setting broker is nowhere", "say where"),
    ],
)
def test_what_is_wrong_with_a_variable_is_said_of_the_environment(
    tmp_path: Path, variable: str, value: str, said: str, hint: str
) -> None:
    path = write(tmp_path, '{"broker": "b"}')
    with pytest.raises(DeploymentError, match=f"environment over settings .*: {said}") as refusal:
        read(path, {variable: value})
    assert refusal.value.hint == hint


def test_a_file_of_another_kind_is_called_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="cannot read motes"):
        read_json(tmp_path / "none", list[int], "motes")
    assert read_json(write(tmp_path, "[1, 2]"), list[int], "motes") == [1, 2]
    with pytest.raises(DeploymentError, match=r"motes .*Expected `int`") as refusal:
        read_json(write(tmp_path, '["a"]'), list[int], "motes")
    assert refusal.value.hint == ""


def test_every_service_has_the_settings_that_variables_override() -> None:
    from gateway.gateway_settings import GatewaySettings  # noqa: PLC0415
    from static_engine.static_settings import StaticSettings  # noqa: PLC0415
    from ui.console_settings import ConsoleSettings  # noqa: PLC0415

    for kind in (GatewaySettings, StaticSettings, ConsoleSettings):
        assert set(VARIABLES.values()) <= set(kind.__struct_fields__)
