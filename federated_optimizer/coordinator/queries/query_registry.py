"""All running queries: start, stop, redeploy, and what sites report of them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from federated_optimizer.coordinator.contract.coordinator_model import (
    ACTING,
    Origin,
    QueryInfo,
    QueryStatus,
)
from federated_optimizer.coordinator.contract.presentation import (
    Presentation,
    presentation_of_text,
)
from federated_optimizer.coordinator.queries.answers.result_subscriptions import ResultSubscription
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from federated_optimizer.coordinator.queries.known_queries import KnownQueries
from federated_optimizer.coordinator.queries.paced_requests import PacedRequests
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.planning.changed_plans import changed_plans
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.network_nodes import NetworkNodes
from federated_optimizer.coordinator.queries.runs.owed_bundles import OwedBundles
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.queries.status_refresh import StatusRefresh
from federated_optimizer.coordinator.queries.unread_queries import UnreadQueries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sites.flows import FlowReports
from federated_optimizer.coordinator.sites.source_serving import (
    AwaitedDefinitions,
    MissingRows,
    awaited_in,
    missing_rows,
)
from federated_optimizer.coordinator.store.stored_runs import StoredNode
from host.clocks import monotonic_clock
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError, FederationError
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import QueryProblem

log = logging.getLogger(__name__)


class Queries:
    """The running queries by id, and everything that happens to them.

    Keeps nothing on disk: whoever starts and stops queries stores them.

    Attributes:
        runs: Which queries read what sites run.
        nodes: Runs that are kept for their readers alone.
        statuses: Keeps their statuses current.
        offers: Parts of runs that queries may read.
        widened: Nodes that have got more columns, with their versions: what reads them is to be
            planned again.
        planning_since: When plans began to be out of date, by `monotonic_clock`; None: they hold.
        requests: What sites were asked for of a run, and when.
        owed: Bundles that have to be published once more.
        differing: How gateways define sources otherwise than the catalog, by source and gateway.
        missing: Why rows of declared sources are missing, by source and gateway.
        awaited: Definitions that gateways have not reported yet.
        has_old_plans: Whether all plans are to be made again.
        late_runs: Runs that began with a plan for other sites or definitions than there are since,
            or that have lost rows of a run which got another plan: they are to be planned again.
    """

    def __init__(self, shared: SharedParts, planner: Planner) -> None:
        self._settings = shared.settings
        self._deployment = shared.deployment
        self._membership = shared.membership
        self._clock = shared.clock
        self.planner = planner
        self.unread = UnreadQueries(shared.settings)
        self._running = KnownQueries()
        self.runs = SharedRuns(shared.settings.host)
        self.nodes = NetworkNodes(shared, self.runs)
        self.statuses = StatusRefresh(shared.settings, self.runs, self.fail)
        self.offers = ReadableOffers(self.runs, shared.rights)
        self.widened: dict[str, int] = {}
        self.planning_since: int | None = None
        self.requests = PacedRequests()
        self.owed = OwedBundles(shared.deployment, self.runs, self.request_result)
        self.differing: Mapping[str, Mapping[str, str]] = {}
        self.missing: Mapping[str, Mapping[str, MissingRows]] = {}
        self.awaited = AwaitedDefinitions()
        self._compared = 0
        self.has_old_plans = False
        self.late_runs: set[str] = set()
        planner.watch(self.runs.leaders, self.runs.by_text.find)

    def __contains__(self, query_id: str) -> bool:
        """Whether a query of that id runs, or a node."""
        return self.known(query_id) is not None

    def known(self, query_id: str) -> RunningQuery | None:
        """Return a query by its id, or the hidden one of a node."""
        return self._running.get(query_id) or self.nodes.find(query_id)

    def everything(self) -> tuple[RunningQuery, ...]:
        """Return the queries and the hidden ones of nodes."""
        return (*self._running.of(), *self.nodes.all())

    def all(
        self, origin: Origin | None = None, *, displayed: bool = False
    ) -> tuple[RunningQuery, ...]:
        """Return the queries, or those of an origin, newest last; of displays alone if asked."""
        return self._running.displayed(origin) if displayed else tuple(self._running.of(origin))

    def find(self, name: str) -> RunningQuery | None:
        """Return a query by id or name."""
        return self._running.get(name) or self._running.named(name)

    # --- starting and stopping ---------------------------------------------------------------

    def check_room(self) -> None:
        """Refuse one query too many.

        Raises:
            BindingError: As many run as may.
        """
        if len(self._running) >= self._settings.max_queries:
            raise BindingError(
                f"{len(self._running)} queries already run, which is the max",
                hint="stop one: DROP QUERY id",
                code="limit_exceeded",
            )

    def catch_up(self, readers: Sequence[RunningQuery], bundle: FragmentBundle) -> None:
        """Let readers of a run read a newer version of it that its sites have."""
        for reader in readers:
            self.runs.leave(reader)
        for reader in readers:
            self._read(reader, bundle)
            if reader is not readers[0]:
                reader.join(readers[0], self._settings.host)
            self.runs.enter(reader)

    def start(  # noqa: PLR0913 - what a query consists of
        self,
        planned: Planned,
        *,
        id: str,  # noqa: A002 - as in `RunningQuery`
        text: str,
        name: str,
        origin: Origin,
        created: int,
        recovered: bool = False,
        deploy: bool = True,
        gathered: bool = True,
        is_current: bool = True,
        presentation: Presentation | None = None,
    ) -> RunningQuery:
        """Start a query, and deploy its bundle unless another query reads it already.

        Not current, it was planned for other sites or definitions than now.
        """
        bundle = planned.bundle
        leader = self.runs.leader(bundle.query)
        result = QueryResult(
            bundle,
            clock=self._clock,
            max_behind=self._settings.max_behind,
            query=id,
            recovered=recovered,
            is_followed=origin in ACTING,  # rows may be there before it is stored
        )
        query = RunningQuery(
            id=id,
            name=name,
            text=text,
            origin=origin,
            created=created,
            bundle=bundle,
            result=result,
            membership=self._membership,
            warnings=planned.warnings,
            order=planned.order,
            unread_since=monotonic_clock() if origin == Origin.SESSION else None,
            presentation=presentation or presentation_of_text(text, bundle.schema),
            gathered=gathered,
            reads=planned.reads,
            alone=planned.alone,
            leader_of=self.runs.leader,
            flows=FlowReports(found=recovered),
            logical=planned.logical,
            whole_changes=origin in ACTING,
        )
        query.begin_to_read_others()
        query.compare(self.differing, self.missing)
        if leader is not None:
            query.join(leader, self._settings.host)
        elif deploy:
            self._deployment.publish(bundle)
        self._running.add(query)
        self.runs.enter(query)
        if not is_current:
            self.late_runs.add(query.run)
        if leader is not None:
            self.statuses.of(query)
        return query

    def stop(self, query: RunningQuery) -> QueryInfo:
        """End a query's readers, and withdraw its bundle unless other queries read it."""
        self._running.discard(query)
        self.keep_nodes([query])
        self.runs.leave(query)
        query.result.end(QueryStatus.STOPPED, query.error)
        query.result.leave()
        self.withdraw_unread(query.bundle)
        return replace(query.info(), status=QueryStatus.STOPPED, waiting_for=(), settled=False)

    def deploy_nodes(self, nodes: Iterable[StoredNode]) -> None:
        """Deploy nodes that a query is about to read; some are there, and get more columns."""
        for node in nodes:
            kept = self.nodes.of(node.run)
            if kept is None:
                self._deployment.publish(node.bundle)
                self.nodes.start(node).compare(self.differing, self.missing)
            else:
                wider = replace(planned_of(kept), reads=node.reads, logical=node.plan)
                kept.tells = node.tells
                self.redeploy({kept.id: wider}, node.bundle)
                self.widened[node.run] = node.bundle.version

    def keep_nodes(self, leaving: Iterable[RunningQuery]) -> None:
        """Leave the runs of queries to nodes, where others read their rows."""
        for node in self.nodes.left_by(leaving):
            self.nodes.keep(node.run)

    def end_nodes(self, nodes: Iterable[RunningQuery]) -> None:
        """Withdraw nodes, unless queries read their runs."""
        for node in nodes:
            self.nodes.end(node)
            self.withdraw_unread(node.bundle)

    def redeploy(self, plans: Mapping[str, Planned], bundle: FragmentBundle) -> None:
        """Let queries read another bundle; readers see the difference once it settles.

        It is deployed unless other queries read it; what nobody reads any more is withdrawn.

        Args:
            plans: New plans of queries, by id, that the bundle computes.
            bundle: Under the name of the queries' run, of another, or of a new one.
        """
        node = self.nodes.of(bundle.query)
        if node is not None and node.bundle is not bundle:
            plans = {**plans, node.id: plans.get(node.id, planned_of(node))}  # it goes along
        queries = [query for query in map(self.known, plans) if query is not None]
        readers = (q for q in self.runs.live(bundle.query) if not self.runs.is_tried(q))
        leader = next((q for q in readers if q.id not in plans), None)
        former = {query.run: query.bundle for query in queries}
        self.keep_nodes(query for query in queries if query.run != bundle.query)
        if leader is None:
            self._deployment.publish(bundle, previous=former.get(bundle.query))
            for site in sorted({site for query in queries for site in query.problems}):
                self._deployment.clear_problem(bundle.query, site)
        for query in queries:
            self.runs.leave(query)
        for query in queries:
            planned = plans[query.id]
            query.warnings, query.order = planned.warnings, planned.order
            query.reads, query.alone = planned.reads, planned.alone
            query.logical = planned.logical
            self._read(query, bundle)
            if leader is not None:
                query.join(leader, self._settings.host)
            leader = leader or query
            self.runs.enter(query)
        for left in former.values():
            if left.query != bundle.query:
                self.withdraw_unread(left)

    def _read(self, query: RunningQuery, bundle: FragmentBundle) -> None:
        """Let a query expect another bundle's result, of which nothing is known yet."""
        # Where only others run its fragments its answer is the same, and stays in view.
        started = query.started and bundle.runs_as(query.bundle)
        query.bundle = bundle
        query.result.redeploy(bundle)
        query.started = started
        query.flows = FlowReports()
        query.begin_to_read_others()
        query.deployed = monotonic_clock()
        query.problems.clear()
        query.compare(self.differing, self.missing)

    def withdraw_unread(self, bundle: FragmentBundle) -> None:
        """Stop a run at all its sites, unless a query reads it."""
        if not self.runs.live(bundle.query):
            self.requests.discard(bundle.query)
            self._deployment.withdraw(bundle)

    def changed_plans(self, ids: Sequence[str]) -> dict[str, Planned | FederationError]:
        """Return the plans of queries whose fragments would be others by now, and what fails."""
        queries = filter(None, map(self.known, ids))
        host = self._settings.host
        live = [query for query in queries if host not in query.problems]
        return changed_plans(self.planner, live, self.offers)

    def lost_touch(self) -> None:
        """Note that the broker is away: no answer is known to be settled any more."""
        self.statuses.all_due()
        for query in self.runs.everyone():
            query.lost_touch()

    # --- what happens to sites ---------------------------------------------------------------

    def site_left(self, site: str) -> None:
        """Note that an engine site is away, or that its former incarnation is gone."""
        self.statuses.all_due()
        for query in self.runs.everyone():
            query.site_left(site)

    def site_restarted(self, site: str, started: int = 0) -> None:
        """Discard the problems of a site's former incarnation; the new one tries again.

        Args:
            site: Its id.
            started: When the new incarnation began, by its clock, or 0: problems that it reported
                before its state was received stay.
        """
        for query in self.runs.everyone():
            problem = query.problems.get(site)
            if problem is not None and not 0 < started <= problem.ts:
                del query.problems[site]
                self.runs.note(query.run)
                self._deployment.clear_problem(query.run, site)

    def compare(self, catalog: Catalog, *, changed: bool = False) -> None:
        """Look where gateways define sources otherwise than the catalog.

        Args:
            catalog: All definitions.
            changed: Whether it may have changed; else only births are looked at, if there were any,
                and reports that have not come in time.
        """
        is_late = self.awaited.look()
        if not (changed or is_late) and self._compared == self._membership.births:
            return
        self._compared = self._membership.births
        self.differing = self._membership.differing(catalog)
        sites = self._membership.infos(late=self.awaited.late())
        self.missing = missing_rows(catalog, sites)
        self.awaited.note(awaited_in(catalog, self.missing))
        self.statuses.all_due()
        for query in self.runs.everyone():
            query.compare(self.differing, self.missing)

    def request_missing(self) -> None:
        """Ask for the results that have not come; only while connected, or the requests pile up."""
        for query in self.statuses.restless():
            for site in query.result.unsynchronised:
                if self._membership.is_online(site):
                    self.request_result(query, site)

    def request_result(self, query: RunningQuery, site: str) -> None:
        """Ask a site for a snapshot of the result, after pauses that double up to a minute."""
        if self.requests.may_ask(query.run, site):
            self._deployment.request_result(query.run, site)

    # --- session queries ---------------------------------------------------------------------

    def subscribe(
        self, query: RunningQuery, *, snapshot: bool, progress: bool = False
    ) -> ResultSubscription:
        """Add a reader."""
        self.unread.read(query)
        self.statuses.of_run(query.run)  # from now on it is told of statuses

        def closed(reader: ResultSubscription) -> None:
            query.result.readers.discard(reader)
            if not query.result.readers:
                self.unread.left(query)

        return query.result.subscribe(closed, snapshot=snapshot, progress=progress)

    def fail(self, query: RunningQuery, error: FederationError) -> None:
        """Stop a query for a reason of ours, but keep it listed with the reason.

        Its run ends if no other query reads it.
        """
        log.warning("query %s stopped: %s", query.id, error.message)
        host = self._settings.host
        query.problems[host] = QueryProblem(
            error.code, error.message, error.hint, self._clock(), host
        )
        query.result.stop()
        self.runs.stopped(query)
        self.runs.touched[query.run] = None
        self.runs.network.note(query.run)
        if not self.runs.live(query.run):
            self.runs.fed.put(query.run, ())  # listed, it reads nobody's rows
        self.withdraw_unread(query.bundle)
        self.statuses.of(query)
