"""Addresses that the broker may listen on, its TLS, and the name in a client's certificate."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from typing import Any


def check_address(host: str, *, secured: bool) -> str:
    """Return the address to listen on.

    Args:
        host: An IP address or `localhost`.
        secured: Whether there are TLS and accounts.

    Raises:
        ValueError: It is no address, or none of loopback and the broker is not secured.
    """
    text = "127.0.0.1" if host == "localhost" else host
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        message = (
            f"{host!r} is not an IP address; use 127.0.0.1, ::1, or an address of this machine"
        )
        raise ValueError(message) from error
    if not address.is_loopback and not secured:
        message = (
            f"without TLS and accounts the embedded broker listens on loopback only, not on "
            f"{host!r}. Give --tls-cert, --tls-key and --dynamic-security, or use 127.0.0.1 or ::1"
        )
        raise ValueError(message)
    return text


def server_context(
    certificate: Path | None, key: Path | None, authority: Path | None
) -> ssl.SSLContext | None:
    """Return the TLS context of a listener; None without certificate.

    Args:
        certificate: Chain of the broker, PEM.
        key: Its private key, PEM.
        authority: CA certificates that must have signed a client's certificate; None: no client
            needs one.

    Raises:
        ValueError: A file is missing or cannot be used; says which.
    """
    if certificate is None or key is None:
        if certificate is not None or key is not None or authority is not None:
            raise ValueError("TLS needs both --tls-cert and --tls-key")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        message = f"{certificate} with key {key} cannot be used: {_words(error)}"
        raise ValueError(message) from error
    if authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(authority)
        except (OSError, ValueError) as error:
            raise ValueError(f"{authority} cannot be used: {_words(error)}") from error
    return context


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "it is not PEM, or the key is another certificate's"
    return str(getattr(error, "strerror", "") or error)


def common_name(certificate: dict[str, Any] | None) -> str | None:
    """Return the common name of a client's certificate as `ssl` has it; None without one.

    Examples:
        >>> common_name({"subject": ((("commonName", "gw-1"),),)})
        'gw-1'
    """
    if not certificate:
        return None
    for relative in certificate.get("subject", ()):
        for name, value in relative:
            if name == "commonName":
                return str(value)
    return ""
