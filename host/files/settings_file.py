"""Settings of a service: one JSON file, read once at the start; the environment overrides it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from host.files.json_file import read_json
from streamsql.errors import DeploymentError

_Settings = TypeVar("_Settings", bound=msgspec.Struct)

VARIABLES = {
    "PANDO_BROKER": "broker",
    "PANDO_BROKER_CA": "broker_ca",
    "PANDO_BROKER_CERT": "broker_cert",
    "PANDO_BROKER_KEY": "broker_key",
    "PANDO_BROKER_PASSWORD_FILE": "broker_password_file",
    "PANDO_SITE": "site",
    "PANDO_DATA": "data_dir",
    "PANDO_FUNCTIONS": "functions",
    "PANDO_METRICS_PORT": "metrics_port",
    "PANDO_METRICS_HOST": "metrics_host",
}
"""Which variable overrides which setting, at every service."""

MAX_BYTES = 1_000_000
MAX_PORT = 65_535


def require(holds: bool, complaint: str) -> None:
    """Refuse a setting.

    Raises:
        ValueError: It does not hold.
    """
    if not holds:
        raise ValueError(complaint)


def read_settings(
    path: Path,
    kind: type[_Settings],
    environ: Mapping[str, str],
    variables: Mapping[str, str] = VARIABLES,
) -> _Settings:
    """Return the settings in a file. A variable that is empty overrides nothing.

    Args:
        path: The file.
        kind: The service's settings; its `__post_init__` refuses values that cannot work.
        environ: The environment.
        variables: Which variable overrides which setting.

    Raises:
        DeploymentError: The file or a variable is wrong; says which.
    """
    settings = read_json(
        path,
        kind,
        "settings",
        hint="give --config the path of this service's JSON settings file",
        known=kind.__struct_fields__,
        max_bytes=MAX_BYTES,
    )
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    try:
        changes = {
            field: _typed(name, environ[name], types[field])
            for name, field in variables.items()
            if environ.get(name)
        }
        return msgspec.structs.replace(settings, **changes) if changes else settings
    except DeploymentError as error:
        raise DeploymentError(
            f"environment over settings {path}: {error.message}", hint=error.hint
        ) from error
    except ValueError as error:
        raise DeploymentError(f"environment over settings {path}: {error}") from error


def _typed(name: str, text: str, kind: Any) -> object:
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name} is {text!r:.80}: {error}") from None


def check_port(port: int, setting: str) -> None:
    """Refuse what is neither a port nor 0.

    Raises:
        ValueError: It is neither.
    """
    require(0 <= port <= MAX_PORT, f"{setting} must be between 0 and {MAX_PORT}")
