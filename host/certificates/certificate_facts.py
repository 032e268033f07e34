"""Contents of a certificate that services act on: names, serial number, validity."""

import datetime as dt
from dataclasses import dataclass
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from streamsql.errors import DeploymentError

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)

MAX_PEM_BYTES = 100_000
"""More is no certificate and no chain that a service needs."""


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """Contents of a certificate.

    Attributes:
        common_name: Of its subject, or empty.
        names: DNS names and IP addresses that it is for, as text, in its order.
        issuer: Common name of who signed it, or empty.
        serial: Its number at the issuer, as lower-case hexadecimal digits.
        fingerprint: SHA-256 of its DER form, as lower-case hexadecimal digits.
        valid_from: First instant of its validity.
        valid_until: Last instant of its validity.
        authority: Whether it may sign others.
        for_servers: Whether a server may show it.
        for_clients: Whether a client may show it.
    """

    common_name: str
    names: tuple[str, ...]
    issuer: str
    serial: str
    fingerprint: str
    valid_from: dt.datetime
    valid_until: dt.datetime
    authority: bool
    for_servers: bool
    for_clients: bool

    def validity_problem(self, now: dt.datetime) -> str:
        """Return why it is not valid at a time, or an empty text."""
        if now > self.valid_until:
            return f"it has expired at {self.valid_until:%Y-%m-%d %H:%M} UTC"
        if now < self.valid_from:
            return f"it is valid only from {self.valid_from:%Y-%m-%d %H:%M} UTC on"
        return ""

    def renewal_due(self, now: dt.datetime) -> bool:
        """Whether two thirds of the validity are over."""
        return now >= self.valid_from + (self.valid_until - self.valid_from) * 2 / 3


def load_certificate(pem: bytes, what: str) -> x509.Certificate:
    """Return the first certificate of a PEM text.

    Args:
        pem: The text; more certificates may follow.
        what: What it is, for errors: "certificate /data/broker.crt".

    Raises:
        DeploymentError: It is too large, or holds no certificate.
    """
    if len(pem) > MAX_PEM_BYTES:
        raise DeploymentError(f"{what}: it is larger than {MAX_PEM_BYTES} bytes")
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise DeploymentError(f"{what}: it holds no certificate in PEM form") from error


def facts_of(certificate: bytes | x509.Certificate, what: str = "certificate") -> CertificateFacts:
    """Return the contents of a certificate, or of the first one of a PEM text.

    Raises:
        DeploymentError: It holds no certificate.
    """
    if isinstance(certificate, bytes):
        certificate = load_certificate(certificate, what)
    try:
        usages = _extension(certificate, x509.ExtendedKeyUsage)
        basic = _extension(certificate, x509.BasicConstraints)
        names = _extension(certificate, x509.SubjectAlternativeName)
    except (ValueError, x509.DuplicateExtension) as error:
        raise DeploymentError(f"{what}: its extensions cannot be read ({error})") from error
    return CertificateFacts(
        common_name=common_name_of(certificate.subject),
        names=() if names is None else tuple(str(name.value) for name in names),
        issuer=common_name_of(certificate.issuer),
        serial=f"{certificate.serial_number:x}",
        fingerprint=fingerprint_of(certificate),
        valid_from=certificate.not_valid_before_utc,
        valid_until=certificate.not_valid_after_utc,
        authority=basic is not None and basic.ca,
        for_servers=usages is None or ExtendedKeyUsageOID.SERVER_AUTH in usages,
        for_clients=usages is None or ExtendedKeyUsageOID.CLIENT_AUTH in usages,
    )


def common_name_of(name: x509.Name) -> str:
    """Return the common name of a subject or an issuer, or an empty text."""
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def fingerprint_of(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate's DER form as lower-case hexadecimal digits."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def pem_of(certificate: x509.Certificate) -> bytes:
    """Return the PEM form of a certificate."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
