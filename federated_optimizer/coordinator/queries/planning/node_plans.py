"""A node of the network as a query that can be planned again."""

from msgspec.structs import replace

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.binder import BoundQuery
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError, InternalError


def bound_node(node: RunningQuery, catalog: Catalog, *, heuristics: bool) -> BoundQuery:
    """Return a node of the network as a query.

    `heuristics` says whether plans are left out that seldom pay.

    Raises:
        BindingError: A source that it reads is defined otherwise by now; code `in_use`.
    """
    if node.logical is None:
        raise InternalError(f"nobody knows what {node.id} computes")
    for scan in (each for each in walk_plan(node.logical) if isinstance(each, Scan)):
        if not _is_current(scan, catalog):
            raise BindingError(
                f"{scan.source} is defined otherwise since this node was made",
                hint="the node goes with the last query that reads it",
                code="in_use",
            )
    bundle = node.bundle
    return BoundQuery(
        *(node.logical, bundle.schema, bundle.emit, ()),
        reads=node.reads,
        heuristics=heuristics,
        whole_changes=node.whole_changes,
    )


def _is_current(scan: Scan, catalog: Catalog) -> bool:
    found = catalog.find(scan.source)
    if not isinstance(found, SourceDefinition):
        return False
    return replace(found.scan(), part=scan.part, history=scan.history) == scan
