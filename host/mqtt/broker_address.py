"""Where a broker is: `mqtt://[user:password@]host[:port]`, or `mqtts://` for TLS."""

import logging
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

log = logging.getLogger(__name__)

_DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A parsed broker URL; `repr` leaves the password out."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


def parse_address(url: str) -> BrokerAddress:
    """Parse a broker URL.

    Raises:
        ValueError: Wrong scheme, no host, a bad port, or parts that mean nothing here.

    Examples:
        >>> str(parse_address("mqtt://localhost"))
        'mqtt://localhost:1883'
    """
    expected = "expected mqtt://[user:password@]host[:port] or mqtts://…"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"broker address is malformed ({error}); {expected}") from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0:
        # The text is not repeated: it may hold a password.
        raise ValueError(f"broker address has no usable scheme, host or port; {expected}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"broker address {parts.hostname!r} has a path or query; {expected}")
    try:
        parts.hostname.encode("idna")
    except UnicodeError as error:
        raise ValueError(f"broker address: {parts.hostname!r:.80} is not a host name") from error
    return BrokerAddress(
        host=parts.hostname,
        port=port or _DEFAULT_PORTS[parts.scheme],
        tls=parts.scheme == "mqtts",
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


class _ClosingSocket(ssl.SSLSocket):
    """Closes itself when its handshake fails: paho leaves that to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        """Shake hands."""
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def tls_context(
    ca: Path | None = None, cert: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """Build a verifying TLS context.

    Args:
        ca: Certificate authority that signed the broker; None uses the system's.
        cert: Our certificate, when the broker identifies clients by it.
        key: Its private key; None when `cert` holds both.

    Raises:
        ValueError: A file is missing or unreadable, or a key comes without its certificate.
    """
    if key is not None and cert is None:
        raise ValueError(f"TLS key {key} needs its certificate")
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
        context.sslsocket_class = _ClosingSocket
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if cert is not None:
            context.load_cert_chain(str(cert), None if key is None else str(key))
    except (OSError, ssl.SSLError) as error:
        raise ValueError(
            f"TLS files cannot be used (ca={ca}, cert={cert}, key={key}): {error}"
        ) from error
    return context


class CertificateFile:
    """Our certificate in a TLS context, read again when its file has changed.

    Args:
        context: Of `tls_context`, which has read it once.
        cert: The certificate.
        key: Its private key; None when `cert` holds both.
    """

    def __init__(self, context: ssl.SSLContext, cert: Path, key: Path | None) -> None:
        self._context = context
        self._cert = cert
        self._key = key
        self._read = self._stamp()

    def refresh(self) -> None:
        """Read it again if it has changed; one that cannot be used leaves the former in place."""
        stamp = self._stamp()
        if stamp == self._read:
            return
        self._read = stamp
        try:
            self._context.load_cert_chain(self._cert, self._key)
        except (OSError, ssl.SSLError) as error:
            log.warning("certificate %s cannot be used: %s", self._cert, error)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._cert.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino
