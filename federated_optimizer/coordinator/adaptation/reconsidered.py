"""The plan that a running query would be given now, beside the one that it has."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from federated_optimizer.coordinator.adaptation.bundle_choice import Work
from federated_optimizer.coordinator.adaptation.over_others import over_others
from federated_optimizer.coordinator.adaptation.plan_basis import Basis, NotedStatistics
from federated_optimizer.coordinator.contract.coordinator_model import ACTING
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.planning import search_of
from federated_optimizer.search.choosing import Search
from federated_optimizer.search.plan_words import plan_words
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.metrics import Metric
from streamsql.algebra.operators import RemoteSource, Scan, walk_plan
from streamsql.algebra.window_reach import reaches_of
from streamsql.data.types import MICROSECONDS
from streamsql.errors import FederationError, QueryError
from streamsql.syntax import parse_statement
from streamsql.wire.codec import encode_packed
from streamsql.wire.fragments import Fragment, FragmentBundle


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan with its price by the facts of now.

    Attributes:
        words: Its number, and where its operators are.
        cost: Of all that travels.
        fed: Of what other runs send in any case: the part of the price that it does not cause.
    """

    words: str
    cost: Cost
    fed: Cost = NOTHING


@dataclass(frozen=True, slots=True)
class Reconsidered:
    """A plan that was looked at again.

    Attributes:
        planned: The plan that is taken now: the one that runs, or one that is much cheaper.
        before: What runs; None: there is no such plan any more with the sites of now.
        after: What is taken now.
        basis: What the choice rests on.
        filling: What travels until the sites have what the plan that is taken needs, by estimate.
        weighing: By what plans are compared.
        fixed: By id of queries that keep their plan in any case: why, in words.
        apart: By id of queries of which this says nothing, as they ask for another choice: why.
        work: What the plan saves sites, if it is taken for that.
        over: The bundle that is taken, as a new run would have it; None: results of others play no
            part in the choice.
    """

    planned: Planned
    before: PricedPlan | None
    after: PricedPlan
    basis: Basis
    filling: Cost
    weighing: Weighing
    fixed: dict[str, str] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    work: Work | None = None
    over: FragmentBundle | None = None


def reconsider(
    planner: Planner,
    queries: Iterable[RunningQuery],
    metric: Metric,
    fed: Callable[[Planned, str], FragmentBundle] = lambda planned, _: planned.bundle,
    offers: ReadableOffers | None = None,
) -> Reconsidered:
    """Return what would be planned now for queries that read one run.

    With `offers` a plan that reads results of others is considered, too. `fed` returns a plan with
    what other runs would give a run of it, but for the named one.
    `metric` is that of queries that ask for none. Those of another metric than the first one's are
    apart: they are looked at by themselves. If changes of one of the answers act on the world, all
    take a plan by which changes of one reading arrive together.

    Raises:
        QueryError: The text does not bind any more.
        UnsupportedError: There is no plan for it.
    """
    readers = tuple(queries)
    fixed = _fixed(planner, readers)
    first = next((query for query in readers if query.id not in fixed), readers[0])
    current = first.bundle
    whole = any(query.origin in ACTING for query in readers if query.id not in fixed)
    bound = planner.bound(first.text, current=current, whole_changes=whole)
    apart: dict[str, str] = {}
    for query in readers:
        if query.id not in fixed and query.text != first.text:
            other = planner.bind(parse_statement(query.text))
            if (other.metric or metric) != (bound.metric or metric):
                apart[query.id] = "another query of its run asks for another metric"
            elif other.heuristics != bound.heuristics:
                apart[query.id] = "another query of its run asks for other heuristics"
    noted = NotedStatistics(planner.statistics(current))
    search = search_of(bound, planner.topology(), noted.statistics, metric)
    planned = planner.placed(
        bound,
        query=current.query,
        version=current.version + 1,
        text=first.text,
        current=current,
        search=search,
    )
    taken = planned.bundle
    after = _priced(search, taken.alternative)
    number = search.number_of((current.alternative, current.choices))
    before = None if not number else _priced(search, number)
    would_run = fed(planned, current.query)
    after = replace(after, fed=_fed_cost(planner, would_run))
    if before is not None:
        before = replace(before, fed=_fed_cost(planner, current))
    filling = filling_cost(would_run, noted.statistics)
    basis, weighing = noted.basis(), search.weighing
    found = Reconsidered(planned, before, after, basis, filling, weighing, fixed, apart)
    if offers is None or planned.alone:
        return found
    movers = [query for query in readers if query.id not in fixed and query.id not in apart]
    choice = over_others(
        *(planner, bound, movers or [first], planned, fed, offers, weighing),
        is_searched=before is not None,
    )
    if choice is None:
        return found
    return replace(
        found,
        planned=choice.planned,
        before=PricedPlan(*choice.before),
        after=PricedPlan(*choice.after),
        filling=filling_cost(choice.bundle, noted.statistics),
        work=choice.work,
        over=choice.bundle,
    )


def reconsider_all(
    planner: Planner,
    groups: Mapping[str, Iterable[RunningQuery]],
    metric: Metric,
    fed: Callable[[Planned, str], FragmentBundle],
    offers: ReadableOffers,
) -> dict[str, Reconsidered | FederationError]:
    """Return for each run what `reconsider` returns for its queries, or why it fails."""
    found: dict[str, Reconsidered | FederationError] = {}
    for run, queries in groups.items():
        try:
            found[run] = reconsider(planner, queries, metric, fed, offers)
        except FederationError as error:
            found[run] = error
    return found


def _fixed(planner: Planner, queries: Iterable[RunningQuery]) -> dict[str, str]:
    found: dict[str, str] = {}
    known: dict[str, str] = {}
    for query in queries:
        if query.text not in known:
            known[query.text] = why_fixed(planner, query.text)
        if known[query.text]:
            found[query.id] = known[query.text]
    return found


def why_fixed(planner: Planner, text: str) -> str:
    """Return why queries of a text keep their plan in any case, in words; empty: they need not."""
    try:
        bound = planner.bind(parse_statement(text))
    except QueryError as error:
        return f"it cannot be planned again: {error.message}"
    if bound.asked:
        return f"it asks for plan {bound.asked}"
    return "" if bound.adapts else "WITH (adapt = 'no') says so"


def _priced(search: Search, number: int) -> PricedPlan:
    words = plan_words(search.memo, search.memo.selection(number))
    return PricedPlan(f"plan {number}: {words}".removesuffix(": "), search.plan(number).cost)


def _fed_cost(planner: Planner, bundle: FragmentBundle) -> Cost:
    """Return the price of what other runs send for a bundle; it says nothing of its time."""
    if not bundle.feeds:
        return NOTHING
    estimates = planner.estimates(bundle)
    costs = (estimates[feed.fragment].cost for feed in bundle.feeds)
    return replace(sum(costs, NOTHING), milliseconds=0.0)


def filling_cost(bundle: FragmentBundle, statistics: Statistics) -> Cost:
    """Return the price of all that travels until the sites of a bundle have all that it needs.

    The bundle goes to every site, each fragment sends all its rows once, and the lake sends the
    readings of the windows that it fills.
    """
    known: dict[str, Estimate] = {}
    bytes_sent = float(len(encode_packed(bundle)) * len(bundle.sites))
    messages = float(len(bundle.sites))
    own = {fragment.id for fragment in bundle.own}
    for fragment in _feeders_first(bundle):
        if fragment.id not in own:
            continue
        leaves = {
            node.fragment: known[node.fragment]
            for node in walk_plan(fragment.plan)
            if isinstance(node, RemoteSource) and node.fragment in known
        }
        rows = known[fragment.id] = estimate(
            fragment.plan, statistics, sites=len(fragment.sites), leaves=leaves
        )
        width = sent_bytes(fragment.plan, statistics)
        bytes_sent += rows.rows * width + statistics.wires.message_bytes * len(fragment.sites)
        messages += len(fragment.sites)
    bytes_sent += _bytes_of_lake(bundle, statistics)
    return Cost(bytes_sent, messages=messages, energy=bytes_sent)


def _bytes_of_lake(bundle: FragmentBundle, statistics: Statistics) -> float:
    """Return the bytes of the readings with which the lake fills windows, as far as rates tell."""
    scans = {
        node.source: node
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan)
    }
    total = 0.0
    for reach in reaches_of(bundle.fragments):
        facts = statistics.sources.get(reach.source.lower())
        if reach.source in bundle.fills and facts is not None and facts.changes is not None:
            rows = facts.changes * reach.back / MICROSECONDS
            total += rows * sent_bytes(scans[reach.source], statistics)
    return total


def _feeders_first(bundle: FragmentBundle) -> list[Fragment]:
    left = list(bundle.fragments)
    found: list[Fragment] = []
    while left:
        waiting = {fragment.id for fragment in left}
        ready = [f for f in left if not waiting & _read_by(f)] or left
        found.extend(ready)
        left = [fragment for fragment in left if fragment not in ready]
    return found


def _read_by(fragment: Fragment) -> set[str]:
    return {n.fragment for n in walk_plan(fragment.plan) if isinstance(n, RemoteSource)}
