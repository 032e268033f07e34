"""All running queries: start, stop, redeploy, and what the sites say about them."""

import logging
from collections.abc import Callable
from dataclasses import replace

from federated_optimizer.coordinator.catalog_store import StoredQuery
from federated_optimizer.coordinator.deployment import Deployment
from federated_optimizer.coordinator.elapsed import elapsed
from federated_optimizer.coordinator.flows import sites_of
from federated_optimizer.coordinator.membership import Membership
from federated_optimizer.coordinator.model import QueryInfo, QueryStatus
from federated_optimizer.coordinator.planner import Planned, Planner
from federated_optimizer.coordinator.presentation import presentation_of_text
from federated_optimizer.coordinator.results import QueryResult
from federated_optimizer.coordinator.running import RunningQuery
from federated_optimizer.coordinator.settings import CoordinatorSettings
from federated_optimizer.coordinator.subscriptions import ResultSubscription
from streamsql.errors import BindingError, FederationError
from streamsql.wire.channels import Reception
from streamsql.wire.messages import DeltaBatch, FlowReport, QueryProblem

log = logging.getLogger(__name__)

RESYNC_MICROSECONDS = 1_000_000


class Queries:
    """The running queries by id, and everything that happens to them.

    Keeps nothing on disk: whoever starts and stops queries stores them.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        deployment: Deployment,
        planner: Planner,
        membership: Membership,
        clock: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._deployment = deployment
        self._planner = planner
        self._membership = membership
        self._clock = clock
        self._running: dict[str, RunningQuery] = {}
        self._asked: dict[tuple[str, str], int] = {}
        self._owed: dict[str, None] = {}
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

    def info(self, query: RunningQuery) -> QueryInfo:
        """Return a query as lists show it."""
        return query.info(self._membership)

    # --- starting and stopping ---------------------------------------------------------------

    def check_room(self) -> None:
        """Refuse one query too many.

        Raises:
            BindingError: As many run as may.
        """
        if len(self._running) >= self._settings.max_queries:
            raise BindingError(
                f"{len(self._running)} queries run already, no more may",
                hint="stop one: DROP QUERY id",
                code="limit_exceeded",
            )

    def recover(self, stored: StoredQuery) -> None:
        """Take up a query that ran before, whose fragments are with their sites."""
        self.start(
            Planned(stored.bundle, ()),
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
        origin: str,
        created: int,
        recovered: bool = False,
        deploy: bool = True,
    ) -> RunningQuery:
        """Deploy a query."""
        bundle = planned.bundle
        result = QueryResult(
            bundle,
            clock=self._clock,
            max_behind=self._settings.max_behind,
            recovered=recovered,
        )
        query = RunningQuery(
            id=bundle.query,
            name=name,
            text=bundle.text,
            origin=origin,
            created=created,
            bundle=bundle,
            result=result,
            warnings=planned.warnings,
            order=planned.order,
            unread_since=elapsed() if origin == "session" else None,
            presentation=presentation_of_text(bundle.text, bundle.schema),
        )
        if deploy:
            self._deployment.publish(bundle)
        self._running[query.id] = query
        return query

    def stop(self, query: RunningQuery) -> QueryInfo:
        """Withdraw a query everywhere and end its readers."""
        self._running.pop(query.id, None)
        self._asked = {key: at for key, at in self._asked.items() if key[0] != query.id}
        query.result.end(QueryStatus.STOPPED, query.error)
        self._deployment.withdraw(query.bundle)
        return replace(self.info(query), status=QueryStatus.STOPPED, waiting_for=(), settled=False)

    def redeploy(self, query: RunningQuery, planned: Planned) -> None:
        """Put another bundle in place of a query's; readers see the difference once it settles."""
        self._deployment.publish(planned.bundle, previous=query.bundle)
        query.bundle, query.warnings = planned.bundle, planned.warnings
        query.order = planned.order
        query.result.redeploy(planned.bundle)
        query.flows.clear()
        query.deployed = elapsed()
        for site in query.problems:
            self._deployment.clear_problem(query.id, site)
        query.problems.clear()
        query.started = False

    def changed_plans(self) -> list[tuple[RunningQuery, Planned]]:
        """Return the queries whose fragments would be others by now, with the new plan."""
        changed = []
        for query in self.all():
            if self._settings.host in query.problems:
                continue
            version = query.bundle.version + 1
            try:
                planned = self._planner.planned(
                    query.text, query=query.id, version=version, current=query.bundle
                )
            except FederationError as error:
                # It keeps running as it is: stopping it would take away what still works.
                log.warning("query %s cannot be planned again: %s", query.id, error.message)
                continue
            if planned.bundle.fragments != query.bundle.fragments:
                changed.append((query, planned))
        return changed

    def lost_touch(self) -> None:
        """Take in that the broker is away: no answer is known to be settled any more."""
        for query in self.all():
            query.flows.lost_touch()

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
        """Take in a part of a result; whoever sends one of an unknown query is told to stop."""
        query = self._running.get(query_id)
        if query is None:
            self._stop_unknown(query_id, site)
            return
        if self._settings.host in query.problems:
            return  # it was stopped for the size of its result; the rest of it is on its way
        if query.result.accept(site, batch) == Reception.GAP:
            self.request_result(query, site)
        if query.result.size > self._settings.max_result_rows:
            self._overflow(query)
        self.refresh(query)

    def hear_flow(self, query_id: str, site: str, report: FlowReport) -> None:
        """Take in a report of counts; whoever counts for an unknown query is told to stop."""
        query = self._running.get(query_id)
        if query is None:
            self._stop_unknown(query_id, site)
        elif query.flows.hear(site, report, query.bundle):
            self.refresh(query)

    def hear_problem(self, query_id: str, site: str, problem: QueryProblem | None) -> None:
        """Take in what keeps a site from answering; None when it is over."""
        query = self._running.get(query_id)
        if query is None:
            if problem is not None and self._may_ask(query_id, site):
                self._deployment.clear_problem(query_id, site)
            return
        if problem is not None:
            query.problems[site] = problem
        else:
            query.problems.pop(site, None)
        self.refresh(query)

    def site_restarted(self, site: str, started: int = 0) -> None:
        """Forget what a site's former life has complained about; the new one tries again.

        Args:
            site: Its id.
            started: When the new life began, by its clock, or 0: what it has complained about
                before its state was heard stays.
        """
        for query in self.all():
            problem = query.problems.get(site)
            if problem is not None and not 0 < started <= problem.ts:
                del query.problems[site]
                self._deployment.clear_problem(query.id, site)

    def refresh(self, query: RunningQuery) -> None:
        """Release a held result when it is time, and tell readers about a new status."""
        if query.result.held and self._may_release(query):
            query.result.release()
        status = query.current_status(self._membership)
        if status != query.status:
            query.status = status
            query.result.announce(status, query.error)
        if query.result.wants_progress and query.is_settled(self._membership):
            query.result.tell_progress()

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
        """Ask a site for a snapshot of the result, at most once a second."""
        if self._may_ask(query.id, site):
            self._deployment.request_result(query.id, site)

    # --- session queries ---------------------------------------------------------------------

    def subscribe(
        self, query: RunningQuery, *, snapshot: bool, progress: bool = False
    ) -> ResultSubscription:
        """Add a reader."""
        query.unread_since, query.ever_read = None, True

        def closed(reader: ResultSubscription) -> None:
            query.result.readers.discard(reader)
            if not query.result.readers and query.origin == "session":
                query.unread_since = elapsed()

        return query.result.subscribe(closed, snapshot=snapshot, progress=progress)

    def keep(self, query: RunningQuery) -> None:
        """Wait for a reader as long as if the query had just been started."""
        if query.unread_since is not None:
            query.unread_since, query.ever_read = elapsed(), False

    def abandoned(self) -> list[RunningQuery]:
        """Return the session queries that nobody reads any more."""
        now = elapsed()
        settings = self._settings
        return [
            query
            for query in self.all()
            if query.unread_since is not None
            and now - query.unread_since
            >= (settings.session_grace if query.ever_read else settings.unread) * 1_000_000
        ]

    def _stop_unknown(self, query_id: str, site: str) -> None:
        if self._may_ask(query_id, site):
            self._deployment.withdraw_from(query_id, site)

    def _may_release(self, query: RunningQuery) -> bool:
        if not query.result.is_synchronised:
            return False
        waited = elapsed() - query.result.held_since >= self._settings.switch * 1_000_000
        return waited or query.has_arrived(self._membership)

    def _may_ask(self, query_id: str, site: str) -> bool:
        """Whether a request may be sent now; at most one a second per query and site."""
        now = elapsed()
        last = self._asked.get((query_id, site))
        if last is not None and now - last < RESYNC_MICROSECONDS:
            return False
        if len(self._asked) > 10_000:
            self._asked.clear()
        self._asked[query_id, site] = now
        return True

    def _overflow(self, query: RunningQuery) -> None:
        limit = self._settings.max_result_rows
        log.warning("query %s stopped: more than %d rows", query.id, limit)
        query.problems[self._settings.host] = QueryProblem(
            "result_limit",
            f"the result has more than {limit} different rows",
            "aggregate or filter more, so that fewer rows reach the reader",
            self._clock(),
            self._settings.host,
        )
        self._deployment.withdraw(query.bundle)
