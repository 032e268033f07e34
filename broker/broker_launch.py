"""Which broker to start on this machine, and with which command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from broker.mosquitto import find_mosquitto, mosquitto_command

Preference = Literal["auto", "mosquitto", "embedded"]


def broker_command(port: int, data_dir: Path, prefer: Preference = "auto") -> list[str]:
    """Return the command that runs a broker on a loopback port, for `subprocess`.

    Args:
        port: TCP port on 127.0.0.1.
        data_dir: Folder for its configuration and state; made when missing.
        prefer: `auto` takes Mosquitto when it is installed and ours otherwise.

    Raises:
        DeploymentError: Mosquitto was asked for and is not installed, or the folder cannot be
            written.
    """
    if prefer == "mosquitto" or (prefer == "auto" and find_mosquitto() is not None):
        return mosquitto_command(port, data_dir)
    return [
        sys.executable,
        "-m",
        "broker.embedded",
        "--port",
        str(port),
        "--data",
        str(data_dir),
    ]
