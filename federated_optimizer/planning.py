"""The way of a query through the optimizer: normalize, group joins by place, choose, cut."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from federated_optimizer.alternatives.heuristics import heuristics_of
from federated_optimizer.alternatives.recursion.recursions import MUCH, Foresee
from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import LOGICAL_RULES, UNREAD_SIDES, WIDTH_RULES, Rule, run_rules
from federated_optimizer.search.choosing import NOTHING_RUNS, Alternatives, Running, Search
from federated_optimizer.search.joins.joins_by_place import group_joins
from federated_optimizer.search.turning_facts import Turn, turning_facts
from federated_optimizer.sharing.forms.leaf_facts import without_known
from federated_optimizer.sharing.node_offers import NO_OFFERS, Offer
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN, Statistics
from streamsql.algebra.metrics import BY_BYTES, Metric
from streamsql.algebra.operators import Plan, ToStream, transform_up
from streamsql.binder import BoundQuery
from streamsql.errors import InternalError, UnsupportedError
from streamsql.wire.fragments import FragmentBundle


def normalize(plan: Plan, topology: Topology, *, unread_sides: bool = True) -> Plan:
    """Return the plan with the same schema and rows that is ready to be cut.

    Args:
        plan: As it was bound.
        topology: The sites.
        unread_sides: False: joins keep sides of which no column is read, for others to read.

    Raises:
        InternalError: A step changed the schema.
    """
    found, has_unread = _normalized((plan, topology))
    return _with_unread((plan, topology)) if has_unread and not unread_sides else found


# A registration normalizes a plan when it reads it, when it orders its joins and when it cuts it.
@exactly_cached(512)
def _normalized(asked: tuple[Plan, Topology]) -> tuple[Plan, bool]:
    """Return a plan that is ready, and whether it had sides of joins that nobody reads."""
    has_unread = False

    def without_unread(plan: Plan) -> Plan:
        nonlocal has_unread
        made = UNREAD_SIDES.apply(plan)
        has_unread = has_unread or made != plan
        return made

    noted = Rule(UNREAD_SIDES.name, without_unread)
    rules = [noted if rule is UNREAD_SIDES else rule for rule in LOGICAL_RULES]
    return _by_rules(*asked, rules), has_unread


@exactly_cached(512)
def _with_unread(asked: tuple[Plan, Topology]) -> Plan:
    """Return a plan that is ready but for the sides of joins that nobody reads, which it keeps."""
    return _by_rules(*asked, [rule for rule in LOGICAL_RULES if rule is not UNREAD_SIDES])


def _by_rules(plan: Plan, topology: Topology, rules: Sequence[Rule]) -> Plan:
    plan = transform_up(plan, lambda node: _ready(node, topology))
    grouped = group_joins(run_rules(plan, rules), topology)
    if grouped.schema != plan.schema:
        raise InternalError(f"grouping joins changed the schema to {grouped.schema}")
    return run_rules(grouped, WIDTH_RULES)


def _ready(node: Plan, topology: Topology) -> Plan:
    """Return a node with the query of a stream normalized, which no rule looks into."""
    if not isinstance(node, ToStream):
        return node
    return msgspec.structs.replace(node, query=normalize(node.query, topology))


def plan(  # noqa: PLR0913 - what a bundle consists of
    bound: BoundQuery,
    topology: Topology,
    *,
    query: str,
    version: int = 1,
    text: str = "",
    statistics: Statistics = NOTHING_KNOWN,
    foresee: Foresee | None = None,
    running: Running = NOTHING_RUNS,
    replanned: bool = False,
    much: float = MUCH,
    metric: Metric = BY_BYTES,
    search: Search | None = None,
    offers: Mapping[str, Offer] = NO_OFFERS,
) -> FragmentBundle:
    """Return the fragments of a bound query.

    Without `foresee` EXPLAIN does not say how recursions are kept, and a strategy that does not fit
    is refused where it would run. `running` is the plan that the query runs, which changes only for
    one that is `much` times cheaper. With `replanned` the query runs: it takes the cheapest plan if
    there is none of the number asked for any more. `metric` is that of queries that ask for none.
    `search` is what `search_of` has found for the same query and sites. `offers` has what those
    leaves of the plan stand for that read rows of other runs, by name.

    Raises:
        UnsupportedError: A recursion's strategy and way do not go together, the strategy does not
            fit the recursion, the plan is too deep, or there is none of the number asked for.
    """
    with guarded():
        if offers:
            nodes = {name: offer.plan for name, offer in offers.items()}
            statistics = dataclasses.replace(statistics, nodes=nodes)
        if search is None:
            search = search_of(bound, topology, statistics, metric)
        choice = search.taken(bound.asked, running, replanned=replanned, much=much)
        bundle = place(
            choice.plan,
            topology,
            query=query,
            version=version,
            text=text,
            emit=bound.emit,
            statistics=statistics,
            foresee=foresee,
            taken=choice.taken,
            kept=heuristics_of(bound.heuristics),
            offers=offers,
        )
        return msgspec.structs.replace(
            bundle,
            alternative=choice.number,
            choices=choice.digest,
            outgrown=statistics.outgrown,
        )


def alternatives(
    bound: BoundQuery,
    topology: Topology,
    statistics: Statistics = NOTHING_KNOWN,
    running: Running = NOTHING_RUNS,
    metric: Metric = BY_BYTES,
) -> Alternatives:
    """Return the plans of a bound query, with their costs.

    `running` and `metric` are as for `plan`.

    Raises:
        UnsupportedError: As for `plan`.
    """
    with guarded():
        search = search_of(bound, topology, statistics, metric)
        return search.alternatives(bound.asked, running)


def compared(
    bound: BoundQuery,
    topology: Topology,
    statistics: Statistics,
    running: Running,
    more: Callable[[], bool],
) -> tuple[Alternatives, tuple[Turn, ...]]:
    """Return the plans of a bound query, and the facts that would turn the choice.

    `running` is as for `plan`; facts are looked for as long as `more` returns that there is time.

    Raises:
        UnsupportedError: As for `plan`.
    """
    with guarded():
        search = search_of(bound, topology, statistics)
        found = search.alternatives(bound.asked, running)
        taken = search.plan(found.chosen)
        turns = turning_facts(search, taken, found.listed, more)
        return found, turns


def search_of(
    bound: BoundQuery,
    topology: Topology,
    statistics: Statistics = NOTHING_KNOWN,
    metric: Metric = BY_BYTES,
    *,
    unread_sides: bool = True,
) -> Search:
    """Return the search among the plans of a bound query.

    `metric` is as for `plan`, `unread_sides` as for `normalize`.

    Raises:
        UnsupportedError: The plan is too deep.
    """
    with guarded():
        return Search(
            without_known(
                normalize(bound.plan, topology, unread_sides=unread_sides), statistics.nodes
            ),
            topology,
            statistics,
            bound.metric or metric,
            whole_changes=bound.whole_changes,
            kept=heuristics_of(bound.heuristics),
        )


@contextmanager
def guarded() -> Iterator[None]:
    """Refuse plans that are too deep for the functions that walk them.

    Raises:
        UnsupportedError: The body recurses too deeply.
    """
    try:
        yield
    except RecursionError:
        raise UnsupportedError(
            "the operators of this query are nested too deeply",
            hint="use fewer joins and set operations in one query",
            code="limit_exceeded",
        ) from None
