"""All running queries: start, stop, redeploy, and what sites report of them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from federated_optimizer.coordinator.contract.coordinator_model import (
    Origin,
    QueryInfo,
    QueryStatus,
)
from federated_optimizer.coordinator.contract.presentation import presentation_of_text
from federated_optimizer.coordinator.queries.paced_requests import PacedRequests
from federated_optimizer.coordinator.queries.planner import Planned, Planner
from federated_optimizer.coordinator.queries.result_subscriptions import ResultSubscription
from federated_optimizer.coordinator.queries.results import QueryResult
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.unread_queries import UnreadQueries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sites.flows import sites_of
from federated_optimizer.coordinator.sites.source_serving import (
    AwaitedDefinitions,
    MissingRows,
    awaited_in,
    missing_rows,
)
from federated_optimizer.coordinator.store.catalog_store import StoredQuery
from host.clocks import monotonic_clock
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError, FederationError, RecursionRoundsError, WireError
from streamsql.wire.channel_protocol import Reception
from streamsql.wire.messages import DeltaBatch, FlowReport, QueryProblem

log = logging.getLogger(__name__)


class Queries:
    """The running queries by id, and everything that happens to them.

    Keeps nothing on disk: whoever starts and stops queries stores them.

    Attributes:
        differing: How gateways define sources otherwise than the catalog, by source and gateway.
        missing: Why rows of declared sources are missing, by source and gateway.
        awaited: Definitions that gateways have not reported yet.
        has_old_plans: Whether one was planned, before it started, for other sites or definitions
            than there are since: plans are to be made again.
    """

    def __init__(self, shared: SharedParts, planner: Planner) -> None:
        self._settings = shared.settings
        self._deployment = shared.deployment
        self._membership = shared.membership
        self._clock = shared.clock
        self._planner = planner
        self.unread = UnreadQueries(shared.settings)
        self._running: dict[str, RunningQuery] = {}
        self._requests = PacedRequests()
        self._owed: dict[str, None] = {}
        self.differing: Mapping[str, Mapping[str, str]] = {}
        self.missing: Mapping[str, Mapping[str, MissingRows]] = {}
        self.awaited = AwaitedDefinitions()
        self._compared = 0
        self.has_old_plans = False
        planner.watch(self.all)

    def __contains__(self, query_id: str) -> bool:
        """Whether a query of that id runs."""
        return query_id in self._running

    def all(self) -> tuple[RunningQuery, ...]:
        """Return the queries, newest last."""
        return tuple(self._running.values())

    def find(self, name: str) -> RunningQuery | None:
        """Return a query by id or name."""
        found = self._running.get(name)
        if found is not None:
            return found
        return next((query for query in self.all() if query.name == name), None)

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

    def recover(self, stored: StoredQuery) -> None:
        """Take up a query that ran before, whose fragments are with their sites."""
        self.start(
            Planned(stored.bundle, (), reads=self._planner.reads(stored.text, stored.bundle)),
            name=stored.name,
            origin=stored.origin,
            created=stored.created,
            recovered=True,
            deploy=False,
        )

    def start(  # noqa: PLR0913 - what a query consists of
        self,
        planned: Planned,
        *,
        name: str,
        origin: Origin,
        created: int,
        recovered: bool = False,
        deploy: bool = True,
        gathered: bool = True,
        is_current: bool = True,
    ) -> RunningQuery:
        """Deploy a query; not current, it was planned for other sites or definitions than now."""
        bundle = planned.bundle
        result = QueryResult(
            bundle,
            clock=self._clock,
            max_behind=self._settings.max_behind,
            recovered=recovered,
            # Its definition is stored first: rows may be there before.
            is_followed=origin in {Origin.ALARM, Origin.SINK},
        )
        query = RunningQuery(
            id=bundle.query,
            name=name,
            text=bundle.text,
            origin=origin,
            created=created,
            bundle=bundle,
            result=result,
            membership=self._membership,
            warnings=planned.warnings,
            order=planned.order,
            unread_since=monotonic_clock() if origin == Origin.SESSION else None,
            presentation=presentation_of_text(bundle.text, bundle.schema),
            gathered=gathered,
            reads=planned.reads,
        )
        query.compare(self.differing, self.missing)
        if deploy:
            self._deployment.publish(bundle)
        self._running[query.id] = query
        self.has_old_plans = self.has_old_plans or not is_current
        return query

    def stop(self, query: RunningQuery) -> QueryInfo:
        """Withdraw a query everywhere and end its readers."""
        self._running.pop(query.id, None)
        self._requests.discard(query.id)
        query.result.end(QueryStatus.STOPPED, query.error)
        self._deployment.withdraw(query.bundle)
        return replace(query.info(), status=QueryStatus.STOPPED, waiting_for=(), settled=False)

    def redeploy(self, query: RunningQuery, planned: Planned) -> None:
        """Put another bundle in place of a query's; readers see the difference once it settles."""
        self._deployment.publish(planned.bundle, previous=query.bundle)
        query.bundle, query.warnings = planned.bundle, planned.warnings
        query.order, query.reads = planned.order, planned.reads
        query.result.redeploy(planned.bundle)
        query.flows.clear()
        query.deployed = monotonic_clock()
        for site in query.problems:
            self._deployment.clear_problem(query.id, site)
        query.problems.clear()
        query.started = False
        query.compare(self.differing, self.missing)

    def changed_plans(self, ids: Sequence[str]) -> dict[str, Planned | FederationError]:
        """Return the plans of queries whose fragments would be others by now, and what fails."""
        found: dict[str, Planned | FederationError] = {}
        for query_id in ids:
            query = self._running.get(query_id)
            if query is None or self._settings.host in query.problems:
                continue
            try:
                planned = self._planner.planned(
                    query.text,
                    query=query.id,
                    version=query.bundle.version + 1,
                    current=query.bundle,
                    gathered=query.gathered,
                )
            except FederationError as error:
                found[query_id] = error
                continue
            if not planned.bundle.runs_as(query.bundle):
                found[query_id] = planned
        return found

    def lost_touch(self) -> None:
        """Note that the broker is away: no answer is known to be settled any more."""
        for query in self.all():
            query.lost_touch()

    def publish_all(self) -> None:
        """Owe the sites every bundle, and ask for every result, after the broker was away."""
        self._owed = dict.fromkeys(self._running)

    def publish_owed(self) -> None:
        """Publish what is owed, as far as the message queue has room for it.

        Raises:
            MessagingError: The queue is full; call again when it has drained.
        """
        while self._owed:
            query = self._running.get(next(iter(self._owed)))
            # One that was stopped for the size of its result stays stopped.
            if query is not None and self._settings.host not in query.problems:
                self._deployment.publish(query.bundle)
                for site in query.bundle.result_sites:
                    self.request_result(query, site)
            del self._owed[next(iter(self._owed))]
            if not self._owed:
                for site in sorted({s for q in self.all() for s in sites_of(q.bundle)}):
                    self._deployment.request_flow(site)

    # --- what sites say ----------------------------------------------------------------------

    def hear_output(self, query_id: str, site: str, batch: DeltaBatch) -> None:
        """Ingest a part of a result; whoever sends one of an unknown query is told to stop."""
        query = self._running.get(query_id)
        if query is None:
            self._stop_unknown(query_id, site)
            return
        if self._settings.host in query.problems:
            return  # it was stopped for the size of its result; the rest of it is on its way
        match query.result.accept(site, batch):
            case Reception.GAP:
                self.request_result(query, site)
            case Reception.ACCEPTED:
                self._requests.answered(query_id, site)
            case Reception.DUPLICATE | Reception.STALE:
                pass
        if query.result.size > self._settings.max_result_rows:
            self._overflow(query)
        self.refresh(query)

    def hear_flow(self, query_id: str, site: str, report: FlowReport) -> None:
        """Ingest a report of counts; whoever counts for an unknown query is told to stop."""
        query = self._running.get(query_id)
        if query is None:
            self._stop_unknown(query_id, site)
        elif report.version == query.bundle.version and site not in sites_of(query.bundle):
            raise WireError(f"{site!r:.80} counts for {query_id} but has no part in it")
        elif query.flows.hear(site, report, query.bundle):
            self.refresh(query)

    def hear_problem(self, query_id: str, site: str, problem: QueryProblem | None) -> None:
        """Ingest what keeps a site from answering; None when it is over."""
        if site == self._settings.host:
            return  # what we say is cleared at the broker with the query's fragments
        query = self._running.get(query_id)
        if query is None:
            if problem is not None and self._requests.may_ask(query_id, site):
                self._deployment.clear_problem(query_id, site)
            return
        if problem is not None:
            if site not in query.bundle.sites:
                raise WireError(
                    f"{site!r:.80} reports a problem with {query_id} but has no part in it"
                )
            query.problems[site] = problem
        else:
            query.problems.pop(site, None)
        self.refresh(query)

    def site_left(self, site: str) -> None:
        """Note that an engine site is away, or that its former incarnation is gone."""
        for query in self.all():
            query.site_left(site)

    def site_restarted(self, site: str, started: int = 0) -> None:
        """Discard the problems of a site's former incarnation; the new one tries again.

        Args:
            site: Its id.
            started: When the new incarnation began, by its clock, or 0: problems that it reported
                before its state was received stay.
        """
        for query in self.all():
            problem = query.problems.get(site)
            if problem is not None and not 0 < started <= problem.ts:
                del query.problems[site]
                self._deployment.clear_problem(query.id, site)

    def refresh(self, query: RunningQuery) -> None:
        """Release a held result when it is time, and tell readers about a new status."""
        result = query.result
        if result.held and self._may_release(query):
            result.release(is_partial=not query.has_arrived())
        elif result.is_partial and query.has_arrived():
            result.is_partial = False
        self._check_rounds(query)
        status = query.current_status()
        if status != query.status:
            query.status = status
            query.result.announce(status, query.error)
        if query.result.wants_progress and query.is_settled():
            query.result.tell_progress()

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
        for query in self.all():
            query.compare(self.differing, self.missing)

    def refresh_all(self) -> None:
        """Refresh every query, after something happened to a site or time has passed."""
        for query in self.all():
            self.refresh(query)

    def request_missing(self) -> None:
        """Ask for the results that have not come; only while connected, or the requests pile up."""
        for query in self.all():
            for site in query.result.unsynchronised:
                if self._membership.is_online(site):
                    self.request_result(query, site)

    def request_result(self, query: RunningQuery, site: str) -> None:
        """Ask a site for a snapshot of the result, after pauses that double up to a minute."""
        if self._requests.may_ask(query.id, site):
            self._deployment.request_result(query.id, site)

    # --- session queries ---------------------------------------------------------------------

    def subscribe(
        self, query: RunningQuery, *, snapshot: bool, progress: bool = False
    ) -> ResultSubscription:
        """Add a reader."""
        self.unread.read(query)

        def closed(reader: ResultSubscription) -> None:
            query.result.readers.discard(reader)
            if not query.result.readers:
                self.unread.left(query)

        return query.result.subscribe(closed, snapshot=snapshot, progress=progress)

    def _stop_unknown(self, query_id: str, site: str) -> None:
        if self._requests.may_ask(query_id, site):
            self._deployment.withdraw_from(query_id, site)

    def _may_release(self, query: RunningQuery) -> bool:
        if not query.result.is_synchronised:
            return False
        waited = monotonic_clock() - query.result.held_since >= self._settings.switch * 1_000_000
        return waited or query.has_arrived()

    def _overflow(self, query: RunningQuery) -> None:
        limit = self._settings.max_result_rows
        error = FederationError(
            f"the result has more than {limit} distinct rows",
            hint="aggregate or filter more, so that fewer rows reach the reader",
            code="result_limit",
        )
        self.fail(query, error)

    def fail(self, query: RunningQuery, error: FederationError) -> None:
        """Stop a query everywhere for a reason of ours, but keep it listed with the reason."""
        log.warning("query %s stopped: %s", query.id, error.message)
        host = self._settings.host
        query.problems[host] = QueryProblem(
            error.code, error.message, error.hint, self._clock(), host
        )
        self._deployment.withdraw(query.bundle)

    def _check_rounds(self, query: RunningQuery) -> None:
        """Stop a query whose settled answer needs more rounds than it allows.

        Before it is settled, base rows or derivations that are on their way may need fewer.
        """
        beyond = next(query.flows.beyond_rounds(), None)
        if beyond is None or self._settings.host in query.problems:
            return
        if query.is_settled():
            self.fail(query, RecursionRoundsError.of(beyond.name, beyond.allowed))
