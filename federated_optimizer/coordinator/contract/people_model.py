"""Accounts, sessions and API tokens: what the console is told of them, and asks."""

import asyncio
from typing import Protocol

import msgspec

from federated_optimizer.coordinator.contract.principal import Principal, Role
from streamsql.errors import FederationError


class Account(msgspec.Struct, frozen=True):
    """Somebody who may sign in; times in microseconds since 1970 UTC.

    Attributes:
        name: In lower case.
        role: What the account may do.
        disabled: Whether it may not sign in, and its tokens are refused.
        created: When it was made.
        last_sign_in: When it last signed in, or None.
        provider: Issuer of the OpenID Connect provider that signs it in; empty for a password.
    """

    name: str
    role: Role
    disabled: bool = False
    created: int = 0
    last_sign_in: int | None = None
    provider: str = ""


class ApiToken(msgspec.Struct, frozen=True):
    """A secret with which a program asks for an account; times in microseconds since 1970 UTC.

    Attributes:
        id: By which it is revoked. No secret.
        account: For which it asks.
        label: What it is for, in its owner's words.
        role: The most that it may do; never more than its account.
        created: When it was made.
        expires: When it ends, or None.
        last_used: When it was last used, to a few minutes; or None.
        sources: The only sources, tables and views that it may read; None for the account's.
    """

    id: str
    account: str
    label: str
    role: Role
    created: int
    expires: int | None = None
    last_used: int | None = None
    sources: tuple[str, ...] | None = None


class NewToken(msgspec.Struct, frozen=True):
    """A token that was just made.

    Attributes:
        token: What is kept of it.
        secret: What the program sends. Only a hash of it is kept, so it is told only here.
    """

    token: ApiToken
    secret: str


class SignedIn(msgspec.Struct, frozen=True):
    """A session that just began.

    Attributes:
        secret: What the browser sends. Only a hash of it is kept.
        principal: Who asks with it.
        expires: When it ends at the latest, in microseconds since 1970 UTC.
    """

    secret: str
    principal: Principal
    expires: int


class Admission:
    """That a session or a token may ask, for as long as it lasts.

    Attributes:
        principal: Who asks with it.
        ended: Is set when the session or token ends, its account is disabled, or its role changes.
        readers: Number of open requests; a session with any is in use.
    """

    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self.ended = asyncio.Event()
        self.readers = 0


class PeopleError(FederationError):
    """An account or token cannot be made, changed or found."""

    code = "bad_account"


class UnknownPersonError(PeopleError):
    """There is no such account or token."""

    code = "unknown_account"


class SignInRefusedError(FederationError):
    """Name and password, or what a provider says, let nobody in."""

    code = "sign_in_refused"


class TooManyAttemptsError(FederationError):
    """Too many sign-ins failed or wait.

    Attributes:
        retry_after: Seconds until the next one is looked at.
    """

    code = "too_many_attempts"

    def __init__(self, message: str, retry_after: float, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class PeopleApi(Protocol):
    """People who may sign in, and what they have open.

    `by` is who asks for a change, and is noted in the audit; the caller checks what they may do.
    """

    @property
    def has_accounts(self) -> bool:
        """True from the first account on; without one nobody can sign in."""
        ...

    @property
    def unsigned(self) -> Admission | None:
        """The admission of everybody on this machine; None as soon as there is an account."""
        ...

    def admit(self, secret: str) -> Admission | None:
        """Return what a session's or token's secret admits; None when it admits nobody."""
        ...

    async def sign_in(self, name: str, password: str, address: str) -> SignedIn:
        """Begin a session with a password.

        Args:
            name: Of the account, in any case.
            password: As typed.
            address: Of the client.

        Raises:
            SignInRefusedError: Name or password is wrong, or the account is disabled.
            TooManyAttemptsError: Too many attempts failed, or are being looked at.
        """
        ...

    async def sign_in_external(  # noqa: PLR0913  (what a provider says)
        self,
        provider: str,
        subject: str,
        name: str,
        address: str,
        *,
        role: Role | None = None,
        first_role: Role | None = None,
    ) -> SignedIn:
        """Begin a session for somebody whom an OpenID Connect provider vouches for.

        Args:
            provider: The issuer, which has verified the person.
            subject: Its identifier of the person, never used for another one.
            name: Of the account that is made when the subject has none.
            address: Of the client.
            role: That the provider's claims map to; an account gets it. None keeps its role.
            first_role: Of an account that is made; None makes none.

        Raises:
            SignInRefusedError: The account is disabled, there is none, or its name is taken.
        """
        ...

    async def sign_out(self, secret: str, by: Principal) -> None:
        """End a session; nothing happens when there is none."""
        ...

    def accounts(self) -> tuple[Account, ...]:
        """Return all accounts by name."""
        ...

    def account(self, name: str) -> Account | None:
        """Return an account by its name in any case, or None."""
        ...

    async def add_account(
        self, name: str, role: Role, password: str, by: Principal | None
    ) -> Account:
        """Make an account that signs in with a password.

        Raises:
            PeopleError: The name is malformed or taken, the password is too weak, or there are
                too many accounts.
        """
        ...

    async def change_account(
        self, name: str, by: Principal, *, role: Role | None = None, disabled: bool | None = None
    ) -> Account:
        """Change an account's role or whether it is disabled; what it has open ends.

        Raises:
            UnknownPersonError: There is none.
            PeopleError: Nobody would be left who administers.
        """
        ...

    async def set_password(
        self, name: str, password: str, by: Principal, *, keep: str = ""
    ) -> None:
        """Set a password; other sessions of the account end.

        Args:
            name: Of the account.
            password: The new one.
            by: Who asks.
            keep: Secret of the session that goes on, if any.

        Raises:
            UnknownPersonError: There is none.
            PeopleError: The password is too weak, or a provider signs the account in.
        """
        ...

    async def check_password(self, name: str, password: str, address: str) -> None:
        """Return when a password is an account's.

        Raises:
            SignInRefusedError: It is not.
            TooManyAttemptsError: Too many attempts failed, or are being looked at.
        """
        ...

    async def remove_account(self, name: str, by: Principal) -> None:
        """Remove an account with its sessions and tokens.

        Raises:
            UnknownPersonError: There is none.
            PeopleError: Nobody would be left who administers.
        """
        ...

    def tokens(self, account: str | None = None) -> tuple[ApiToken, ...]:
        """Return the tokens of an account, or of all, oldest first."""
        ...

    async def create_token(  # noqa: PLR0913  (what a token is)
        self,
        account: str,
        label: str,
        by: Principal,
        *,
        role: Role | None = None,
        days: float | None = None,
        sources: tuple[str, ...] | None = None,
    ) -> NewToken:
        """Make a token for an account.

        Args:
            account: For which it asks.
            label: What it is for.
            by: Who asks.
            role: The most that it may do; the account's role without it.
            days: After which it expires; None for never.
            sources: The only sources, tables and views that it may read.

        Raises:
            UnknownPersonError: There is no such account.
            PeopleError: The role is above the account's, the label or an expiry is out of range,
                or the account has too many tokens.
        """
        ...

    async def revoke_token(self, token_id: str, by: Principal) -> ApiToken:
        """End a token.

        Raises:
            UnknownPersonError: There is none.
        """
        ...
