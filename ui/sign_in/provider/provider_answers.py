"""Answers of an OpenID Connect provider over HTTP: its description, its keys, its tokens."""

import ssl
import time
from typing import Any

import httpx

from federated_optimizer.coordinator.contract.people_model import SignInRefusedError
from streamsql.errors import DeploymentError
from ui.provider_settings import ProviderSettings, check_encrypted

SECONDS = 10.0
MAX_ANSWER = 500_000
KEPT_SECONDS = 3_600.0
"""For how long description and keys are used before they are asked for again."""
AGAIN_SECONDS = 30.0
"""How often at most keys are asked for again because of a token with an unknown one."""


class ProviderAnswers:
    """Asks one provider; description and keys are kept for an hour."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._kept: dict[str, tuple[float, dict[str, Any]]] = {}

    async def endpoint(self, name: str) -> str:
        """Return the address of an endpoint from the provider's description.

        Raises:
            SignInRefusedError: The provider does not answer, or describes another one.
        """
        issuer = self._settings.issuer
        address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        described = await self._fetched(address)
        if described.get("issuer") != issuer:
            raise SignInRefusedError(
                f"the provider calls itself {described.get('issuer')!r:.200}, not {issuer!r}",
                hint="correct issuer in the setting oidc",
            )
        found = described.get(name)
        if not isinstance(found, str):
            raise SignInRefusedError(f"the provider has no {name}")
        try:
            check_encrypted(found, f"{name} of the provider")
        except DeploymentError as error:
            raise SignInRefusedError(error.message) from error
        return found

    async def keys(self, *, again: bool = False) -> dict[str, Any]:
        """Return the keys of the provider; `again` when they may have changed.

        Raises:
            SignInRefusedError: The provider does not answer.
        """
        address = await self.endpoint("jwks_uri")
        kept = self._kept.get(address)
        if again and kept is not None and time.monotonic() - kept[0] > AGAIN_SECONDS:
            del self._kept[address]
        return await self._fetched(address)

    async def token(self, code: str, verifier: str) -> dict[str, Any]:
        """Return the provider's answer to a code.

        Raises:
            SignInRefusedError: It refuses the code, or does not answer.
        """
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_url,
            "code_verifier": verifier,
            "client_id": settings.client_id,
        }
        if settings.client_secret:
            form["client_secret"] = settings.client_secret
        address = await self.endpoint("token_endpoint")
        return await self._answer("POST", address, data=form)

    async def _fetched(self, address: str) -> dict[str, Any]:
        kept = self._kept.get(address)
        if kept is not None and time.monotonic() - kept[0] < KEPT_SECONDS:
            return kept[1]
        answer = await self._answer("GET", address)
        self._kept[address] = (time.monotonic(), answer)
        return answer

    async def _answer(
        self, method: str, address: str, data: dict[str, str] | None = None
    ) -> dict[str, Any]:
        ca = self._settings.ca
        try:
            trusted = ssl.create_default_context(cafile=ca) if ca else True
            client = httpx.AsyncClient(
                timeout=SECONDS, trust_env=False, follow_redirects=False, verify=trusted
            )
            async with client, client.stream(method, address, data=data) as response:
                content = b""
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER:
                        raise SignInRefusedError("the provider's answer is too large")
                told = httpx.Response(response.status_code, content=content).json()
        except (OSError, httpx.HTTPError, ValueError) as error:
            why = f"{type(error).__name__}: {error}"
            raise SignInRefusedError(
                f"the provider at {address} gives no usable answer ({why:.200})",
                hint="try again; else an administrator looks at the setting oidc",
            ) from error
        if not isinstance(told, dict) or response.is_error:
            said = told.get("error", "") if isinstance(told, dict) else ""
            raise SignInRefusedError(
                f"the provider refuses: {response.status_code} {said!s:.100}".rstrip()
            )
        return told
