"""Tables that the static engine reads, and the views that it refreshes."""

from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.grant_store import MadeKind
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from streamsql.binder import bind_refresh
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import is_system
from streamsql.errors import QueryError
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder


def stored_tables(
    shared: SharedParts, topology: Topology, zone: str
) -> tuple[tuple[SourceDefinition, ...], tuple[RefreshOrder, ...]]:
    """Return the tables that the static engine reads, and the views that it refreshes.

    `zone` is that of the times of day of REFRESH AT.
    """
    tables = [table for table in shared.catalog.tables if not is_system(table)]
    stored = tuple(table for table in tables if table.refresh is None)
    orders = (_refresh_order(shared, view, topology, zone) for view in shared.catalog.refreshed)
    return stored, tuple(orders)


def _refresh_order(
    shared: SharedParts, view: SourceDefinition, topology: Topology, zone: str
) -> RefreshOrder:
    """Return how a view is refreshed, or why its rows only stay as they are."""
    maker = shared.rights.maker(MadeKind.DEFINITION, view.name.lower())
    if maker is None:
        return RefreshOrder(view, None, zone, "its maker has no account any more")
    try:
        found = normalize(bind_refresh(view, shared.catalog_of(maker)), topology)
    except QueryError as error:
        return RefreshOrder(view, None, zone, error.message)
    return RefreshOrder(view, found, zone)
