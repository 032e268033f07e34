"""Why a broker cannot be reached, in words: what happened, and what to do about it."""

import errno
import socket
import ssl
from dataclasses import dataclass

from host.mqtt.broker_address import BrokerAddress

_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN)


_NOT_AUTHORIZED = 0x87
_PUBACK_REASONS = {
    0x80: "unspecified error",
    0x83: "implementation specific error",
    0x90: "topic name invalid",
    0x91: "packet identifier in use",
    0x97: "quota exceeded",
    0x99: "payload format invalid",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt: what happened, and what to do about it, or empty."""

    reason: str
    hint: str = ""


def failure_of(error: BaseException, address: BrokerAddress) -> Failure:
    """Return what an error means that connecting raised, or reading the first bytes."""
    match error:
        case ssl.SSLCertVerificationError():
            return _untrusted(error, address)
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():  # the second of Python 3.11.2
            return _ENDED_IN_HANDSHAKE
        case ssl.SSLError():
            return _failed_tls(error)
        case socket.gaierror():
            return Failure(
                f"the host name {address.host!r} is not known ({error.strerror})",
                "correct the broker's address, or the name service of this machine",
            )
        case ConnectionRefusedError():
            return Failure(
                "nothing listens there",
                "start the broker, or correct host and port of its address",
            )
        case TimeoutError():
            return Failure(
                "it does not answer", "check its address, and firewalls between here and there"
            )
        case ConnectionResetError() | BrokenPipeError():
            return _ENDED_IN_HANDSHAKE if address.tls else ENDED_AT_ONCE
        case OSError() if error.errno in _UNREACHABLE:
            return Failure(
                f"there is no route to it ({error.strerror})", "check this machine's network"
            )
        case OSError():
            return Failure(error.strerror or str(error) or type(error).__name__)
        case _:
            return Failure(str(error) or type(error).__name__)


ENDED_AT_ONCE = Failure(
    "it closes the connection at once",
    "check that it is an MQTT broker, and whether this port expects TLS (mqtts://) or not "
    "(mqtt://)",
)
_ENDED_IN_HANDSHAKE = Failure(
    "it does not speak TLS: it closes the connection",
    "correct the port, or write mqtt:// in place of mqtts://",
)


def ended_after_handshake(*, certified: bool) -> Failure:
    """Return what it means that a broker hangs up after TLS was set up and before any answer.

    With TLS 1.3 a client has finished before the broker looks at its certificate.

    Args:
        certified: Whether we have shown a certificate.
    """
    if certified:
        return Failure(
            "it seems to reject our client certificate: it closes the connection at once",
            "use one that is valid now and signed by an authority of the broker",
        )
    return Failure(
        "it seems to ask for a client certificate: it closes the connection at once",
        "set one: broker_cert and broker_key in the settings, or PANDO_BROKER_CERT and "
        "PANDO_BROKER_KEY",
    )


def refusal_of(reason: str) -> Failure:
    """Return what a broker means that answers and refuses, by MQTT's own reason."""
    text = reason.lower()
    if "user name" in text or "password" in text:
        return Failure(
            f"it refuses the connection: {reason}",
            "correct user and password: mqtt://user:password@host:port, in PANDO_BROKER or the "
            "settings",
        )
    if "not authorized" in text or "authorised" in text:
        return Failure(
            f"it refuses the connection: {reason}",
            "set user and password (mqtt://user:password@host:port) or a client "
            "certificate (broker_cert) that the broker accepts for this id; a gateway that was "
            "revoked has to join again",
        )
    if "identifier" in text:
        return Failure(f"it refuses the connection: {reason}", "choose another id for this service")
    return Failure(f"it refuses the connection: {reason}")


def publish_refusal(code: int) -> str:
    """Return why a broker did not take a message, by its reason code (MQTT 5, 3.4.2.1).

    Examples:
        >>> publish_refusal(0x87)
        "the broker's access list forbids it (0x87 not authorized)"
        >>> publish_refusal(0xFE)
        'the broker refuses it (0xfe)'
    """
    if code == _NOT_AUTHORIZED:
        return "the broker's access list forbids it (0x87 not authorized)"
    words = _PUBACK_REASONS.get(code, "")
    return f"the broker refuses it ({code:#04x}{' ' if words else ''}{words})"


def _untrusted(error: ssl.SSLCertVerificationError, address: BrokerAddress) -> Failure:
    why = error.verify_message or str(error)
    if "mismatch" in why.lower():
        return Failure(
            f"its certificate is not for {address.host!r}: {why}",
            "use a name from the certificate, or install a broker certificate with this name",
        )
    if "expired" in why or "not yet valid" in why:
        return Failure(
            f"its certificate is not valid now: {why}", "renew it, or set this machine's clock"
        )
    return Failure(
        f"its certificate is not trusted: {why}",
        "set the authority that signed it: broker_ca in the settings, or PANDO_BROKER_CA",
    )


def _failed_tls(error: ssl.SSLError) -> Failure:
    reason = (error.reason or str(error)).upper()
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
        return Failure(
            "it asks for a client certificate",
            "set one: broker_cert and broker_key in the settings, or PANDO_BROKER_CERT and "
            "PANDO_BROKER_KEY",
        )
    if "UNKNOWN_CA" in reason or "BAD_CERTIFICATE" in reason or "CERTIFICATE_UNKNOWN" in reason:
        return Failure(
            f"it rejects our client certificate ({error.reason})",
            "use a certificate that is signed by an authority of the broker",
        )
    if "EXPIRED" in reason:
        return Failure(
            f"it rejects our client certificate ({error.reason})", "renew the client certificate"
        )
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason or "HTTP_REQUEST" in reason:
        return Failure(
            f"it does not speak TLS ({error.reason})", "correct the port, or write mqtt://"
        )
    return Failure(f"TLS failed: {error.reason or error}")
