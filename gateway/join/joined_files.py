"""Files of a gateway that has joined: settings, certificate with key, password, authority.

All are in one folder, for their owner only, and written so that a crash between two of them leaves
a gateway that can connect or one that has not joined.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from host.files.atomic_file import PRIVATE, replace_file
from host.files.json_file import read_json
from streamsql.errors import DeploymentError
from streamsql.wire.enrolment import JoinAnswer

SETTINGS = "gateway.json"
CERTIFICATE = "gateway.pem"
PASSWORD = "broker_password"  # noqa: S105 - the name of a file
AUTHORITY = "broker_ca.crt"
DATA = "data"
MAX_BYTES = 1_000_000


def check_folder(folder: Path, gateway: str) -> None:
    """Check that a folder may become, or is, the one of a gateway.

    Raises:
        DeploymentError: Another gateway lives there, or it cannot be written.
    """
    settings = folder / SETTINGS
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        present = settings.exists()
    except OSError as error:
        raise DeploymentError(f"cannot use folder {folder}: {error.strerror}") from error
    if not present:
        return
    other = _kept(settings).get("gateway")
    if other != gateway:
        raise DeploymentError(
            f"folder {folder} is the one of gateway {other!r:.80}",
            hint="give each gateway its own folder: --data DIR",
        )


def write_joined(
    folder: Path, answer: JoinAnswer, key: bytes, more: Mapping[str, Any] | None = None
) -> Path:
    """Write what a gateway has got; endpoints and other settings that are there stay.

    Args:
        folder: See `check_folder`.
        answer: The console's.
        key: Private key in PEM form.
        more: Other settings.

    Returns:
        The settings file.

    Raises:
        DeploymentError: A file cannot be written.
    """
    settings = folder / SETTINGS
    try:
        kept = _kept(settings) if settings.exists() else {"endpoints": {}}
        replace_file(folder / PASSWORD, f"{answer.password}\n".encode(), mode=PRIVATE)
        if answer.certificate:
            write_certificate(folder / CERTIFICATE, answer.certificate, key)
        if answer.broker_ca:
            replace_file(folder / AUTHORITY, answer.broker_ca.encode(), mode=PRIVATE)
        given = {
            "site": answer.site,
            "gateway": answer.gateway,
            "broker": answer.broker,
            "broker_ca": str(folder / AUTHORITY) if answer.broker_ca else "",
            "broker_cert": _certificate_of(folder, answer),
            "broker_key": "",
            "broker_password_file": str(folder / PASSWORD),
        }
        write_settings(settings, {"data_dir": str(folder / DATA), **kept, **given, **(more or {})})
    except OSError as error:
        raise DeploymentError(f"cannot write into {folder}: {error.strerror}") from error
    return settings


def write_certificate(file: Path, certificate: str, key: bytes) -> None:
    """Write a certificate and its key as one file, so that both change at once.

    Raises:
        OSError: It cannot be written.
    """
    replace_file(file, certificate.encode() + key, mode=PRIVATE)


def rename_settings(settings: Path, gateway: str) -> None:
    """Give the gateway of a settings file another name, and another folder for its data.

    What the old one holds belongs to the old name: epochs, readings with their numbers, state.

    Raises:
        DeploymentError: The file cannot be read.
        OSError: It cannot be written.
    """
    data = str(settings.parent / f"{DATA}-{gateway}")
    write_settings(settings, {**_kept(settings), "gateway": gateway, "data_dir": data})


def write_settings(file: Path, settings: dict[str, Any]) -> None:
    """Write a settings file for people to read.

    Raises:
        OSError: It cannot be written.
    """
    content = msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n"
    replace_file(file, content, mode=PRIVATE)


def _certificate_of(folder: Path, answer: JoinAnswer) -> str:
    # Only with TLS: a client without it refuses to be given files for it.
    wanted = answer.certificate and answer.broker.startswith("mqtts://")
    return str(folder / CERTIFICATE) if wanted else ""


def _kept(settings: Path) -> dict[str, Any]:
    return read_json(settings, dict[str, Any], "settings", max_bytes=MAX_BYTES)
