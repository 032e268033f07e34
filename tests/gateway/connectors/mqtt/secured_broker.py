"""Mosquitto with a password or certificates, and a broker behind a gate that refuses MQTT 5."""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.broker_launch import find_mosquitto
from broker.broker_testing import BrokerProcess
from tests.certificates import make_certificate

USER, PASSWORD = "gateway", "pass word: 7"


def mosquitto_folder(folder: Path) -> Path:
    """Return the folder, if there is a Mosquitto to run in it."""
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    return folder


def configure(folder: Path, more: list[str]) -> None:
    """Replace in the configuration of a broker who is let in."""
    file = folder / "mosquitto.conf"
    lines = [line for line in file.read_text().splitlines() if "allow_anonymous" not in line]
    file.write_text("\n".join([*lines, *more]) + "\n")


class SecuredBroker(BrokerProcess):
    """Mosquitto that lets nobody in without a password or a certificate of our authority."""

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        super().__init__("mosquitto", mosquitto_folder(folder))
        self.tls = tls
        self.folder = folder
        configure(folder, self._tls() if tls else self._password())

    @property
    def address(self) -> str:
        """For endpoints."""
        return f"mqtts://127.0.0.1:{self.port}" if self.tls else self.url

    def certificate(self, name: str) -> dict[str, object]:
        """Make a client's certificate; return the options of an endpoint that shows it."""
        make_certificate(self.folder, name, name)
        files = {"ca": "ca.crt", "cert": f"{name}.crt", "key": f"{name}.key"}
        return {option: str(self.folder / file) for option, file in files.items()}

    def _password(self) -> list[str]:
        program = shutil.which("mosquitto_passwd", path="/usr/bin:/usr/local/bin:/opt/homebrew/bin")
        if program is None:
            pytest.skip("mosquitto_passwd is not installed")
        passwords = self.folder / "passwords"
        made = [program, "-b", "-c", str(passwords), USER, PASSWORD]
        subprocess.run(made, check=True, capture_output=True)
        return ["allow_anonymous false", f"password_file {passwords}"]

    def _tls(self) -> list[str]:
        for name in ("ca", "broker"):
            make_certificate(self.folder, name, name)
        return [
            "allow_anonymous false",
            "require_certificate true",
            "use_identity_as_username true",
            f"cafile {self.folder / 'ca.crt'}",
            f"certfile {self.folder / 'broker.crt'}",
            f"keyfile {self.folder / 'broker.key'}",
        ]


@contextlib.asynccontextmanager
async def without_version_5(port: int, refusal: bytes) -> AsyncIterator[str]:
    """Listen before a broker; who connects with MQTT 5 gets a refusal. Yields the address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Kind, length (one byte for ours), "MQTT" with its length, version.
        begin = await reader.readexactly(9)
        if begin[8] == 5:
            writer.write(refusal)
            writer.close()
            return
        behind, before = await asyncio.open_connection("127.0.0.1", port)
        before.write(begin)
        async with asyncio.TaskGroup() as group:
            group.create_task(_pass_on(reader, before))
            group.create_task(_pass_on(behind, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
