"""Which broker to start on this machine, with which command and Mosquitto configuration."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from pathlib import Path
from typing import Literal

from streamsql.errors import DeploymentError

# Debian puts it where ordinary users' PATH does not look.
_EXTRA_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")


def find_mosquitto() -> Path | None:
    """Return the path of the mosquitto program, or None when it is not installed."""
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), *_EXTRA_FOLDERS])
    found = shutil.which("mosquitto", path=search)
    return None if found is None else Path(found)


def mosquitto_configuration(port: int, persistence: Path | None = None) -> str:
    """Return a configuration for clients on this machine.

    Bounds are those of the embedded broker (`broker.embedded.limits`), because Mosquitto's
    own (1,000 queued, 20 in flight) lose messages in an ordinary burst between sites.

    Args:
        port: TCP port, on loopback only.
        persistence: Folder for retained messages and sessions; None keeps them in memory, so that
            a new run does not show what an old one left behind.
    """
    lines = [
        "# Written by broker.broker_launch at every start; changes are lost.",
        f"listener {port} 127.0.0.1",
        "allow_anonymous true",
        "connection_messages false",
        "set_tcp_nodelay true",
        "max_inflight_messages 256",
        "max_queued_messages 100000",
        "message_size_limit 8388608",
        "persistent_client_expiration 7d",
        "log_dest stderr",
        "log_type error",
        "log_type warning",
        "log_type notice",
        f"persistence {'false' if persistence is None else 'true'}",
    ]
    if persistence is not None:
        lines.append(f"persistence_location {persistence}/")
    if os.geteuid() == 0:
        # Started by root it would become another user, who may not write our folders.
        lines.append(f"user {getpass.getuser()}")
    return "\n".join(lines) + "\n"


def mosquitto_command(port: int, folder: Path, *, persistent: bool = False) -> list[str]:
    """Write `mosquitto.conf` into a folder and return the command that runs it.

    Raises:
        DeploymentError: Mosquitto is not installed, or the folder cannot be written.
    """
    program = find_mosquitto()
    if program is None:
        raise DeploymentError(
            "mosquitto is not installed",
            hint="apt-get install mosquitto, or let the embedded broker run (no option needed)",
        )
    folder = folder.resolve()
    file = folder / "mosquitto.conf"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(mosquitto_configuration(port, folder if persistent else None))
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise DeploymentError(message, hint="choose another --data folder") from error
    return [str(program), "-c", str(file)]


Preference = Literal["auto", "mosquitto", "embedded"]


def broker_command(port: int, data_dir: Path, prefer: Preference = "auto") -> list[str]:
    """Return the command that runs a broker on a port of 127.0.0.1, for `subprocess`.

    Args:
        port: TCP port.
        data_dir: Folder for its configuration and state; made when missing.
        prefer: `auto` takes Mosquitto when it is installed and ours otherwise.

    Raises:
        DeploymentError: Mosquitto was asked for and is not installed, or the folder cannot be
            written.
    """
    if prefer == "mosquitto" or (prefer == "auto" and find_mosquitto() is not None):
        return mosquitto_command(port, data_dir)
    ours = (sys.executable, "-m", "broker.embedded")
    return [*ours, "--port", str(port), "--data", str(data_dir)]
