"""HTTPS requests to the console of a federation whose authority is known by its fingerprint only.

The console hands out its authority's certificate to everybody. It is believed when its fingerprint
is the one in the token; then a second connection, verified by it, carries the secret.
"""

import hashlib
import http.client
import ipaddress
import json
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from streamsql.errors import DeploymentError
from streamsql.wire.enrolment import MAX_ANSWER_BYTES, JoinAnswer, JoinRequest

AUTHORITY = "/api/fleet/authority"
JOIN = "/api/fleet/join"
SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ConsoleAddress:
    """Address of a console."""

    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def console_address(url: str) -> ConsoleAddress:
    """Parse a console's URL.

    Raises:
        DeploymentError: It is none, or would carry secrets in clear to another machine.
    """
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port
    except ValueError as error:
        raise DeploymentError(f"{url!r:.200} is no address of a console: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DeploymentError(
            f"{url!r:.200} is no address of a console",
            hint="write for example https://console.example:8420",
        )
    tls = parts.scheme == "https"
    if not tls and not _is_loopback(parts.hostname):
        raise DeploymentError(
            f"{url!r:.200} is not encrypted: everybody on the way could read the token",
            hint="write https://, and let the console speak TLS (settings tls_cert and tls_key)",
        )
    return ConsoleAddress(parts.hostname, port or (443 if tls else 80), tls)


def fetch_authority(address: ConsoleAddress, fingerprint: str) -> str:
    """Return the certificate of the federation's authority in PEM form.

    Args:
        address: Of the console; its certificate is not checked here.
        fingerprint: SHA-256 that the authority's certificate has to have.

    Raises:
        DeploymentError: The console cannot be reached, or has another authority.
    """
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    pem = _request(address, unverified, "GET", AUTHORITY).decode("ascii", "replace")
    try:
        found = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    except ValueError as error:
        raise DeploymentError(f"console {address}: its authority has no certificate") from error
    if found != fingerprint:
        raise DeploymentError(
            f"console {address} is not the one that made the token: its authority is another",
            hint="check the address; somebody between here and there may answer in its place",
        )
    return pem


def send_request(
    address: ConsoleAddress, request: JoinRequest, authority: str, ca: Path | None
) -> JoinAnswer:
    """Send the token and the certificate request; return the credentials.

    Args:
        address: Of the console.
        request: Token and certificate request.
        authority: Certificate in PEM form that is trusted besides the system's, or empty.
        ca: File with such certificates, or None.

    Raises:
        DeploymentError: The console cannot be reached, is not trusted, or refuses.
    """
    try:
        verified = ssl.create_default_context()
        if authority:
            verified.load_verify_locations(cadata=authority)
        if ca is not None:
            verified.load_verify_locations(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise DeploymentError(f"certificates in {ca} cannot be used: {error}") from error
    content = _request(address, verified, "POST", JOIN, msgspec.json.encode(request))
    try:
        return msgspec.json.decode(content, type=JoinAnswer)
    except msgspec.MsgspecError as error:
        raise DeploymentError(f"console {address} answered something else: {error}") from error


def _request(
    address: ConsoleAddress, context: ssl.SSLContext, method: str, path: str, body: bytes = b""
) -> bytes:
    connection = (
        http.client.HTTPSConnection(address.host, address.port, timeout=SECONDS, context=context)
        if address.tls
        else http.client.HTTPConnection(address.host, address.port, timeout=SECONDS)
    )
    headers = {"Accept": "application/json"}
    if body:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body or None, headers)
        response = connection.getresponse()
        content = response.read(MAX_ANSWER_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(address, error) from error
    finally:
        connection.close()
    if len(content) > MAX_ANSWER_BYTES:
        raise DeploymentError(f"console {address} answered more than {MAX_ANSWER_BYTES} bytes")
    if response.status != http.client.OK:
        raise _refused(address, response.status, content)
    return content


def _unreachable(address: ConsoleAddress, error: Exception) -> DeploymentError:
    match error:
        case ssl.SSLCertVerificationError():
            why = f"its certificate is not accepted: {error.verify_message}"
            hint = "use a name that its certificate has, or give its authority: --ca FILE"
        case ssl.SSLError():
            why, hint = f"TLS failed: {error.reason or error}", "does it speak TLS at this port?"
        case socket.gaierror():
            why, hint = f"the host name is not known ({error.strerror})", "correct the address"
        case ConnectionRefusedError():
            why, hint = "nothing listens there", "start the console, or correct host and port"
        case TimeoutError():
            why, hint = "it does not answer", "check firewalls between here and there"
        case http.client.HTTPException():
            why, hint = "it does not speak HTTP", "write https:// if it expects TLS"
        case _:
            why, hint = str(error), ""
    return DeploymentError(f"console {address} cannot be reached: {why}", hint=hint)


def _refused(address: ConsoleAddress, status: int, content: bytes) -> DeploymentError:
    try:
        problem: dict[str, Any] = json.loads(content)["error"]
        message, hint = str(problem["message"])[:500], str(problem.get("hint") or "")[:500]
        code = str(problem.get("code") or "")[:60]
    except (ValueError, KeyError, TypeError):
        return DeploymentError(f"console {address} answered with status {status}")
    return DeploymentError(f"console {address} refuses: {message}", hint=hint, code=code)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
