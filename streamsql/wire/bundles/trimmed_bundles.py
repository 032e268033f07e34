"""Bundles of which others read only what is delivered: their base sites receive, and do no more.

A trimmed bundle has the name and the version of the whole one. So sites go on with it in the middle
of their channels: no row is sent again, and who reads what is delivered notices nothing.
"""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from streamsql.algebra.expressions import Literal
from streamsql.algebra.operators import Filter, Plan, Project, RemoteSource, UnionAll
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

_RECEIVED = "received"
_ONE = Literal(1, DataType.INTEGER)
_NEVER = Literal(value=False, dtype=DataType.BOOLEAN)
_REASON = "other runs read what is delivered here; nobody reads a result"


def trimmed(bundle: FragmentBundle, leaves: Collection[str]) -> FragmentBundle | None:
    """Return a bundle that delivers some leaves as before, and has an empty result.

    Args:
        bundle: Of a run.
        leaves: Ids of fragments that its gateways or the static engine deliver to base sites.

    Returns:
        None if it cannot be trimmed to these: some are not its own, read other fragments, or go to
        different sites.
    """
    kept = [fragment for fragment in bundle.own if fragment.id in leaves]
    goes = {fragment.destinations for fragment in kept}
    is_leaf = all(f.consumer and f.engine != Engine.BASE and not f.inputs for f in kept)
    result = next((f for f in bundle.fragments if not f.consumer), None)
    if result is None or len(kept) != len(set(leaves)) or len(goes) != 1 or not is_leaf:
        return None
    (sites,) = goes
    plan = nothing_of(RemoteSource(leaf.id, leaf.plan.schema) for leaf in kept)
    receiving = Fragment(result.id, Engine.BASE, plan, sites, reasons=(_REASON,))
    delivered = (replace(leaf, consumer=result.id) for leaf in kept)
    return FragmentBundle(
        bundle.query,
        bundle.version,
        (receiving, *delivered),
        plan.schema,
        text=bundle.text,
        silent=True,
    )


def is_trimmed(bundle: FragmentBundle) -> bool:
    """Return whether a bundle only delivers leaves."""
    leaves = [f.id for f in bundle.fragments if f.consumer]
    return bundle.silent and trimmed(bundle, leaves) == bundle


def goes_on_trimmed(running: FragmentBundle, bundle: FragmentBundle) -> bool:
    """Return whether a bundle is a running one, trimmed."""
    if not bundle.silent or running.version != bundle.version:
        return False
    leaves = [f.id for f in bundle.fragments if f.consumer]
    return bool(leaves) and trimmed(running, leaves) == bundle


def nothing_of(plans: Iterable[Plan]) -> Plan:
    """Return a plan that reads others and has no row."""
    empty = tuple(Project(Filter(plan, _NEVER), (_ONE,), (_RECEIVED,)) for plan in plans)
    return empty[0] if len(empty) == 1 else UnionAll(empty)
