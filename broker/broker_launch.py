"""Which broker to start on this machine, with which command and Mosquitto configuration."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from streamsql.errors import DeploymentError

# Debian puts it where ordinary users' PATH does not look.
_EXTRA_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")
_PLUGIN = "mosquitto_dynamic_security.so"
_PLUGIN_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/lib")


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """Accounts and TLS of a broker that only who has an account may use.

    Attributes:
        accounts: File of `broker.access.dynamic_security`, which the broker changes.
        certificate: Chain of the broker in PEM, with `key`; None: no TLS.
        key: Its private key.
        authority: CA certificates that must have signed a client's certificate; None: clients need
            none. A client with a certificate has to give its password too: Mosquitto asks an
            account that its certificate names neither whether it is disabled nor for a password.
        host: Address to listen on.
    """

    accounts: Path
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None
    host: str = "127.0.0.1"

    def mosquitto_lines(self, port: int, plugin: Path) -> list[str]:
        """Return the part of a Mosquitto configuration that these settings are."""
        lines = [
            f"listener {port} {self.host}",
            "allow_anonymous false",
            "use_username_as_clientid true",
            f"plugin {plugin}",
            f"plugin_opt_config_file {self.accounts}",
        ]
        if self.certificate is not None:
            lines += [f"certfile {self.certificate}", f"keyfile {self.key}", "tls_version tlsv1.2"]
        if self.authority is not None:
            lines += [f"cafile {self.authority}", "require_certificate true"]
        return lines

    def arguments(self) -> list[str]:
        """Return the arguments of the embedded broker that these settings are."""
        given = {
            "--host": self.host,
            "--dynamic-security": self.accounts,
            "--tls-cert": self.certificate,
            "--tls-key": self.key,
            "--tls-ca": self.authority,
        }
        return [text for name, value in given.items() if value for text in (name, str(value))]


def find_mosquitto() -> Path | None:
    """Return the path of the mosquitto program, or None when it is not installed."""
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), *_EXTRA_FOLDERS])
    found = shutil.which("mosquitto", path=search)
    return None if found is None else Path(found)


def find_plugin(folders: Iterable[str] = _PLUGIN_FOLDERS) -> Path | None:
    """Return the path of Mosquitto's plug-in for dynamic security, or None when it is not there."""
    for folder in folders:
        # Debian has it in a folder named after the architecture.
        for pattern in (_PLUGIN, f"*/{_PLUGIN}"):
            found = next(iter(sorted(Path(folder).glob(pattern))), None)
            if found is not None:
                return found
    return None


def mosquitto_configuration(
    port: int, persistence: Path | None = None, secured: Iterable[str] = ()
) -> str:
    """Return a configuration for clients on this machine.

    Bounds are those of the embedded broker (`broker.embedded.limits`), because Mosquitto's
    own (1,000 queued, 20 in flight) lose messages in an ordinary burst between sites.

    Args:
        port: TCP port, on loopback only.
        persistence: Folder for retained messages and sessions; None keeps them in memory, so that
            a new run does not show what an old one left behind.
        secured: Lines of `BrokerSecurity`; none lets everybody on this machine in.
    """
    lines = [
        "# Written by broker.broker_launch at every start; changes are lost.",
        *(secured or (f"listener {port} 127.0.0.1", "allow_anonymous true")),
        # Who was refused is worth a line where there is somebody to refuse.
        f"connection_messages {'true' if secured else 'false'}",
        "set_tcp_nodelay true",
        "max_inflight_messages 2048",
        "max_queued_messages 100000",
        "message_size_limit 8388608",
        "persistent_client_expiration 7d",
        "log_dest stderr",
        "log_timestamp_format %Y-%m-%dT%H:%M:%S%z",
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


def mosquitto_command(
    port: int, folder: Path, *, persistent: bool = False, security: BrokerSecurity | None = None
) -> list[str]:
    """Write `mosquitto.conf` into a folder and return the command that runs it.

    Raises:
        DeploymentError: Mosquitto or the plug-in for accounts is not installed, or the folder
            cannot be written.
    """
    program = find_mosquitto()
    if program is None:
        raise DeploymentError(
            "mosquitto is not installed",
            hint="apt-get install mosquitto, or let the embedded broker run (no option needed)",
        )
    secured: list[str] = []
    if security is not None:
        plugin = find_plugin()
        if plugin is None:
            raise DeploymentError(
                f"{_PLUGIN} is not installed: this Mosquitto cannot keep accounts",
                hint="install Mosquitto 2.0.11 or later with its plug-in, or let the embedded "
                "broker run",
            )
        secured = security.mosquitto_lines(port, plugin)
    folder = folder.resolve()
    file = folder / "mosquitto.conf"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = mosquitto_configuration(port, folder if persistent else None, secured)
        file.write_text(text)
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise DeploymentError(message, hint="choose another --data folder") from error
    return [str(program), "-c", str(file)]


Preference = Literal["auto", "mosquitto", "embedded"]


def broker_command(
    port: int,
    data_dir: Path,
    prefer: Preference = "auto",
    security: BrokerSecurity | None = None,
) -> list[str]:
    """Return the command that runs a broker on a port of 127.0.0.1, for `subprocess`.

    Args:
        port: TCP port.
        data_dir: Folder for its configuration and state; made when missing.
        prefer: `auto` takes Mosquitto when it is installed (with its plug-in, if there are
            accounts) and ours otherwise.
        security: Accounts and TLS; None lets everybody on this machine in.

    Raises:
        DeploymentError: Mosquitto was asked for and is not installed, or the folder cannot be
            written.
    """
    able = find_mosquitto() is not None and (security is None or find_plugin() is not None)
    if prefer == "mosquitto" or (prefer == "auto" and able):
        return mosquitto_command(port, data_dir, security=security)
    ours = (sys.executable, "-m", "broker.embedded")
    given = [] if security is None else security.arguments()
    return [*ours, "--port", str(port), "--data", str(data_dir), *given]
