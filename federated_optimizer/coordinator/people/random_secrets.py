"""Secrets of sessions and API tokens, and what is kept of them."""

import hashlib
import secrets

TOKEN_PREFIX = "pando_"  # noqa: S105  (by which scanners of repositories find a leaked one)
_BYTES = 32
MAX_SECRET = 128
"""Characters above which a secret is none of ours and is not hashed."""


def session_secret() -> str:
    """Return a new secret of a session: 256 random bits as text."""
    return secrets.token_urlsafe(_BYTES)


def token_secret() -> str:
    """Return a new secret of an API token."""
    return TOKEN_PREFIX + secrets.token_urlsafe(_BYTES)


def token_id() -> str:
    """Return a new id of an API token, which is no secret."""
    return secrets.token_hex(6)


def digest(secret: str) -> str:
    """Return what is kept of a secret.

    SHA-256 without salt or rounds: nobody guesses 256 random bits, and every request is hashed.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
