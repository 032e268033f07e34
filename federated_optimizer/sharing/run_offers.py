"""The offers of a run: its result, what gateways deliver for it, and what it computes inside."""

from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import count

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.network.shareable import delivered_fragments
from federated_optimizer.sharing.forms.blocks import Block, block_of, plan_of
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.partner_joins import with_joins
from federated_optimizer.sharing.rules.more_functions import widest_groups
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import (
    Filter,
    Join,
    Materialize,
    Plan,
    Project,
    RemoteSource,
    Scan,
    UnionAll,
    Values,
    Window,
    is_open,
    walk_plan,
)
from streamsql.algebra.streams import Emit
from streamsql.catalog.read_gate import Read
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from streamsql.wire.fragments import Engine, FragmentBundle

_ROW_BY_ROW = (Scan, Window, Filter, Project, UnionAll, Join)
"""Operators of gateways whose rows together are those of the whole source."""

_NO_NODES = (Scan, Window, Values, Materialize, RemoteSource)
"""Operators that are never a node by themselves."""


def offers_of(  # noqa: PLR0913 - a run, and what is known of it
    bundle: FragmentBundle,
    logical: Plan,
    reads: frozenset[Read] = frozenset(),
    tells: frozenset[Read] = frozenset(),
    *,
    rows: float | None = None,
    is_node: bool = False,
    statistics: Statistics | None = None,
) -> tuple[Offer, ...]:
    """Return the offers of a run.

    Args:
        bundle: Of the run, which must be one that any number of queries may read.
        logical: What its result is, over sources.
        reads: The relations that whoever reads it must be allowed to read.
        tells: The relations that the queries read that it was made for, besides these.
        rows: Of its result, as counted.
        is_node: True if the run has no query of its own.
        statistics: By which rows are estimated that nobody has counted; None: they are not.
    """
    run, may = bundle.query, (reads, reads | tells)

    def estimated(plan: Plan) -> Callable[[], float] | None:
        return None if statistics is None else cache(lambda: estimate(plan, statistics).rows)

    # What a run reads of another one that has to offer, not it: sites hand nothing on twice.
    fed = {feed.fragment for feed in bundle.feeds}
    found = [
        Offer(run, f.id, bundle, f.plan, None, *may, estimated=estimated(f.plan))
        for f in delivered_fragments(bundle)
        if f.id not in fed
        and len(f.destinations) == 1
        and (f.engine == Engine.STATIC or _is_row_by_row(f.plan))
        and not any(isinstance(n, RemoteSource) for n in walk_plan(f.plan))
    ]
    if is_trimmed(bundle):
        return tuple(found)  # it computes nothing any more
    result = bundle.fragments[0]
    gathered = result.engine == Engine.BASE and len(result.sites) == 1 and not result.consumer
    if gathered and bundle.emit == Emit.RELATION:
        likely = estimated(logical)
        found.append(Offer(run, result.id, bundle, logical, rows, *may, is_node, estimated=likely))
    wide = [
        Offer(run, "", bundle, plan, None, *may, is_node, own) for plan, own in inner_plans(logical)
    ]
    partners = [
        Offer(run, "", bundle, plan, None, *may, is_node, own, for_partners=True)
        for plan, own in joins_for_partners(logical)
    ]
    return (*found, *wide, *partners)


def _is_row_by_row(plan: Plan) -> bool:
    return all(isinstance(node, _ROW_BY_ROW) for node in walk_plan(plan))


@exactly_cached(1_024)
def inner_plans(logical: Plan) -> tuple[tuple[Plan, int], ...]:
    """Return what a run computes inside, with all columns that there are, the whole first.

    The catalog asks, and the index of what runs offer.

    Each comes with the number of columns that the run itself needs of it; these are the first.
    Selections of sources are left out: gateways compute these, and deliver them to the base.
    """
    found: dict[str, tuple[Plan, int]] = {}
    for node in _parts(logical):
        if isinstance(node, _NO_NODES) or is_selection_of_sources(node) or is_open(node):
            continue
        form = canonical_plan(node).form
        if form not in found:
            found[form] = (widest(node), len(node.schema))
    return tuple(found.values())


@exactly_cached(1_024)
def joins_for_partners(logical: Plan) -> tuple[tuple[Plan, int], ...]:
    """Return joins of which a run computes semi joins inside, as `inner_plans` returns parts."""
    joined = with_joins(logical)
    if joined is logical:
        return ()
    known = {canonical_plan(node).form for node in _parts(logical)}
    found: dict[str, tuple[Plan, int]] = {}
    for node in _parts(joined):
        if len(block_of(node).inputs) > 1 and not is_open(node):
            form = canonical_plan(node).form
            if form not in known:
                found.setdefault(form, (widest(node), len(node.schema)))
    return tuple(found.values())


def _parts(logical: Plan) -> Iterator[Plan]:
    """Yield operators, and what stands right above them as far as it belongs to their block."""
    yield logical
    for node in walk_plan(logical):
        if isinstance(node, Filter | Project):
            continue
        yield node
        yield from (child for child in node.inputs if len(block_of(child).inputs) > 1)


@exactly_cached(1_024)
def widest(plan: Plan) -> Plan:
    """Return a plan with all columns of its block, those of the plan first.

    Groups also have the statistics of their functions: coarser groups come from these.
    """
    groups = widest_groups(plan)
    if groups is not None:
        return groups
    block = block_of(plan)
    if block.is_trivial:
        return plan
    shown = {*block.outputs}
    more = tuple(column for column in block.columns if column not in shown)
    return with_outputs(block, more)


def with_outputs(block: Block, more: tuple[Expression, ...]) -> Plan:
    """Return a plan of a block with further outputs behind its own.

    Columns keep their names, numbered where another output has one: explanations show them.
    """
    names, taken = [*block.names], set(block.names)
    for expression in more:
        own = expression.name if isinstance(expression, Column) else "column"
        names.append(_free_name(own, taken))
        taken.add(names[-1])
    outputs = (*block.outputs, *more)
    return plan_of(Block(block.inputs, block.predicates, outputs, tuple(names)))


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return a name, with the least number from 2 on that makes it another one than those taken."""
    if name not in taken:
        return name
    return next(f"{name}_{n}" for n in count(2) if f"{name}_{n}" not in taken)


def is_selection_of_sources(plan: Plan) -> bool:
    """Return whether a plan filters and projects one source."""
    block = block_of(plan)
    return len(block.inputs) == 1 and isinstance(block.inputs[0], Scan | Window)
