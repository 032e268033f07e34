"""Enrolments of gateways in the catalog's database."""

from functools import partial

from federated_optimizer.coordinator.contract.fleet_model import Enrolment
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from streamsql.wire.codec import decode_json, encode_json


def stored_enrolments(store: CatalogStore) -> tuple[Enrolment, ...]:
    """Return all enrolments in the order of their names.

    Raises:
        DeploymentError: The database or an enrolment cannot be read.
    """
    return tuple(
        store.read(f"enrolment {row.name!r}", partial(decode_json, row.body, Enrolment))
        for row in store.rows(tables.enrolments, tables.enrolments.c.name)
    )


def store_enrolment(store: CatalogStore, enrolment: Enrolment) -> None:
    """Store an enrolment, replacing one of the same name.

    Raises:
        DeploymentError: The database cannot be written.
    """
    table = tables.enrolments
    with store.writing() as connection:
        connection.execute(table.delete().where(table.c.name == enrolment.name))
        connection.execute(table.insert().values(name=enrolment.name, body=encode_json(enrolment)))


def remove_enrolment(store: CatalogStore, name: str) -> None:
    """Remove an enrolment; nothing happens if there is none.

    Raises:
        DeploymentError: The database cannot be written.
    """
    table = tables.enrolments
    with store.writing() as connection:
        connection.execute(table.delete().where(table.c.name == name))
