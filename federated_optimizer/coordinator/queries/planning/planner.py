"""From a statement's text to a bundle, with the catalog and the sites as they are now."""

import dataclasses
from collections.abc import Callable, Iterable
from copy import copy
from math import inf

import msgspec

from federated_optimizer.alternatives.recursion.recursions import MUCH, Foresee
from federated_optimizer.coordinator.facts.heard_facts import HeardFacts
from federated_optimizer.coordinator.facts.known_statistics import KnownStatistics
from federated_optimizer.coordinator.queries.listed_queries import is_outgrown
from federated_optimizer.coordinator.queries.planned_queries import Planned, PlannedNode
from federated_optimizer.coordinator.queries.planning.filled_windows import (
    PastSizes,
    fill_notes,
    filled_sources,
    with_start,
)
from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from federated_optimizer.coordinator.queries.planning.known_sites import KnownSites
from federated_optimizer.coordinator.queries.planning.node_plans import (
    bound_node,
    delivered_again,
)
from federated_optimizer.coordinator.queries.planning.shared_planning import (
    Reading,
    new_nodes,
    registered,
)
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.timed_attempts import undisturbed
from federated_optimizer.costs.fragment_estimates import FragmentEstimate, fragment_estimates
from federated_optimizer.cutting.bundling import ungathered
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import compared, normalize, plan, search_of
from federated_optimizer.registering.registration_terms import Planning
from federated_optimizer.search.choosing import NOTHING_RUNS, PUSHED, Alternatives, Running, Search
from federated_optimizer.search.turning_facts import TURNING_SECONDS, Turn
from federated_optimizer.sharing.strategy import Strategy
from federated_optimizer.statistics.planning_statistics import Statistics
from host.clocks import monotonic_clock, time_left
from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.binder import BoundQuery, bind_query, with_columns
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.read_gate import Read
from streamsql.errors import BindingError, QueryError
from streamsql.history.past_plans import fixed
from streamsql.syntax import parse_statement
from streamsql.syntax.statements import Statement
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from streamsql.wire.fragments import FragmentBundle


class Planner:
    """Binds and places queries.

    Attributes:
        sites: That queries are placed on.
    """

    def __init__(
        self,
        shared: SharedParts,
        heard: HeardFacts,
        foresee: Foresee | None,
        past: PastSizes | None = None,
    ) -> None:
        self._shared = shared
        self._heard = heard
        self._foresee = foresee
        self._past = past
        self._statistics = KnownStatistics(shared)
        self._running: Callable[[], Iterable[RunningQuery]] = tuple
        self._of_text: Callable[[str], RunningQuery | None] = lambda _text: None
        self.sites = KnownSites(shared)
        self._reading: Reading | None = None

    def watch(
        self,
        running: Callable[[], Iterable[RunningQuery]],
        of_text: Callable[[str], RunningQuery | None],
    ) -> None:
        """Learn rates from the queries that run, one of each run, and their plans, by text."""
        self._running, self._of_text = running, of_text

    def topology(self) -> Topology:
        """Return the sites as known now."""
        return self.sites.topology()

    def statistics(self, current: FragmentBundle | None = None) -> Statistics:
        """Return what is known of sources and recursions.

        Args:
            current: What a query runs now: its recursions keep their ways unless others are much
                cheaper.
        """
        running, now = self._running, self._shared.clock()
        self._heard.counts.recursions(running(), now=now, moment=monotonic_clock())
        outgrown = current is not None and is_outgrown(current, running())
        return self._statistics.of(current, is_outgrown=outgrown)

    def bind(self, statement: Statement, catalog: Catalog | None = None) -> BoundQuery:
        """Return the bound query of a SELECT or SUBSCRIBE, with the heuristics of the system.

        Args:
            statement: The query.
            catalog: As whoever asks may read it; without it all of it.

        Raises:
            QueryError: It is wrong, or reads what may not be read.
        """
        bound = bind_query(query_of(statement), catalog or self._shared.catalog)
        if bound.heuristics is not None:
            return bound
        return dataclasses.replace(bound, heuristics=self._shared.settings.heuristics)

    def recovered(self, text: str, bundle: FragmentBundle) -> Planned:
        """Return the plan of a query that ran before; one that does not bind any more is alone."""
        try:
            bound = _with_columns_of(self.bind(parse_statement(text)), bundle)
            return Planned.of(bound, bundle, normalize(bound.plan, self.topology()))
        except QueryError as error:
            nodes = (node for f in bundle.fragments for node in walk_plan(f.plan))
            reads = frozenset(Read(n.source.lower()) for n in nodes if isinstance(n, Scan))
            return Planned(bundle, (), reads=reads, alone=error.message)

    def would_run(
        self, bound: BoundQuery, text: str
    ) -> tuple[FragmentBundle, tuple[PlannedNode, ...]]:
        """Return the bundle of a query that does not run, and its nodes; see `over`."""
        planned = self.placed(bound, query="explain", text=text, reading=self._reading)
        return planned.bundle, planned.nodes

    def over(self, reading: Reading) -> "Planner":
        """Return a planner whose `would_run` reads what others compute."""
        found = copy(self)
        found._reading = reading  # noqa: SLF001 - our own copy
        return found

    def placed(  # noqa: PLR0913 - what a plan rests on
        self,
        bound: BoundQuery,
        *,
        query: str,
        version: int = 1,
        text: str = "",
        current: FragmentBundle | None = None,
        gathered: bool = True,
        much: float = MUCH,
        search: Search | None = None,
        reading: Reading | None = None,
    ) -> Planned:
        """Return the plan of a bound query; not gathered, gateways give their rows themselves.

        What runs now stays unless another plan is `much` times cheaper. `search` is as for `plan`.
        Without `reading` nothing of it is read from other runs, nor where it asks for a plan.

        Raises:
            UnsupportedError: A recursion's strategy and way do not go together, or the strategy
                does not fit the recursion.
        """
        if not gathered:
            bound = dataclasses.replace(bound, asked=PUSHED)
        like = current or self._of_same_text(text)
        with undisturbed():  # both note what is heard
            topology, statistics = self.topology(), self.statistics(like)
        settings = self._shared.settings
        planning = Planning(
            topology,
            statistics,
            settings.metric,
            self._foresee,
            _running_in(like),
            version,
            text,
            replanned=current is not None,
            much=much,
            reads=frozenset() if current is None else current.results_read,
        )
        is_free = gathered and not bound.asked and search is None
        if reading is not None and is_free and settings.sharing != Strategy.OFF:
            ways = (settings.sharing, settings.materialize)
            made = registered(bound, planning, reading, *ways)
            bundle = self._begun(bound, made.bundle, current)
            planned = Planned.of(bound, bundle, made.logical, new_nodes(made, bound))
            if not planned.alone or not (made.used or made.nodes):
                return planned.named(query)
        if search is None:
            search = search_of(bound, topology, statistics, settings.metric)
        bundle = plan(
            bound,
            topology,
            query=query,
            version=version,
            text=text,
            statistics=statistics,
            foresee=self._foresee,
            running=planning.running,
            replanned=planning.replanned,
            much=much,
            search=search,
        )
        bundle = self._begun(bound, bundle, current)
        return Planned.of(bound, bundle if gathered else ungathered(bundle), search.query)

    def _begun(
        self, bound: BoundQuery, bundle: FragmentBundle, current: FragmentBundle | None
    ) -> FragmentBundle:
        """Return a bundle with the time from which its past counts, and what fills its windows."""
        bundle = with_start(bundle, current, self._shared.clock)
        if bound.backfill and self._shared.membership.fills_windows:
            bundle = msgspec.structs.replace(bundle, fills=filled_sources(bundle))
        return bundle

    def _of_same_text(self, text: str) -> FragmentBundle | None:
        """Return what a query of that text runs: an equal query is planned like it, if it can."""
        same = self._of_text(text) if text else None
        return None if same is None else same.bundle

    def get_ready_to_note(self) -> None:
        """Make ready what `past_notes` and `fill_notes` need, in the process that forks others."""
        if self._past is not None:
            self._past.get_ready()

    def alternatives(self, bound: BoundQuery, text: str) -> tuple[Alternatives, tuple[Turn, ...]]:
        """Return the plans of a bound query with their costs, and the facts that turn the choice.

        Chosen is the one that a query of that text runs, or would run.

        Raises:
            UnsupportedError: It asks for a plan that there is not.
        """
        like = self._of_same_text(text)
        bound = dataclasses.replace(bound, metric=bound.metric or self._shared.settings.metric)
        statistics, running = self.statistics(like), _running_in(like)
        return compared(bound, self.topology(), statistics, running, time_left(TURNING_SECONDS))

    def estimates(self, bundle: FragmentBundle) -> dict[str, FragmentEstimate]:
        """Return what each fragment of a bundle is expected to send, by present facts."""
        return fragment_estimates(bundle, self.statistics(bundle), self._shared.settings.host)

    def past_notes(self, plan: Plan, started: int = 0) -> tuple[str, ...]:
        """Return how much a plan reads of the past, a sentence per scan; blocking.

        Args:
            plan: Whole, or of a fragment.
            started: When its query started; 0: now.
        """
        is_past = any(isinstance(n, Scan) and n.history for n in walk_plan(plan))
        if self._past is None or not is_past:
            return ()
        return tuple(map(str, self._past.sizes(fixed(plan, started or self._shared.clock()))))

    def fill_notes(self, plan: Plan, fills: tuple[str, ...]) -> tuple[str, ...]:
        """Return with how much of the past windows of a fragment begin; blocking."""
        sizes = None if self._past is None else self._past.sizes
        return tuple(fill_notes(plan, fills, self._shared.clock(), sizes))

    def bound(
        self, text: str, *, current: FragmentBundle | None = None, whole_changes: bool = False
    ) -> BoundQuery:
        """Return the bound query of a text; see `planned`.

        Raises:
            QueryError: It is wrong, perhaps only since the catalog has changed.
        """
        bound = dataclasses.replace(self.bind(parse_statement(text)), whole_changes=whole_changes)
        return bound if current is None else _with_columns_of(bound, current)

    def planned(  # noqa: PLR0913 - what a plan rests on
        self,
        text: str,
        *,
        query: str,
        version: int,
        current: FragmentBundle | None = None,
        gathered: bool = True,
        whole_changes: bool = False,
        much: float = MUCH,
        reading: Reading | None = None,
    ) -> Planned:
        """Return bundle and warnings of a query's text.

        Args:
            text: As it was written.
            query: Its id.
            version: Of the bundle.
            current: What it runs now: its columns stay, whatever `*` means by now.
            gathered: Whether rows of gateways are brought together first.
            whole_changes: As of `BoundQuery`.
            much: How many times cheaper another plan has to be than the current one.
            reading: As for `placed`.

        Raises:
            QueryError: It is wrong, perhaps only since the catalog has changed.
        """
        bound = self.bound(text, current=current, whole_changes=whole_changes)
        return self.placed(
            bound,
            query=query,
            version=version,
            text=text,
            current=current,
            gathered=gathered,
            much=much,
            reading=reading,
        )

    def planned_node(self, node: RunningQuery, reading: Reading) -> Planned:
        """Return the plan of a node of the network with the definitions and sites of now.

        Raises:
            BindingError: A source that it reads is defined otherwise by now.
        """
        shared, bundle = self._shared, node.bundle
        bound = bound_node(node, shared.catalog, heuristics=shared.settings.heuristics)
        if is_trimmed(bundle):
            again = delivered_again(node, bound, lambda leaf: self.placed(leaf, query="").bundle)
            return Planned.of(bound, again, node.logical)
        planned = self.placed(
            bound,
            query=node.run,
            version=bundle.version + 1,
            text=bundle.text,
            current=bundle,
            much=inf,
            reading=reading,
        )
        silent = msgspec.structs.replace(planned.bundle, silent=bundle.silent)
        return dataclasses.replace(planned, bundle=silent)


def _with_columns_of(bound: BoundQuery, current: FragmentBundle) -> BoundQuery:
    kept = with_columns(bound, current.schema)
    if kept is None:
        raise BindingError(
            f"the columns of the query would now be {bound.schema}, but its readers have "
            f"{current.schema}",
            hint="stop the query and start it again",
            code="in_use",
        )
    return kept


def _running_in(bundle: FragmentBundle | None) -> Running:
    return NOTHING_RUNS if bundle is None else (bundle.alternative, bundle.choices)
