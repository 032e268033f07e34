"""Decisions on plans in the catalog's database."""

import logging
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_json

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)
_AT_ONCE = 500
"""Values that databases take in one list."""


def stored_decisions(store: CatalogStore, kind: type[T]) -> tuple[T, ...]:
    """Return all decisions, oldest first; one that cannot be read is left out.

    Args:
        store: The catalog.
        kind: What a decision is.

    Raises:
        DeploymentError: The database cannot be read.
    """
    found = []
    for row in store.rows(tables.decisions, tables.decisions.c.id):
        try:
            found.append(decode_json(row.body, kind))
        except WireError as error:
            log.warning("a decision in the catalog is left out: %s", error.message)
    return tuple(found)


def store_decisions(store: CatalogStore, changes: Mapping[int, msgspec.Struct | None]) -> None:
    """Store decisions by their number; None removes one.

    Raises:
        DeploymentError: The database cannot be written.
    """
    table, numbers = tables.decisions, list(changes)
    kept = [
        {"id": number, "body": encode_json(decision)}
        for number, decision in changes.items()
        if decision is not None
    ]
    with store.writing() as connection:
        for begin in range(0, len(numbers), _AT_ONCE):
            part = numbers[begin : begin + _AT_ONCE]
            connection.execute(table.delete().where(table.c.id.in_(part)))
        if kept:
            connection.execute(table.insert(), kept)
