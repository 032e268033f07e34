"""Grants, makers and quotas in the catalog's database."""

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial

import sqlalchemy as sa

from federated_optimizer.coordinator.contract.grant_model import Grant, Grantee, Quotas
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import grant_tables as tables
from streamsql.wire.codec import decode_json, encode_json


class MadeKind(enum.StrEnum):
    """Something that somebody made."""

    DEFINITION = "definition"
    QUERY = "query"


Made = tuple[MadeKind, str]
"""Kind and name of a definition in lower case, or id of a query."""


@dataclass(frozen=True, slots=True)
class Maker:
    """An account that made something, and when, in microseconds since 1970."""

    account: str
    at: int


@dataclass(frozen=True, slots=True)
class StoredRights:
    """Rights as the catalog has them.

    Attributes:
        makers: By what they made.
        quotas: By account.
    """

    grants: tuple[Grant, ...] = ()
    makers: dict[Made, Maker] = field(default_factory=dict)
    quotas: dict[str, Quotas] = field(default_factory=dict)


def stored_rights(store: CatalogStore) -> StoredRights:
    """Return all that is stored.

    Raises:
        DeploymentError: The database or a row cannot be read.
    """
    grants = tuple(
        store.read(f"a grant on {row.relation!r}", partial(decode_json, row.body, Grant))
        for row in store.rows(tables.grants, tables.grants.c.relation)
    )
    makers = {
        (MadeKind(row.kind), row.name): Maker(row.maker, row.at)
        for row in store.rows(tables.makers)
    }
    quotas = {
        row.account: store.read(
            f"the quotas of {row.account!r}", partial(decode_json, row.body, Quotas)
        )
        for row in store.rows(tables.quotas)
    }
    return StoredRights(grants, makers, quotas)


def put_grants(store: CatalogStore, added: Iterable[Grant]) -> None:
    """Store grants, replacing equal ones.

    Raises:
        DeploymentError: The database cannot be written.
    """
    with store.writing() as connection:
        for grant in added:
            _delete(connection, grant.relation, grant.grantee)
            connection.execute(
                tables.grants.insert().values(
                    relation=grant.relation,
                    kind=grant.grantee.kind,
                    grantee=grant.grantee.name,
                    body=encode_json(grant),
                )
            )


def drop_grants(store: CatalogStore, removed: Collection[tuple[str, Grantee]]) -> None:
    """Remove grants by relation and grantee.

    Raises:
        DeploymentError: The database cannot be written.
    """
    with store.writing() as connection:
        for relation, grantee in removed:
            _delete(connection, relation, grantee)


def _delete(connection: sa.Connection, relation: str, grantee: Grantee) -> None:
    table = tables.grants
    same = (table.c.kind == grantee.kind, table.c.grantee == grantee.name)
    connection.execute(table.delete().where(table.c.relation == relation, *same))


def put_maker(store: CatalogStore, made: Made, maker: Maker | None) -> None:
    """Store who made something; None: it is gone, or the federation itself has made it.

    Raises:
        DeploymentError: The database cannot be written.
    """
    with store.writing() as connection:
        write_maker(connection, made, maker)


def write_maker(connection: sa.Connection, made: Made, maker: Maker | None) -> None:
    """Store who made something in a transaction of `CatalogStore.writing`; see `put_maker`."""
    table = tables.makers
    kind, name = made
    connection.execute(table.delete().where(table.c.kind == kind, table.c.name == name))
    if maker is not None:
        values = {"kind": kind, "name": name, "maker": maker.account, "at": maker.at}
        connection.execute(table.insert().values(values))


def put_quotas(store: CatalogStore, account: str, quotas: Quotas | None) -> None:
    """Store the quotas of an account; None removes them.

    Raises:
        DeploymentError: The database cannot be written.
    """
    table = tables.quotas
    with store.writing() as connection:
        connection.execute(table.delete().where(table.c.account == account))
        if quotas is not None:
            body = encode_json(quotas)
            connection.execute(table.insert().values(account=account, body=body))
