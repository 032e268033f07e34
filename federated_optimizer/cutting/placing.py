"""A plan as the fragments of a bundle, cut by the methods that were chosen."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.recursion.recursions import Foresee
from federated_optimizer.cutting.bundling import Bundler
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.network.topology import Topology
from federated_optimizer.sharing.node_offers import NO_OFFERS, Offer
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN, Statistics
from streamsql.algebra.column_origins import column_units
from streamsql.algebra.operators import Fixpoint, Materialize, Plan, Scan, SourceKind, walk_plan
from streamsql.algebra.streams import Emit
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle, RecursionPlan


def place(  # noqa: PLR0913 - what a bundle consists of
    plan: Plan,
    topology: Topology,
    *,
    query: str,
    version: int = 1,
    text: str = "",
    emit: Emit = Emit.RELATION,
    statistics: Statistics = NOTHING_KNOWN,
    foresee: Foresee | None = None,
    taken: Taken | None = None,
    kept: Heuristics = ALL,
    offers: Mapping[str, Offer] = NO_OFFERS,
) -> FragmentBundle:
    """Cut a normalized plan into fragments; the result is gathered at the first base site.

    `version` is greater than that of any earlier bundle of the query; `taken` is the plan
    with the methods that were chosen, if somebody has, `kept` the rules under which they were.
    `offers` has what the leaves stand for that read rows of other runs, by name.

    Raises:
        UnsupportedError: A recursion's strategy and way do not go together, or the strategy does
            not fit the recursion, which only `foresee` can tell.
    """
    cutter = Cutter(topology, statistics, kept=kept)
    fragments, feeds = _cut(taken or Taken(plan), cutter, offers)
    apart = _materialized_apart(fragments)
    if apart:  # one plan, none is chosen
        cutter = Cutter(topology, statistics, apart, kept)
        fragments, feeds = _cut(Taken(plan), cutter, offers)
    recursions = tuple(dict.fromkeys(cutter.recursions))
    if foresee is not None:
        recursions = tuple(_foreseen(r, fragments, foresee) for r in recursions)
    units = column_units(plan)
    return FragmentBundle(
        *(query, version, fragments, plan.schema, text, emit, recursions),
        units=units if any(units) else (),
        feeds=feeds,
    )


def _cut(
    taken: Taken, cutter: Cutter, offers: Mapping[str, Offer]
) -> tuple[tuple[Fragment, ...], tuple[Feed, ...]]:
    bundler = Bundler(cutter.topology, cutter, offers)
    fragments = bundler.fragments(cutter.gathered(cutter.taken(taken)))
    return fragments, bundler.feeds


def _materialized_apart(fragments: tuple[Fragment, ...]) -> frozenset[str]:
    """Return the materialized tables that more than one fragment would compute."""
    found = Counter(
        name
        for fragment in fragments
        for name in {n.name for n in walk_plan(fragment.plan) if isinstance(n, Materialize)}
    )
    return frozenset(name for name, count in found.items() if count > 1)


def _foreseen(
    recursion: RecursionPlan, fragments: tuple[Fragment, ...], foresee: Foresee
) -> RecursionPlan:
    """Return a recursion with how its sites will maintain it."""
    for fragment in fragments:
        for node in walk_plan(fragment.plan):
            if isinstance(node, Fixpoint) and node.name == recursion.name:
                kept = foresee(node, fragment.sites)
                return msgspec.structs.replace(recursion, kept=kept)
    return recursion


def direct_scans(bundle: FragmentBundle) -> dict[str, tuple[str, ...]]:
    """Return the streams that base fragments read themselves, and at which sites.

    Such a site must be given every event of the source, from all gateways: its window counts rows
    in the order of all of them.
    """
    found: dict[str, tuple[str, ...]] = {}
    for fragment in bundle.fragments:
        if fragment.engine != Engine.BASE:
            continue
        for node in walk_plan(fragment.plan):
            if isinstance(node, Scan) and node.kind != SourceKind.TABLE:
                found[node.source] = fragment.sites
    return found
