"""Sign-in at a provider: authorization code with PKCE (RFC 7636) and nonce."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from federated_optimizer.coordinator.contract.people_model import (
    PeopleApi,
    SignedIn,
    SignInRefusedError,
)
from ui.provider_settings import ProviderSettings
from ui.sign_in.provider.id_tokens import UnknownKeyError, checked_claims
from ui.sign_in.provider.pending_sign_ins import Pending, PendingSignIns
from ui.sign_in.provider.provider_answers import ProviderAnswers

MAX_NEXT = 1_000


@dataclass(frozen=True, slots=True)
class Leaving:
    """Somebody on the way to the provider.

    Attributes:
        address: Where the browser goes.
        browser: Secret that it keeps until it comes back.
    """

    address: str
    browser: str


class ProviderSignIn:
    """Sends browsers to a provider and lets in who comes back."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._answers = ProviderAnswers(settings)
        self._pending = PendingSignIns(time.monotonic)

    async def leave(self, next_page: str) -> Leaving:
        """Return where to send a browser that asks to sign in.

        Raises:
            SignInRefusedError: The provider cannot be used.
        """
        endpoint = await self._answers.endpoint("authorization_endpoint")
        state, browser, pending = self._pending.begin(own_page(next_page))
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.settings.client_id,
                "redirect_uri": self.settings.redirect_url,
                "scope": self.settings.scopes,
                "state": state,
                "nonce": pending.nonce,
                "code_challenge": create_s256_code_challenge(pending.verifier),
                "code_challenge_method": "S256",
            }
        )
        return Leaving(f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{query}", browser)

    async def come_back(
        self, people: PeopleApi, query: Mapping[str, str], browser: str, address: str
    ) -> tuple[SignedIn, str]:
        """Return the session of somebody whom the provider sent back, and the page to show.

        Args:
            people: Who may sign in.
            query: That the browser brings from the provider.
            browser: Secret that the browser kept.
            address: Of the client.

        Raises:
            SignInRefusedError: They did not leave from here, or the provider does not vouch.
        """
        pending = self._pending.finish(query.get("state", ""), browser)
        if pending is None:
            raise SignInRefusedError(
                "this sign-in did not begin here, or took longer than 10 minutes", hint="try again"
            )
        if "error" in query or not query.get("code"):
            why = query.get("error", "it sent no code")
            raise SignInRefusedError(f"the provider refuses: {why:.100}")
        told = await self._answers.token(query["code"], pending.verifier)
        claims = await self._claims(told, pending)
        settings = self.settings
        mapped = settings.role_of(claims) if settings.role_claim else None
        first = (mapped or settings.new_role) if settings.creates_accounts else None
        if settings.role_claim and mapped is None and settings.new_role is None:
            raise SignInRefusedError("the provider gives this person no role here")
        name = claims.get(settings.name_claim)
        signed_in = await people.sign_in_external(
            settings.issuer,
            claims["sub"],
            name if isinstance(name, str) else "",
            address,
            role=mapped or (settings.new_role if settings.role_claim else None),
            first_role=first,
        )
        return signed_in, pending.next_page

    async def _claims(self, told: Mapping[str, Any], pending: Pending) -> Mapping[str, Any]:
        token, access = told.get("id_token"), told.get("access_token")
        if not isinstance(token, str):
            raise SignInRefusedError("the provider sent no ID token")
        for again in (False, True):
            keys = await self._answers.keys(again=again)
            try:
                return checked_claims(
                    token,
                    keys,
                    issuer=self.settings.issuer,
                    client_id=self.settings.client_id,
                    nonce=pending.nonce,
                    access_token=access if isinstance(access, str) else "",
                )
            except UnknownKeyError:
                continue
        raise SignInRefusedError("the provider signs with a key that it does not publish")


def own_page(path: str) -> str:
    """Return a path of this console, and nothing that leads elsewhere.

    Examples:
        >>> own_page("/queries?x=1"), own_page("//evil.example"), own_page("https://evil.example")
        ('/queries?x=1', '/', '/')
    """
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own and len(path) <= MAX_NEXT else "/"
