"""Accounts, sessions and tokens in the catalog database. Blocking; safe to call from threads.

Any process may write: the console, or `pando user` while no console runs. Each change counts the
revision up first, which also locks the database for the checks that follow.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from federated_optimizer.coordinator.contract.people_model import (
    Account,
    ApiToken,
    PeopleError,
    UnknownPersonError,
)
from federated_optimizer.coordinator.contract.principal import Role
from federated_optimizer.coordinator.people.account_rules import (
    MAX_ACCOUNTS,
    MAX_SESSIONS,
    MAX_TOKENS,
)
from federated_optimizer.coordinator.store.catalog_database import (
    catalog_engine,
    migrate,
    shown,
    translated,
)
from federated_optimizer.coordinator.store.schema import people_tables as tables


@dataclass(frozen=True, slots=True)
class StoredAccount:
    """An account with what it signs in by: the hash of a password, or a provider's subject."""

    account: Account
    password: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session, by the digest of its secret; times in microseconds since 1970 UTC."""

    digest: str
    account: str
    created: int
    last_used: int
    expires: int


@dataclass(frozen=True, slots=True)
class StoredToken:
    """An API token with the digest of its secret."""

    digest: str
    token: ApiToken

    @property
    def account(self) -> str:
        """For which it asks."""
        return self.token.account


@dataclass(frozen=True, slots=True)
class StoredPeople:
    """Everybody, as of a revision."""

    revision: int
    accounts: tuple[StoredAccount, ...]
    sessions: tuple[StoredSession, ...]
    tokens: tuple[StoredToken, ...]


class PeopleStore:
    """The tables of people in a catalog."""

    def __init__(self, url: str) -> None:
        """Connect, and create or migrate the schema.

        Raises:
            DeploymentError: The database cannot be used; says why and what to do.
        """
        self.url = shown(url)
        self._lock = threading.Lock()
        with self._errors("open"):
            self._engine = catalog_engine(url)
            with self._engine.begin() as connection:
                migrate(connection, self.url)

    def revision(self) -> int:
        """Return the number of changes there were."""
        with self._reading() as connection:
            return int(connection.execute(sa.select(tables.revision.c.revision)).scalar_one())

    def has_accounts(self) -> bool:
        """Whether there is any account."""
        with self._reading() as connection:
            return (
                connection.execute(sa.select(tables.accounts.c.name).limit(1)).first() is not None
            )

    def read(self) -> StoredPeople:
        """Return everybody."""
        # The revision first: what changes meanwhile is read again.
        revision = self.revision()
        with self._reading() as connection:
            accounts = connection.execute(
                sa.select(tables.accounts).order_by(tables.accounts.c.name)
            ).all()
            sessions = connection.execute(sa.select(tables.sessions)).all()
            tokens = connection.execute(
                sa.select(tables.api_tokens).order_by(
                    tables.api_tokens.c.created, tables.api_tokens.c.id
                )
            ).all()
        return StoredPeople(
            revision,
            tuple(map(_account_of, accounts)),
            tuple(StoredSession(*row) for row in sessions),
            tuple(map(_token_of, tokens)),
        )

    def add_account(self, new: StoredAccount) -> None:
        """Add an account.

        Raises:
            PeopleError: There is one of that name, there are too many, or it is the first one and
                may not administer.
        """
        table = tables.accounts
        account = new.account
        with self._changing() as connection:
            if self._find(connection, account.name) is not None:
                raise PeopleError(
                    f"there is an account {account.name} already", code="account_exists"
                )
            number = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            if not number and account.role != Role.ADMINISTRATOR:
                raise PeopleError(
                    "the first account has to be an administrator",
                    hint="from then on everybody has to sign in, and somebody must add others",
                    code="last_administrator",
                )
            if number >= MAX_ACCOUNTS:
                raise PeopleError(f"there are {MAX_ACCOUNTS} accounts; no more are possible")
            connection.execute(
                table.insert().values(
                    name=account.name,
                    role=account.role.value,
                    disabled=account.disabled,
                    password=new.password,
                    provider=account.provider,
                    subject=new.subject,
                    created=account.created,
                    last_sign_in=account.last_sign_in,
                )
            )

    def change_account(
        self, name: str, *, role: Role | None = None, disabled: bool | None = None
    ) -> Account:
        """Change an account; a disabled one has no sessions any more.

        Raises:
            UnknownPersonError: There is none.
            PeopleError: It is the last one that administers.
        """
        with self._changing() as connection:
            account = self._required(connection, name).account
            changed = replace(
                account,
                role=account.role if role is None else role,
                disabled=account.disabled if disabled is None else disabled,
            )
            if changed.role != Role.ADMINISTRATOR or changed.disabled:
                self._check_other_administrator(connection, account)
            table = tables.accounts
            change = table.update().where(table.c.name == name)
            values = {"role": changed.role.value, "disabled": changed.disabled}
            connection.execute(change.values(**values))
            if changed.disabled:
                self._end_sessions(connection, name)
        return changed

    def set_password(self, name: str, password: str, *, keep: str = "") -> None:
        """Store the hash of a password; sessions end but for the one of a digest.

        Raises:
            UnknownPersonError: There is no such account.
            PeopleError: A provider signs it in.
        """
        with self._changing() as connection:
            account = self._required(connection, name).account
            if account.provider:
                raise PeopleError(
                    f"account {name} has no password: {account.provider} signs it in",
                    hint="change the password there",
                )
            self._rehash(connection, name, password)
            self._end_sessions(connection, name, but=keep)

    def rehash(self, name: str, before: str, password: str) -> None:
        """Store another hash of the same password, unless the password was changed meanwhile."""
        with self._changing() as connection:
            found = self._find(connection, name)
            if found is not None and found.password == before:
                self._rehash(connection, name, password)

    def remove_account(self, name: str) -> None:
        """Remove an account with its sessions and tokens.

        Raises:
            UnknownPersonError: There is none.
            PeopleError: It is the last one that administers.
        """
        with self._changing() as connection:
            account = self._required(connection, name).account
            self._check_other_administrator(connection, account)
            self._end_sessions(connection, name)
            for table in (tables.api_tokens, tables.accounts):
                column = table.c.account if table is tables.api_tokens else table.c.name
                connection.execute(table.delete().where(column == name))

    def add_session(self, session: StoredSession) -> None:
        """Add a session and note the sign-in; the least used ones above the limit end.

        Raises:
            UnknownPersonError: The account is gone or disabled.
        """
        table = tables.sessions
        mine = table.c.account == session.account
        with self._changing() as connection:
            if self._required(connection, session.account).account.disabled:
                raise UnknownPersonError(f"account {session.account} is disabled")
            connection.execute(table.delete().where(table.c.expires <= session.created))
            newest = sa.select(table.c.digest).where(mine).order_by(table.c.last_used.desc())
            kept = connection.execute(newest.limit(MAX_SESSIONS - 1)).scalars().all()
            connection.execute(table.delete().where(mine, table.c.digest.not_in(kept)))
            connection.execute(
                table.insert().values(
                    digest=session.digest,
                    account=session.account,
                    created=session.created,
                    last_used=session.last_used,
                    expires=session.expires,
                )
            )
            accounts = tables.accounts
            change = accounts.update().where(accounts.c.name == session.account)
            connection.execute(change.values(last_sign_in=session.created))

    def remove_sessions(self, digests: Sequence[str]) -> None:
        """Remove sessions; nothing happens where there is none."""
        with self._changing() as connection:
            table = tables.sessions
            connection.execute(table.delete().where(table.c.digest.in_(list(digests))))

    def add_token(self, new: StoredToken) -> None:
        """Add a token.

        Raises:
            UnknownPersonError: There is no such account.
            PeopleError: It has too many.
        """
        token, table = new.token, tables.api_tokens
        with self._changing() as connection:
            self._required(connection, token.account)
            mine = sa.select(sa.func.count()).where(table.c.account == token.account)
            if connection.execute(mine).scalar_one() >= MAX_TOKENS:
                raise PeopleError(
                    f"account {token.account} has {MAX_TOKENS} tokens", hint="revoke some of them"
                )
            sources = None if token.sources is None else json.dumps(token.sources)
            connection.execute(
                table.insert().values(
                    id=token.id,
                    digest=new.digest,
                    account=token.account,
                    label=token.label,
                    role=token.role.value,
                    created=token.created,
                    expires=token.expires,
                    last_used=token.last_used,
                    sources=sources,
                )
            )

    def remove_token(self, token_id: str) -> None:
        """Remove a token; nothing happens when there is none."""
        with self._changing() as connection:
            table = tables.api_tokens
            connection.execute(table.delete().where(table.c.id == token_id))

    def note_uses(self, uses: Sequence[tuple[str, int]]) -> None:
        """Store when sessions and tokens, by digest, were last used; counts as no change."""
        with self._lock, self._errors("write"), self._engine.begin() as connection:
            for table in (tables.sessions, tables.api_tokens):
                change = table.update().where(table.c.digest == sa.bindparam("of"))
                values = [{"of": digest, "at": at} for digest, at in uses]
                connection.execute(change.values(last_used=sa.bindparam("at")), values)

    def close(self) -> None:
        """Close all connections, after what is being written."""
        with self._lock:
            self._engine.dispose()

    @contextmanager
    def _changing(self) -> Iterator[sa.Connection]:
        with self._lock, self._errors("write"), self._engine.begin() as connection:
            row = tables.revision
            connection.execute(row.update().values(revision=row.c.revision + 1))
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._lock, self._errors("read"), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError, ImportError) as error:
            raise translated(error, verb, self.url) from error

    @staticmethod
    def _find(connection: sa.Connection, name: str) -> StoredAccount | None:
        table = tables.accounts
        found = connection.execute(sa.select(table).where(table.c.name == name)).first()
        return None if found is None else _account_of(found)

    def _required(self, connection: sa.Connection, name: str) -> StoredAccount:
        found = self._find(connection, name)
        if found is None:
            raise UnknownPersonError(f"there is no account {name!r:.80}")
        return found

    @staticmethod
    def _check_other_administrator(connection: sa.Connection, account: Account) -> None:
        if account.role != Role.ADMINISTRATOR or account.disabled:
            return
        table = tables.accounts
        others = sa.select(sa.func.count()).where(
            table.c.role == Role.ADMINISTRATOR.value,
            table.c.disabled == sa.false(),
            table.c.name != account.name,
        )
        if not connection.execute(others).scalar_one():
            raise PeopleError(
                f"{account.name} is the only administrator",
                hint="make another account an administrator first",
                code="last_administrator",
            )

    @staticmethod
    def _rehash(connection: sa.Connection, name: str, password: str) -> None:
        table = tables.accounts
        connection.execute(table.update().where(table.c.name == name).values(password=password))

    @staticmethod
    def _end_sessions(connection: sa.Connection, name: str, but: str = "") -> None:
        table = tables.sessions
        connection.execute(table.delete().where(table.c.account == name, table.c.digest != but))


def _account_of(row: sa.Row[Any]) -> StoredAccount:
    account = Account(
        row.name,
        Role(row.role),
        disabled=row.disabled,
        created=row.created,
        last_sign_in=row.last_sign_in,
        provider=row.provider,
    )
    return StoredAccount(account, row.password, row.subject)


def _token_of(row: sa.Row[Any]) -> StoredToken:
    sources = None if row.sources is None else tuple(json.loads(row.sources))
    token = ApiToken(
        row.id,
        row.account,
        row.label,
        Role(row.role),
        row.created,
        expires=row.expires,
        last_used=row.last_used,
        sources=sources,
    )
    return StoredToken(row.digest, token)
