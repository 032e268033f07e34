"""A key and the request to certify it: made where the key stays, judged by who signs."""

from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from host.certificates.certificate_facts import common_name_of
from streamsql.errors import DeploymentError

MAX_REQUEST_BYTES = 8_192
"""A request with an RSA key of 4,096 bits has about 1,700."""
MAX_NAME_LENGTH = 64
"""Of a common name (X.520, ub-common-name)."""
MIN_RSA_BITS = 2_048
MAX_RSA_BITS = 8_192

CertifiedKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """A key that was just made and the request to certify it, both in PEM form."""

    key: bytes = field(repr=False)
    request: bytes


@dataclass(frozen=True, slots=True)
class JudgedRequest:
    """A request whose sender has the key: the name it asks for, and the public key."""

    common_name: str
    public_key: CertifiedKey


def make_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key on the curve P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the unencrypted PEM form of a private key (PKCS 8)."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def subject_of(common_name: str) -> x509.Name:
    """Return a subject with this common name only.

    Raises:
        DeploymentError: It is empty or longer than 64 characters.
    """
    if not 0 < len(common_name) <= MAX_NAME_LENGTH:
        raise DeploymentError(
            f"a certificate's name has 1 to {MAX_NAME_LENGTH} characters: {common_name!r:.100}"
        )
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def make_request(common_name: str) -> CertificateRequest:
    """Make a key and ask for a certificate with this common name.

    Raises:
        DeploymentError: The name is empty or longer than 64 characters.
    """
    key = make_key()
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject_of(common_name))
    request = builder.sign(key, hashes.SHA256())
    return CertificateRequest(key_pem(key), request.public_bytes(serialization.Encoding.PEM))


def judge_request(pem: bytes) -> JudgedRequest:
    """Return what a request from outside asks for.

    Only the name and the key are taken from it: whoever signs decides on all else.

    Raises:
        DeploymentError: It is too large or no request, its sender has not the key, or the key is
            weak or of a kind that nobody here uses.
    """
    if len(pem) > MAX_REQUEST_BYTES:
        raise DeploymentError(f"a certificate request has at most {MAX_REQUEST_BYTES} bytes")
    try:
        request = x509.load_pem_x509_csr(pem)
        sound = request.is_signature_valid
        key = request.public_key()
        name = common_name_of(request.subject)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise DeploymentError("it is no certificate request in PEM form (PKCS 10)") from error
    if not sound:
        raise DeploymentError(
            "the certificate request is not signed with the key that it asks to certify"
        )
    return JudgedRequest(name, _strong(key))


def _strong(key: object) -> CertifiedKey:
    match key:
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
            return key
        case ed25519.Ed25519PublicKey():
            return key
        case rsa.RSAPublicKey() if MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
            return key
        case _:
            raise DeploymentError(
                "the key of the certificate request is of a kind that is not accepted",
                hint=f"use EC P-256 or P-384, Ed25519, or RSA with {MIN_RSA_BITS} to "
                f"{MAX_RSA_BITS} bits",
            )
