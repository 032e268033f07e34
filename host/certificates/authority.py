"""The certificate authority of a federation: one key that signs servers, gateways and services.

A certificate that it signs never may sign others. Validity begins ten minutes in the past, for
machines whose clock is behind.
"""

import datetime as dt
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID

from host.certificates.certificate_facts import facts_of, load_certificate, pem_of
from host.certificates.certificate_request import (
    CertifiedKey,
    JudgedRequest,
    key_pem,
    make_key,
    subject_of,
)
from streamsql.errors import DeploymentError

AUTHORITY_DAYS = 3_650
ISSUED_DAYS = 365
MAX_NAMES = 50
"""Host names and addresses of one certificate."""
_BEHIND = dt.timedelta(minutes=10)
_HOST_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)\Z")


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A certificate and its private key, both in PEM form."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """A certificate authority whose key is in this process."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key
        self.facts = facts_of(certificate, "certificate of the authority")

    @property
    def certificate(self) -> bytes:
        """Its own certificate in PEM form, for all who have to trust it."""
        return pem_of(self._certificate)

    @property
    def key(self) -> bytes:
        """Its private key in PEM form: a secret."""
        return key_pem(self._key)

    def sign_client(
        self, request: JudgedRequest, now: dt.datetime, *, days: int = ISSUED_DAYS
    ) -> bytes:
        """Return the PEM form of a certificate that a client shows to servers.

        Raises:
            DeploymentError: The name is empty or too long, or the authority is not valid so long.
        """
        return self._sign(request.common_name, request.public_key, (), now, days)

    def issue_client(
        self, common_name: str, now: dt.datetime, *, days: int = ISSUED_DAYS
    ) -> IssuedKey:
        """Make a key and a certificate for a client on this machine.

        Raises:
            DeploymentError: The name is empty or too long, or the authority is not valid so long.
        """
        key = make_key()
        made = self._sign(common_name, key.public_key(), (), now, days)
        return IssuedKey(made, key_pem(key))

    def issue_server(
        self,
        common_name: str,
        names: Sequence[str],
        now: dt.datetime,
        *,
        days: int = ISSUED_DAYS,
    ) -> IssuedKey:
        """Make a key and a certificate for a server.

        Args:
            common_name: Of the subject, for people who read it.
            names: Host names (`*.` in front of one is allowed) and IP addresses at which clients
                reach the server.
            now: The time.
            days: Validity.

        Raises:
            DeploymentError: No name, too many, one that is no host name, or the authority is not
                valid so long.
        """
        if not names:
            raise DeploymentError("a server's certificate needs at least one host name or address")
        key = make_key()
        return IssuedKey(self._sign(common_name, key.public_key(), names, now, days), key_pem(key))

    def has_signed(self, pem: bytes) -> bool:
        """Whether a certificate bears this authority's signature.

        Raises:
            DeploymentError: It holds no certificate.
        """
        try:
            load_certificate(pem, "certificate").verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True

    def _sign(
        self,
        common_name: str,
        public_key: CertifiedKey,
        names: Sequence[str],
        now: dt.datetime,
        days: int,
    ) -> bytes:
        """Sign a certificate: a server's with names, a client's without."""
        # Certificates know no parts of seconds.
        until = now.replace(microsecond=0) + dt.timedelta(days=days)
        if until > self.facts.valid_until:
            raise DeploymentError(
                f"the authority {self.facts.common_name!r} is valid only until "
                f"{self.facts.valid_until:%Y-%m-%d}",
                hint="ask for fewer days, or make a new authority and give it to all services",
            )
        usage = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _certificate(common_name, public_key, self._certificate.subject, now, until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(general_names(names)), critical=False
            )
        return pem_of(builder.sign(self._key, hashes.SHA256()))


def make_authority(name: str, now: dt.datetime, *, days: int = AUTHORITY_DAYS) -> Authority:
    """Make the key of a new authority and sign its certificate with it.

    Args:
        name: Its common name, for people: "Pando authority of building-7".
        now: The time.
        days: Validity.

    Raises:
        DeploymentError: The name is empty or longer than 64 characters.
    """
    key = make_key()
    until = now + dt.timedelta(days=days)
    builder = (
        _certificate(name, key.public_key(), subject_of(name), now, until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return Authority(builder.sign(key, hashes.SHA256()), key)


def load_authority(certificate: bytes, key: bytes) -> Authority:
    """Return the authority with this certificate and private key, both in PEM form.

    Raises:
        DeploymentError: One cannot be read, they do not belong together, or the certificate may
            not sign others.
    """
    loaded = load_certificate(certificate, "certificate of the authority")
    private = _load_key(key, "key of the authority")
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise DeploymentError("key of the authority: it is not a key on an elliptic curve")
    if private.public_key() != loaded.public_key():
        raise DeploymentError("key and certificate of the authority do not belong together")
    authority = Authority(loaded, private)
    if not authority.facts.authority:
        raise DeploymentError("certificate of the authority: it may not sign others")
    return authority


def _certificate(
    common_name: str,
    public_key: CertifiedKey,
    issuer: x509.Name,
    now: dt.datetime,
    until: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject_of(common_name))
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEHIND)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _load_key(key: bytes, what: str) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DeploymentError(f"{what}: it is no unencrypted private key in PEM form") from error


def belong_together(certificate: bytes, key: bytes) -> bool:
    """Whether a private key is the one of a certificate, both in PEM form.

    Raises:
        DeploymentError: One of them cannot be read.
    """
    private = _load_key(key, "private key")
    return private.public_key() == load_certificate(certificate, "certificate").public_key()


def general_names(names: Sequence[str]) -> list[x509.GeneralName]:
    """Return host names and addresses as certificates have them, each once.

    Raises:
        DeploymentError: There are too many, or one is neither.
    """
    if len(names) > MAX_NAMES:
        raise DeploymentError(f"a certificate has at most {MAX_NAMES} names: {len(names)}")
    return [_general_name(name) for name in dict.fromkeys(names)]


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        host = name.removeprefix("*.").encode("idna").decode("ascii").lower()
    except UnicodeError:
        host = ""
    labels = host.split(".")
    if len(host) > 253 or not all(_HOST_LABEL.match(label) for label in labels):
        raise DeploymentError(f"{name!r:.100} is neither a host name nor an IP address")
    return x509.DNSName(f"*.{host}" if name.startswith("*.") else host)
