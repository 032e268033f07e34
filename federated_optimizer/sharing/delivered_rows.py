"""Rows of sources that arrive at the base once, for all that can be computed from them there.

Gateways deliver selections of sources. Of two selections in one query the stronger one is a filter
over the rows of the weaker one; equal ones that show other columns are delivered once with all of
these. A selection that is no weaker than one of another run is a filter over its rows, and one of a
shorter window needs only the bounds of that. So fewer bytes travel; the base looks at rows that
gateways would have left out.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from federated_optimizer.costs.relations.estimates import estimate, row_bytes
from federated_optimizer.network.shareable import delivered_fragments
from federated_optimizer.sharing.computation_index import Allowed, ComputationIndex, Found, Rows
from federated_optimizer.sharing.forms.alignment import Available, aligned
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import residual
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.refusals import NotSharedError
from federated_optimizer.sharing.rules.select_project_join import answer
from federated_optimizer.sharing.rules.shorter_windows import (
    bounds_of,
    length_of,
    over_longer,
    shown_place,
    why_not,
    window_of,
    younger,
)
from federated_optimizer.sharing.run_offers import is_selection_of_sources, with_outputs
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.expressions import Column, Expression, columns_of
from streamsql.algebra.operators import Plan, RemoteSource, Younger, transform_up, walk_plan
from streamsql.wire.fragments import Fragment, FragmentBundle

MAX_LONGER = 16
"""Longer windows over one source whose rows are looked at for a shorter one."""


def delivered_once(
    bundle: FragmentBundle, statistics: Statistics, *, whole_changes: bool = False
) -> FragmentBundle:
    """Return a bundle in which no selection is delivered that another one of it contains.

    Args:
        bundle: As it was cut.
        statistics: By which bytes are compared: the one that stays may have to show more columns.
        whole_changes: As for `rows_of_others`.
    """
    while True:
        sent = selections(bundle)
        of_younger = sited_leaves(bundle)
        pairs = [(s, w) for s in sent for w in sent if s is not w]
        merged = next((m for s, w in pairs if (m := _merged(s, w, statistics)) is not None), None)
        if merged is None and not whole_changes:
            shorter = (_shortened(s, w, statistics) for s, w in pairs if s.id not in of_younger)
            merged = next((m for m in shorter if m is not None), None)
        if merged is None:
            return bundle
        bundle = _with(bundle, *merged)


_Merged = tuple[Mapping[str, Fragment], Mapping[str, Plan]]
"""Fragments that change, and what is read in the place of fragments."""


def _merged(strong: Fragment, weak: Fragment, statistics: Statistics) -> _Merged | None:
    """Return a selection as a filter over the rows of a weaker one, if that is so and pays."""
    plan = _containing(strong, weak, statistics)
    if plan is None:
        return None
    wider = replace(weak, plan=plan)
    over = answer(strong.plan, plan, RemoteSource(weak.id, plan.schema))
    assert over is not None  # noqa: S101  (that is how it was found)
    return {weak.id: wider}, {strong.id: over, weak.id: _narrowed(weak, wider)}


def _shortened(strong: Fragment, weak: Fragment, statistics: Statistics) -> _Merged | None:
    """Return a shorter window over the rows of a longer one, if that is so and pays."""
    window, offered = window_of(strong.plan), block_of(weak.plan)
    (rows,) = offered.inputs
    if window is None or window == rows or delivered_at(strong) != delivered_at(weak):
        return None
    try:
        wanted = over_longer(strong.plan, rows)
    except NotSharedError:
        return None
    time = offered.columns[window.input.time_column or 0]
    plan = showing(wanted, weak.plan, (time,))
    if plan is None:
        return None
    told = replace(strong, plan=bounds_of(strong.plan))
    saved, sent = (_bytes(each, statistics) for each in (strong.plan, told.plan))
    if _bytes(plan, statistics) - _bytes(weak.plan, statistics) + sent > saved:
        return None
    wider = replace(weak, plan=plan)
    over = answer(wanted, plan, RemoteSource(weak.id, plan.schema))
    assert over is not None  # noqa: S101  (that is how it was found)
    over = younger(over, plan, strong.plan, strong.id)
    return (
        {weak.id: wider, strong.id: told},
        {strong.id: over, weak.id: _narrowed(weak, wider)},
    )


def _bytes(plan: Plan, statistics: Statistics) -> float:
    """Return the bytes a second of the rows that come and go."""
    return estimate(plan, statistics).events * row_bytes(plan.schema)


def delivered_at(fragment: Fragment) -> tuple[object, ...]:
    """Return the sites that send rows of a fragment, and those that receive them."""
    return fragment.engine, set(fragment.sites), fragment.destinations


def sited_leaves(bundle: FragmentBundle) -> frozenset[str]:
    """Return the fragments of which rows, or bounds, are read with the sites that send them."""
    return frozenset(
        leaf.fragment
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, Younger)
        for leaf in walk_plan(node)
        if isinstance(leaf, RemoteSource)
    )


def selections(bundle: FragmentBundle) -> list[Fragment]:
    """Return the fragments of a bundle that deliver a selection of a source to one site."""
    fed = {feed.fragment for feed in bundle.feeds}
    return [
        fragment
        for fragment in delivered_fragments(bundle)
        if len(fragment.destinations) == 1
        and fragment.id not in fed
        and is_selection_of_sources(fragment.plan)
    ]


def _containing(strong: Fragment, weak: Fragment, statistics: Statistics) -> Plan | None:
    """Return the plan of a weaker fragment with all columns that a stronger one needs of it.

    None if it is not weaker, runs elsewhere, or the columns would take more bytes than are saved.
    """
    if delivered_at(strong) != delivered_at(weak):
        return None
    plan = showing(strong.plan, weak.plan)
    if plan is None:
        return None
    saved = estimate(strong.plan, statistics).rows * row_bytes(strong.plan.schema)
    added = row_bytes(plan.schema) - row_bytes(weak.plan.schema)
    return plan if added * estimate(weak.plan, statistics).rows <= saved else None


def showing(strong: Plan, weak: Plan, more: Sequence[Expression] = ()) -> Plan | None:
    """Return a weaker plan with all columns that a stronger one needs of it, and some more.

    None if it is not weaker.
    """
    offered = block_of(weak)
    moved = next(aligned(block_of(strong), offered), None)
    rest = (
        None
        if moved is None
        else residual(moved.predicates, offered.predicates, known_times(moved))
    )
    if moved is None or rest is None:
        return None
    lacking = _missing(offered, (*moved.outputs, *rest, *more))
    return with_outputs(offered, lacking) if lacking else weak


def _missing(offered: Block, needed: Sequence[Expression]) -> tuple[Column, ...]:
    """Return the columns of a block that expressions read and it does not show."""
    available = Available.of(offered)
    found: dict[int, Column] = {}
    for expression in needed:
        if available.text(expression) in available.places:
            continue
        for place in sorted(columns_of(expression)):
            column = offered.columns[place]
            if isinstance(column, Column) and available.text(column) not in available.places:
                found[place] = column
    return tuple(found.values())


def _narrowed(weak: Fragment, wider: Fragment) -> Plan:
    """Return the leaf of a fragment that shows more columns now, for those who read it before."""
    leaf = RemoteSource(weak.id, wider.plan.schema)
    found = answer(weak.plan, wider.plan, leaf)
    assert found is not None  # noqa: S101  (it has the same rows and more columns)
    return found


def _with(
    bundle: FragmentBundle, changed: Mapping[str, Fragment], leaves: Mapping[str, Plan]
) -> FragmentBundle:
    """Return a bundle with other fragments, and other plans in the place of leaves."""

    def put(node: Plan) -> Plan:
        return leaves.get(node.fragment, node) if isinstance(node, RemoteSource) else node

    made = []
    gone = leaves.keys() - changed.keys()
    for fragment in bundle.fragments:
        if fragment.id in gone:
            continue
        new = changed.get(fragment.id, fragment)
        made.append(replace(new, plan=transform_up(new.plan, put)))
    return numbered(replace(bundle, fragments=tuple(made)))


def numbered(bundle: FragmentBundle) -> FragmentBundle:
    """Return a bundle whose fragments are numbered without gaps, each consumer its first reader."""
    ids = {fragment.id: f"f{place}" for place, fragment in enumerate(bundle.fragments)}

    def put(node: Plan) -> Plan:
        if isinstance(node, RemoteSource) and node.fragment in ids:
            return RemoteSource(ids[node.fragment], node.columns)
        return node

    made = []
    readers = bundle.readers_of_all()
    for fragment in bundle.fragments:
        consumer = fragment.consumer
        if consumer and consumer not in readers[fragment.id]:
            consumer = readers[fragment.id][0]
        plan = transform_up(fragment.plan, put)
        made.append(
            replace(fragment, id=ids[fragment.id], plan=plan, consumer=ids.get(consumer, ""))
        )
    feeds = tuple(replace(feed, fragment=ids[feed.fragment]) for feed in bundle.feeds)
    return replace(bundle, fragments=tuple(made), feeds=feeds)


@dataclass(slots=True)
class RowsOfOthers:
    """Selections of a bundle that are computed from rows of other runs.

    Attributes:
        found: By fragment.
        told: What sites send in place of a fragment, by fragment: bounds of its window. Others send
            nothing.
    """

    found: dict[str, Found] = field(default_factory=dict)
    told: dict[str, Plan] = field(default_factory=dict)


def rows_of_others(  # noqa: PLR0913 - a bundle, and what may be read how
    bundle: FragmentBundle,
    index: ComputationIndex,
    allowed: Allowed,
    rows: Rows,
    *,
    canonical: bool,
    whole_changes: bool = False,
) -> RowsOfOthers:
    """Return answers to the selections of a bundle over rows of other runs.

    Selections that another run has just so are left out: sites hand these over as they arrive.

    Args:
        bundle: As it was cut.
        index: Of the offers.
        allowed: Whether an offer may be read.
        rows: Of an offer.
        canonical: Whether predicates that are written otherwise may follow from each other.
        whole_changes: Whether the changes of one reading have to arrive together. Rows of a longer
            window and the bounds of a shorter one do not.
    """
    result = RowsOfOthers()
    of_younger = sited_leaves(bundle)
    for fragment in selections(bundle):
        if fragment.id in of_younger:
            # Its rows have to come with the sites that send them, in its own plan.
            sent = _sent_from(fragment, allowed)
            best = index.find(fragment.plan, sent, rows, canonical=canonical)
            if best is not None and best.offer.plan != fragment.plan:
                result.found[fragment.id] = best
            continue
        best = index.find(fragment.plan, allowed, rows, canonical=canonical)
        if best is not None and not best.remaining and _is_handed_over(best.offer, fragment):
            continue
        if best is None and not whole_changes:
            best = _of_longer(fragment, index, allowed, rows, canonical=canonical)
            if best is not None:
                result.told[fragment.id] = bounds_of(fragment.plan)
        if best is not None:
            result.found[fragment.id] = best
    return result


def _of_longer(
    fragment: Fragment, index: ComputationIndex, allowed: Allowed, rows: Rows, *, canonical: bool
) -> Found | None:
    """Return an answer to a selection of a window over the rows of a longer one, the fewest.

    Of many windows that are longer the shortest are looked at.
    """
    is_sent = _sent_from(fragment, allowed)
    window = window_of(fragment.plan)
    if window is None or set(fragment.destinations) & set(fragment.sites):
        return None
    time = window.input.time_column

    def has_time(offer: Offer) -> bool:
        return is_sent(offer) and shown_place(offer.plan, time) is not None

    longer_ones = [each for each in index.rows_of(window.input) if not why_not(window, each)]
    answers = []
    for longer in sorted(longer_ones, key=length_of)[:MAX_LONGER]:
        try:
            wanted = over_longer(fragment.plan, longer)
            found = index.find(wanted, has_time, rows, canonical=canonical)
            if found is not None:
                plan = younger(found.plan, found.offer.plan, fragment.plan, fragment.id)
                answers.append(dataclasses.replace(found, plan=plan, remaining=found.remaining + 1))
        except NotSharedError:
            continue
    return min(answers, key=lambda each: each.order, default=None)


def _is_handed_over(offer: Offer, fragment: Fragment) -> bool:
    """Return whether sites deliver a fragment just so already, and hand it over as it arrives."""
    return offer.is_delivered and offer.plan == fragment.plan


def _sent_from(fragment: Fragment, allowed: Allowed) -> Allowed:
    """Return which of the offers that may be read are sent by the sites of a fragment."""

    def is_sent(offer: Offer) -> bool:
        if not offer.is_readable or not allowed(offer):
            return False
        sender = offer.bundle.fragment(offer.fragment)
        return bool(sender.consumer) and delivered_at(sender) == delivered_at(fragment)

    return is_sent
