"""ID tokens, a provider's word on a person, checked: signature, issuer, audience, time, nonce."""

import time
import warnings
from collections.abc import Mapping
from typing import Any

import joserfc.errors
from joserfc import jwt
from joserfc.jwk import KeySet

from federated_optimizer.coordinator.contract.people_model import SignInRefusedError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of parts of the library that are not used here
    from authlib.oidc.core import CodeIDToken

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Signatures with a key pair only: a shared or no key proves nothing about the provider."""
LEEWAY_SECONDS = 60
MAX_AGE_SECONDS = 3_600
"""Of a token that was just asked for."""


class UnknownKeyError(Exception):
    """The token is signed with a key that is not among those of the provider."""


def checked_claims(  # noqa: PLR0913  (all that a token is checked against)
    token: str,
    keys: Mapping[str, Any],
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: str,
) -> Mapping[str, Any]:
    """Return the claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7).

    Args:
        token: As the provider sent it.
        keys: Its JSON Web Key Set.
        issuer: That has to have issued it.
        client_id: For whom.
        nonce: That it has to repeat.
        access_token: That came with it; its hash is compared where the token has one.

    Raises:
        UnknownKeyError: Another key signed it; the provider may have new ones.
        SignInRefusedError: It is malformed, forged, too old, or meant for somebody else.
    """
    try:
        key_set = KeySet.import_key_set({"keys": _signing(keys)})
        decoded = jwt.decode(token, key_set, algorithms=list(ALGORITHMS))
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            options={
                "iss": {"essential": True, "value": issuer},
                "aud": {"essential": True, "value": client_id},
                "exp": {"essential": True},
                "iat": {"essential": True},
            },
            params={"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(now=int(time.time()), leeway=LEEWAY_SECONDS)
    except joserfc.errors.InvalidKeyIdError as error:
        raise UnknownKeyError from error
    except (joserfc.errors.JoseError, ValueError, TypeError, KeyError) as error:
        raise SignInRefusedError(
            f"what the provider says of this person cannot be trusted: {error}"
        ) from error
    issued = claims["iat"]
    if not isinstance(issued, int | float) or time.time() - issued > MAX_AGE_SECONDS:
        raise SignInRefusedError("what the provider says of this person is too old")
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
        raise SignInRefusedError("the provider does not say who this person is")
    found: Mapping[str, Any] = dict(claims)
    return found


def _signing(keys: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the public keys for signatures; shared ones would let anybody sign who knows them."""
    listed = keys.get("keys")
    if not isinstance(listed, list):
        raise ValueError("the provider has no keys")
    return [
        key
        for key in listed[:50]
        if isinstance(key, dict)
        and key.get("kty") in ("RSA", "EC", "OKP")
        and key.get("use") != "enc"
    ]
