"""Entries of the audit in the catalog's database."""

from collections.abc import Collection, Iterable
from functools import partial

from federated_optimizer.coordinator.contract.audit_model import AuditEntry
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from streamsql.wire.codec import decode_packed, encode_packed

_AT_ONCE = 500
"""Values that databases take in one list."""


def stored_audit(store: CatalogStore) -> tuple[AuditEntry, ...]:
    """Return all entries, oldest first.

    Raises:
        DeploymentError: The database or an entry cannot be read.
    """
    return tuple(
        store.read(f"entry {row.id} of the audit", partial(decode_packed, row.body, AuditEntry))
        for row in store.rows(tables.audit, tables.audit.c.id)
    )


def store_audit(store: CatalogStore, added: Iterable[AuditEntry], removed: Collection[int]) -> None:
    """Add entries and remove others by number.

    Raises:
        DeploymentError: The database cannot be written.
    """
    table = tables.audit
    rows = [{"id": entry.id, "body": encode_packed(entry)} for entry in added]
    # An entry whose commit was not heard of is written again.
    numbers = [*removed, *(entry["id"] for entry in rows)]
    with store.writing() as connection:
        for begin in range(0, len(numbers), _AT_ONCE):
            part = numbers[begin : begin + _AT_ONCE]
            connection.execute(table.delete().where(table.c.id.in_(part)))
        if rows:
            connection.execute(table.insert(), rows)
