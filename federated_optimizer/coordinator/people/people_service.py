"""People behind `PeopleApi`: everybody in memory, every change in the catalog first."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace
from typing_extensions import override

from federated_optimizer.coordinator.contract.audit_model import Audit, Outcome
from federated_optimizer.coordinator.contract.people_model import (
    Account,
    Admission,
    ApiToken,
    NewToken,
    PeopleApi,
    PeopleError,
    SignedIn,
    SignInRefusedError,
    TooManyAttemptsError,
    UnknownPersonError,
)
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.people import account_rules as rules
from federated_optimizer.coordinator.people.admissions import (
    Admissions,
    SessionLimits,
    principal_of,
)
from federated_optimizer.coordinator.people.outside_changes import outside_changes
from federated_optimizer.coordinator.people.password_checks import PasswordChecks
from federated_optimizer.coordinator.people.passwords import PasswordWork
from federated_optimizer.coordinator.people.people_store import (
    PeopleStore,
    StoredAccount,
    StoredPeople,
    StoredSession,
    StoredToken,
)
from federated_optimizer.coordinator.people.random_secrets import (
    digest,
    session_secret,
    token_id,
    token_secret,
)
from host.clocks import Clock
from host.defects import Defects
from streamsql.errors import FederationError

log = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_SECONDS = 0.5
"""How often ended sessions, and changes that other processes made, are looked for."""


class People(PeopleApi):
    """Everybody, from `begin` to `close`."""

    def __init__(  # noqa: PLR0913  (each comes from elsewhere)
        self,
        store: PeopleStore,
        clock: Clock,
        audit: Audit,
        *,
        limits: SessionLimits | None = None,
        work: PasswordWork | None = None,
        elapsed: Callable[[], float] = time.monotonic,
        owner: str = "",
    ) -> None:
        """Take what is needed; nobody is known before `begin`.

        Args:
            store: The tables, which are closed with this.
            clock: Wall-clock microseconds.
            audit: Is told of sign-ins and changes.
            limits: How long sessions last.
            work: Hashes passwords.
            elapsed: Monotonic seconds.
            owner: Secret that admits whoever runs the console, or nothing.
        """
        self._store = store
        self._clock = clock
        self._audit = audit
        self._limits = limits or SessionLimits()
        self._work = work or PasswordWork()
        self._checks = PasswordChecks(self._work, elapsed)
        self._admissions = Admissions(self._limits.idle_time, owner)
        self._known = StoredPeople(-1, (), (), ())
        self._accounts: dict[str, StoredAccount] = {}
        self._unsigned: Admission | None = None
        self._changing = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Read everybody, and go on looking for what changes.

        Raises:
            DeploymentError: The catalog cannot be read.
        """
        await self.read()
        self._looking = asyncio.create_task(self._keep_looking())

    async def read(self) -> None:
        """Go on with what is stored.

        Raises:
            DeploymentError: The catalog cannot be read.
        """
        known = await asyncio.to_thread(self._store.read)
        self._known = known
        self._accounts = {found.account.name: found for found in known.accounts}
        self._admissions.replace(known, self._clock())
        if known.accounts and self._unsigned is not None:
            self._unsigned.ended.set()
            self._unsigned = None
        elif not known.accounts:
            self._unsigned = self._unsigned or Admission(LOCAL)

    async def close(self) -> None:
        """Stop looking, and close the store."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
        self._work.close()
        await asyncio.to_thread(self._store.close)

    # --- who asks ----------------------------------------------------------------------------

    @property
    @override
    def has_accounts(self) -> bool:
        return bool(self._accounts)

    @property
    @override
    def unsigned(self) -> Admission | None:
        return self._unsigned

    @override
    def admit(self, secret: str) -> Admission | None:
        return self._admissions.admit(secret, self._clock())

    @override
    async def sign_in(self, name: str, password: str, address: str) -> SignedIn:
        found = await self._checked(name, password, address)
        return await self._begin_session(found, address)

    @override
    async def check_password(self, name: str, password: str, address: str) -> None:
        await self._checked(name, password, address)

    @override
    async def sign_in_external(
        self,
        provider: str,
        subject: str,
        name: str,
        address: str,
        *,
        role: Role | None = None,
        first_role: Role | None = None,
    ) -> SignedIn:
        found = self._of_subject(provider, subject)
        if found is None:
            found = await self._first_sign_in(provider, subject, name, first_role, address)
        elif role is not None and found.account.role != role:
            key = found.account.name
            await self._change(partial(self._store.change_account, key, role=role))
            self._note(None, "change account", key, f"role {role} by {provider}", address)
            found = self._required(key)
        if found.account.disabled:
            raise self._refusal(found.account.name, "the account is disabled", address)
        return await self._begin_session(found, address)

    @override
    async def sign_out(self, secret: str, by: Principal) -> None:
        if self.admit(secret) is None:
            return
        await self._change(partial(self._store.remove_sessions, [digest(secret)]))
        self._note(by, "sign out", by.name)

    # --- accounts ----------------------------------------------------------------------------

    @override
    def accounts(self) -> tuple[Account, ...]:
        return tuple(found.account for found in self._accounts.values())

    @override
    def account(self, name: str) -> Account | None:
        found = self._accounts.get(rules.account_key(name))
        return None if found is None else found.account

    @override
    async def add_account(
        self, name: str, role: Role, password: str, by: Principal | None
    ) -> Account:
        key = rules.checked_name(name)
        kept = await self._work.hash(rules.checked_password(key, password))
        account = Account(key, role, created=self._clock())
        await self._change(partial(self._store.add_account, StoredAccount(account, kept)))
        self._note(by, "add account", key, f"role {role}")
        return account

    @override
    async def change_account(
        self, name: str, by: Principal, *, role: Role | None = None, disabled: bool | None = None
    ) -> Account:
        key = rules.account_key(name)
        changed = await self._change(
            partial(self._store.change_account, key, role=role, disabled=disabled)
        )
        state = "disabled" if changed.disabled else "enabled"
        self._note(by, "change account", key, f"role {changed.role}, {state}")
        return changed

    @override
    async def set_password(
        self, name: str, password: str, by: Principal, *, keep: str = ""
    ) -> None:
        key = rules.account_key(name)
        kept = await self._work.hash(rules.checked_password(key, password))
        kept_session = digest(keep) if keep else ""
        await self._change(partial(self._store.set_password, key, kept, keep=kept_session))
        self._note(by, "set password", key)

    @override
    async def remove_account(self, name: str, by: Principal) -> None:
        key = rules.account_key(name)
        await self._change(partial(self._store.remove_account, key))
        self._note(by, "remove account", key)

    # --- tokens ------------------------------------------------------------------------------

    @override
    def tokens(self, account: str | None = None) -> tuple[ApiToken, ...]:
        key = None if account is None else rules.account_key(account)
        used = dict(self._admissions.last_used())
        return tuple(
            replace(found.token, last_used=used.get(found.digest) or found.token.last_used)
            for found in self._known.tokens
            if key in (None, found.token.account)
        )

    @override
    async def create_token(
        self,
        account: str,
        label: str,
        by: Principal,
        *,
        role: Role | None = None,
        days: float | None = None,
        sources: tuple[str, ...] | None = None,
    ) -> NewToken:
        owner = self._required(account).account
        now = self._clock()
        if role is not None and not owner.role.may_act_as(role):
            raise PeopleError(
                f"account {owner.name} is {owner.role}; its token cannot be {role}",
                hint=f"choose {owner.role} or less",
            )
        token = ApiToken(
            token_id(),
            owner.name,
            rules.checked_label(label),
            role or owner.role,
            now,
            expires=rules.expiry(now, days),
            sources=rules.checked_sources(sources),
        )
        secret = token_secret()
        await self._change(partial(self._store.add_token, StoredToken(digest(secret), token)))
        self._note(by, "create token", owner.name, f"{token.label}, role {token.role}")
        return NewToken(token, secret)

    @override
    async def revoke_token(self, token_id: str, by: Principal) -> ApiToken:
        for found in self._known.tokens:
            if found.token.id == token_id:
                await self._change(partial(self._store.remove_token, token_id))
                self._note(by, "revoke token", found.token.account, found.token.label)
                return found.token
        raise UnknownPersonError(f"there is no token {token_id!r:.80}", code="unknown_token")

    # --- inside ------------------------------------------------------------------------------

    async def _checked(self, name: str, password: str, address: str) -> StoredAccount:
        key = rules.account_key(name)
        try:
            found, kept = await self._checks.check(key, self._accounts.get(key), password, address)
        except (SignInRefusedError, TooManyAttemptsError) as error:
            self._note_refusal(key, error.message, address)
            raise
        if kept != found.password:
            await self._change(partial(self._store.rehash, key, found.password, kept))
        return found

    async def _first_sign_in(
        self, provider: str, subject: str, name: str, role: Role | None, address: str
    ) -> StoredAccount:
        if role is None:
            raise self._refusal(name, "there is no account for this person", address)
        try:
            key = rules.checked_name(name)
            account = Account(key, role, created=self._clock(), provider=provider)
            new = StoredAccount(account, subject=subject)
            await self._change(partial(self._store.add_account, new))
        except PeopleError as error:
            raise self._refusal(name, error.message, address) from error
        self._note(None, "add account", key, f"role {role} by {provider}", address)
        return self._required(key)

    async def _begin_session(self, found: StoredAccount, address: str) -> SignedIn:
        now, secret = self._clock(), session_secret()
        expires = now + self._limits.longest_time
        session = StoredSession(digest(secret), found.account.name, now, now, expires)
        try:
            await self._change(partial(self._store.add_session, session))
        except UnknownPersonError as error:  # removed or disabled meanwhile
            raise self._refusal(found.account.name, error.message, address) from error
        principal = principal_of(found)
        self._note(principal, "sign in", principal.name, address=address)
        return SignedIn(secret, principal, expires)

    def _of_subject(self, provider: str, subject: str) -> StoredAccount | None:
        for found in self._accounts.values():
            if (found.account.provider, found.subject) == (provider, subject):
                return found
        return None

    def _required(self, name: str) -> StoredAccount:
        found = self._accounts.get(rules.account_key(name))
        if found is None:
            raise UnknownPersonError(f"there is no account {name!r:.80}")
        return found

    def _refusal(self, name: str, why: str, address: str) -> SignInRefusedError:
        self._note_refusal(name, why, address)
        return SignInRefusedError(why)

    def _note_refusal(self, name: str, why: str, address: str) -> None:
        # A name that is none may be a password, typed into the wrong field.
        target = name if name in self._accounts else ""
        self._audit.note(None, "sign in", target, Outcome.REFUSED, why, address=address)

    def _note(
        self, by: Principal | None, action: str, target: str, detail: str = "", address: str = ""
    ) -> None:
        self._audit.note(by, action, target, Outcome.DONE, detail, address=address)

    async def _change(self, work: Callable[[], T]) -> T:
        """Change the store, then go on with what it holds."""
        async with self._changing:
            result = await asyncio.to_thread(work)
            await self.read()
            return result

    async def _keep_looking(self) -> None:
        failing, defects = "", Defects("looking for ended sessions", "the console")
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
                failing = ""
                defects.passed()
            except FederationError as error:
                # Who is known stays known: a database that is away must not let in or out.
                if error.message != failing:
                    failing = error.message
                    log.warning("people: %s", error)
            except Exception as error:  # noqa: BLE001  (sessions must end all the same)
                defects.survives(error)

    async def look(self) -> None:
        """End what is over, go on with what other processes changed, and store what is in use.

        Raises:
            DeploymentError: The catalog cannot be read or written.
        """
        now = self._clock()
        over = self._admissions.end_overdue(now)
        async with self._changing:
            if over:
                await asyncio.to_thread(self._store.remove_sessions, over)
            if await asyncio.to_thread(self._store.revision) != self._known.revision:
                before = self._known
                await self.read()
                for action, target, detail in outside_changes(before, self._known):
                    self._note(None, action, target, detail)
        uses = self._admissions.uses_to_note(now)
        if uses:
            await asyncio.to_thread(self._store.note_uses, uses)
