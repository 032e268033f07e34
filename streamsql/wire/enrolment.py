"""Enrolment of a gateway: the one-time token, what a gateway sends with it, what it gets.

A token is `pando1.` and base64url of a JSON object without secrets of anybody else: the gateway's
name, the secret, and the SHA-256 of the authority's certificate, by which a gateway knows the
console before it sends the secret.
"""

import base64
import binascii
import hashlib
import re
from typing import Annotated

import msgspec

from streamsql.errors import DeploymentError, WireError
from streamsql.wire.topics import check_id

TOKEN_PREFIX = "pando1."  # noqa: S105 - of all tokens, no secret
MAX_TOKEN = 400
MAX_PEM = 20_000
MAX_ANSWER_BYTES = 200_000
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_FINGERPRINT = re.compile(r"([0-9a-f]{64})?")
_BROKEN = "the token is incomplete or damaged"
_HINT = "copy all of it, from pando1. to its last character"

Pem = Annotated[str, msgspec.Meta(max_length=MAX_PEM)]
Line = Annotated[str, msgspec.Meta(max_length=500)]


class EnrolmentToken(msgspec.Struct, frozen=True):
    """A one-time token.

    Attributes:
        gateway: Name that the gateway gets.
        secret: 32 random bytes as base64url.
        authority: SHA-256 of the certificate of the federation's authority as hexadecimal digits;
            empty where the console's certificate is of an authority that every machine trusts.
    """

    gateway: str
    secret: str
    authority: str = ""

    def encode(self) -> str:
        """Return the text that people copy."""
        body = msgspec.json.encode({"g": self.gateway, "s": self.secret, "a": self.authority})
        return TOKEN_PREFIX + base64.urlsafe_b64encode(body).decode().rstrip("=")

    def __repr__(self) -> str:
        return f"EnrolmentToken(gateway={self.gateway!r}, authority={self.authority!r})"


class _Body(msgspec.Struct, frozen=True):
    g: str
    s: str
    a: str = ""


def decode_token(text: str) -> EnrolmentToken:
    """Return what a token says; its text is in no error.

    Raises:
        DeploymentError: It is none.
    """
    text = text.strip()
    if not text.startswith(TOKEN_PREFIX):
        raise DeploymentError(
            f"this is no enrolment token: one begins with {TOKEN_PREFIX}",
            hint="an administrator makes one with `pando gateway provision NAME`",
        )
    if len(text) > MAX_TOKEN or not text.isascii():
        raise DeploymentError(_BROKEN, hint=_HINT)
    code = text.removeprefix(TOKEN_PREFIX)
    try:
        body = base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(body, type=_Body)
        check_id(found.g, "gateway")
    except (binascii.Error, ValueError, msgspec.MsgspecError, WireError):
        raise DeploymentError(_BROKEN, hint=_HINT) from None
    if not _SECRET.fullmatch(found.s) or not _FINGERPRINT.fullmatch(found.a):
        raise DeploymentError(_BROKEN, hint=_HINT)
    return EnrolmentToken(found.g, found.s, found.a)


def hash_of(secret: str) -> str:
    """Return the SHA-256 of a token's secret; it has 256 random bits, so it needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


class JoinRequest(msgspec.Struct, frozen=True):
    """A gateway's request to join.

    Attributes:
        token: As an administrator handed it over.
        request: Certificate request in PEM form, of a key that stays at the gateway.
    """

    token: Annotated[str, msgspec.Meta(max_length=MAX_TOKEN)]
    request: Pem


class JoinAnswer(msgspec.Struct, frozen=True):
    """All that a gateway needs to connect.

    Attributes:
        site: The federation.
        gateway: The gateway's name, user at the broker and client id.
        broker: Address of the broker, without user and password.
        broker_ca: Certificates in PEM form that the broker's may be signed by; empty: the
            system's.
        certificate: The gateway's in PEM form; empty: the federation issues none.
        password: At the broker.
    """

    site: Line
    gateway: Line
    broker: Line
    broker_ca: Annotated[str, msgspec.Meta(max_length=5 * MAX_PEM)]
    certificate: Pem
    password: Line

    def __repr__(self) -> str:
        return f"JoinAnswer(site={self.site!r}, gateway={self.gateway!r}, broker={self.broker!r})"
