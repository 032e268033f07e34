"""A node of the network as a query that can be planned again."""

import dataclasses
from collections.abc import Callable

from msgspec.structs import replace

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from streamsql.algebra.operators import Scan, WindowBounds, walk_plan
from streamsql.binder import BoundQuery
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError, InternalError
from streamsql.wire.fragments import Fragment, FragmentBundle


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


def delivered_again(
    node: RunningQuery, bound: BoundQuery, placed: Callable[[BoundQuery], FragmentBundle]
) -> FragmentBundle:
    """Return the bundle of a trimmed node with the sites of now; `placed` plans a query by itself.

    Raises:
        BindingError: Something that it delivers would be computed elsewhere by now; code `in_use`.
    """
    result, *leaves = node.bundle.fragments
    for leaf in leaves:
        if any(isinstance(each, WindowBounds) for each in walk_plan(leaf.plan)):
            raise _planned_otherwise(leaf)  # bounds are no query: who reads them asks for them
    found = [_placed_as(leaf, placed(_of_leaf(bound, leaf))) for leaf in leaves]
    sites = {leaf.destinations for leaf in found}
    if len(sites) != 1:
        raise _planned_otherwise(leaves[0])
    receiving = replace(result, sites=found[0].destinations)
    return replace(node.bundle, version=node.bundle.version + 1, fragments=(receiving, *found))


def _of_leaf(bound: BoundQuery, leaf: Fragment) -> BoundQuery:
    return dataclasses.replace(bound, plan=leaf.plan, schema=leaf.plan.schema)


def _placed_as(leaf: Fragment, bundle: FragmentBundle) -> Fragment:
    """Return a leaf at the sites at which a bundle has it."""
    for fragment in bundle.own:
        goes, is_same = fragment.destinations, fragment.plan == leaf.plan
        if fragment.consumer and is_same and fragment.engine == leaf.engine and len(goes) == 1:
            return replace(leaf, sites=fragment.sites, destinations=goes, partition=())
    raise _planned_otherwise(leaf)


def _planned_otherwise(leaf: Fragment) -> BindingError:
    return BindingError(
        f"{leaf.id} would be planned otherwise by now",
        hint="those that read it are planned again by themselves",
        code="in_use",
    )


def _is_current(scan: Scan, catalog: Catalog) -> bool:
    found = catalog.find(scan.source)
    if not isinstance(found, SourceDefinition):
        return False
    return replace(found.scan(), part=scan.part, history=scan.history) == scan
