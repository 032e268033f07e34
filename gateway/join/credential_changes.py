"""New credentials for a running gateway, step by step as the coordinator asks.

Step `request`: a new key is made, and its certificate request answered. Step `take`: certificate,
key and password are written. The connection goes on with the old ones until the broker, which then
knows the new password, cuts it off; the files have both passwords until it takes the new one.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.gateway_settings import GatewaySettings
from gateway.join.joined_files import rename_settings, write_certificate
from host.mqtt.broker_passwords import PasswordFile
from streamsql.data.types import Value
from streamsql.errors import DeploymentError, FederationError, WireError
from streamsql.wire.enrolment import MAX_PEM
from streamsql.wire.topics import check_id

log = logging.getLogger(__name__)

KEY_SECONDS = 15.0
MAX_MADE_BYTES = 3 * MAX_PEM


class CredentialChanges:
    """Changes of the credentials of one gateway.

    Args:
        settings: Of the gateway, with a password file.
        passwords: In use by its client; None: the address of the broker holds the password.
        settings_file: Where its settings were read; None: nobody may give it another name.
        on_renamed: Called with its new name, after the answer.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        passwords: PasswordFile | None,
        settings_file: Path | None,
        on_renamed: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._passwords = passwords
        self._settings_file = settings_file
        self._on_renamed = on_renamed
        self._key = b""
        self._name = ""

    async def carry_out(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        """Do one step and return the answer to the coordinator.

        Errors are part of the answer: the credentials stay as they were then.
        """
        try:
            step, name = (
                arguments.get("step"),
                check_id(str(arguments.get("gateway", "")), "gateway"),
            )
            if step == "request":
                return await self._make_request(name)
            if step == "take":
                await asyncio.to_thread(self._take, name, arguments)
                if name != self._settings.gateway:
                    asyncio.get_running_loop().call_soon(self._on_renamed, name)
                return {"done": True, "gateway": name}
        except (FederationError, OSError, ValueError) as error:
            log.warning("credentials are not changed: %s", error)
            return {"done": False, "message": str(error)[:300]}
        return {"done": False, "message": f"unknown step {step!r:.40}"}

    async def _make_request(self, name: str) -> dict[str, Value]:
        self._check_able(name)
        made = await _made_request(name)
        key, found, request = made.partition(b"-----BEGIN CERTIFICATE REQUEST-----")
        if not found:
            raise DeploymentError("no key could be made; see the log of the gateway")
        self._key, self._name = key, name
        return {"done": True, "request": (found + request).decode("ascii")}

    def _take(self, name: str, arguments: Mapping[str, Value]) -> None:
        """Write new credentials. Blocks."""
        passwords = self._check_able(name)
        if not self._key or name != self._name:
            raise WireError("a certificate for a key that was not made here")
        certificate, password = arguments.get("certificate"), arguments.get("password")
        if not isinstance(certificate, str) or not isinstance(password, str):
            raise WireError("certificate and password have to be texts")
        if certificate and self._settings.broker_cert:
            write_certificate(Path(self._settings.broker_cert), certificate, self._key)
        passwords.replace(password)
        if name != self._settings.gateway and self._settings_file is not None:
            rename_settings(self._settings_file.resolve(), name)
        self._key = b""
        log.info("new credentials are here; the broker takes them next")

    def _check_able(self, name: str) -> PasswordFile:
        """Check that this gateway keeps its credentials in files that it may change.

        Raises:
            DeploymentError: It does not; says what to do.
        """
        if self._passwords is None:
            raise DeploymentError(
                "the gateway has its password in its broker's address, where nobody can change it",
                hint="enrol it: pando gateway provision, then pando gateway join",
            )
        if self._settings.broker_cert and self._settings.broker_key:
            raise DeploymentError(
                "the gateway has certificate and key in two files, which cannot change at once",
                hint="put both into one file, setting broker_cert, and leave broker_key empty",
            )
        if name != self._settings.gateway and self._settings_file is None:
            raise DeploymentError("the gateway was not started with a settings file")
        return self._passwords


async def _made_request(name: str) -> bytes:
    """Return a new private key and the request to certify it, in PEM form one after the other.

    Made in a process of its own: the library for it would take 8 MB of every gateway for ever.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "host.certificates.new_request", name),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(KEY_SECONDS):
            made, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise DeploymentError(f"no key was made within {KEY_SECONDS:g} s") from None
    if process.returncode or len(made) > MAX_MADE_BYTES:
        raise DeploymentError(f"no key could be made: exit status {process.returncode}")
    return made
