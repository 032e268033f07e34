"""Questions about rows for a coordinator of our own making: real answers over given base rows."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from deploy.explainer import EngineExplainer
from federated_optimizer.coordinator.contract.coordinator_model import QueryInfo
from federated_optimizer.coordinator.explaining.explaining_rows import RowExplanations
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRows
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.coordinator.store.grant_store import StoredRights
from streamsql.algebra.row_explanations import Leaf, scan_of
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import Row
from streamsql.syntax import Query, Subscribe
from streamsql.syntax.statements import Statement


class GivenRows:
    """Reads base rows from a dictionary by source; windows hold all of them."""

    def __init__(self, rows: dict[str, list[Row]]) -> None:
        self.rows = rows

    async def read(self, leaves: Sequence[Leaf]) -> BaseRows:
        """Return the rows of some leaves."""
        return BaseRows({leaf: self.rows.get(scan_of(leaf).source, []) for leaf in leaves}, {}, ())


def questions(
    rows: dict[str, list[Row]], catalog: Catalog, infos: Callable[[], tuple[QueryInfo, ...]]
) -> RowExplanations:
    """Return what answers questions about queries over given base rows."""

    def bind(statement: Statement) -> Any:
        query = statement.inner if isinstance(statement, Subscribe) else statement
        assert isinstance(query, Query)
        return bind_query(query, catalog)

    def find(name: str) -> QueryInfo | None:
        return next((info for info in infos() if name in (info.id, info.name)), None)

    planner: Any = SimpleNamespace(bind=bind)
    queries: Any = SimpleNamespace(all=infos, find=find)
    reader: Any = GivenRows(rows)
    core: Any = SimpleNamespace(
        catalog=catalog,
        catalog_of=lambda _principal: catalog,
        rights=ReadingRights(catalog, StoredRights()),
        membership=Membership(),
        beside=OnTheLoop(),
    )
    return RowExplanations(core, EngineExplainer(), reader, planner, queries)
