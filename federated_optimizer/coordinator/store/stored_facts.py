"""Facts in the catalog's database."""

import hashlib
import logging
from collections.abc import Mapping

from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from federated_optimizer.statistics.fact import Fact, Quantity, Subject
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_json

log = logging.getLogger(__name__)

_AT_ONCE = 500
"""Values that databases take in one list."""
_Key = tuple[Subject, Quantity]


def stored_facts(store: CatalogStore) -> tuple[Fact, ...]:
    """Return all facts; one that cannot be read is left out, for it is measured again.

    Raises:
        DeploymentError: The database cannot be read.
    """
    found = []
    for row in store.rows(tables.facts, tables.facts.c.id):
        try:
            found.append(decode_json(row.body, Fact))
        except WireError as error:
            log.warning("a fact in the catalog is left out: %s", error.message)
    return tuple(found)


def store_facts(store: CatalogStore, changes: Mapping[_Key, Fact | None]) -> None:
    """Store facts by what they are about; None removes one.

    Raises:
        DeploymentError: The database cannot be written.
    """
    table = tables.facts
    numbers = [_id(key) for key in changes]
    kept = [
        {"id": _id(key), "body": encode_json(fact)}
        for key, fact in changes.items()
        if fact is not None
    ]
    with store.writing() as connection:
        for begin in range(0, len(numbers), _AT_ONCE):
            part = numbers[begin : begin + _AT_ONCE]
            connection.execute(table.delete().where(table.c.id.in_(part)))
        if kept:
            connection.execute(table.insert(), kept)


def _id(key: _Key) -> str:
    """Return a key that every database takes: texts of predicates are long."""
    subject, quantity = key
    text = "\x00".join((subject.kind, subject.name, subject.part, quantity))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
