"""Reports of sites on the bundles they run, for every query that reads them."""

from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery, in_words_of
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sites.flows import sites_of
from streamsql.errors import FederationError, WireError
from streamsql.wire.channel_protocol import Reception
from streamsql.wire.fragments import TABLE_OUTGROWN, FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport, QueryProblem


class HeardReports:
    """Hands messages of sites about a run to the queries that read it."""

    def __init__(self, shared: SharedParts, queries: Queries) -> None:
        self._shared = shared
        self._queries = queries

    def output(self, run: str, site: str, batch: DeltaBatch) -> None:
        """Ingest a part of a result; whoever sends one of an unknown run is told to stop."""
        if run not in self._queries.runs.names():  # a look-up, however many read it
            self._stop_unknown(run, site)
        # Of a query that was stopped for the size of its result the rest is on its way.
        for answer in self._queries.runs.answers.of(run):
            query = self._queries.runs.answers.speaker(answer)
            if query is None:
                continue
            match answer.accept(site, batch):
                case Reception.GAP:
                    self._queries.request_result(query, site)
                case Reception.ACCEPTED:
                    self._queries.requests.answered(run, site)
                case Reception.DUPLICATE | Reception.STALE:
                    pass
            if answer.size > self._shared.settings.max_result_rows:
                for each in tuple(self._queries.runs.answers.showing(answer)):
                    self._overflow(each)
            self._queries.statuses.of_answer(answer)

    def flow(self, run: str, site: str, report: FlowReport, message: int = 0) -> None:
        """Ingest a report of counts; whoever counts for an unknown run is told to stop.

        `message` is the number of the message that it came in.
        """
        runs = self._queries.runs
        first = runs.leader(run) or next(iter(runs.readers(run)), None)
        if first is None:
            self._stop_unknown(run, site)
            return
        if report.version == first.bundle.version and site not in sites_of(first.bundle):
            raise WireError(f"{site!r:.80} counts for {run} but has no part in it")
        if first.flows.hear(site, report, first.bundle, message):  # of all of them
            self._queries.statuses.of_run(run)

    def problem(self, run: str, site: str, problem: QueryProblem | None) -> None:
        """Ingest what keeps a site from answering; None when it is over."""
        if site == self._shared.settings.host:
            return  # what we say is cleared at the broker with the run's fragments
        readers = self._queries.runs.readers(run)
        self._queries.runs.note(run)
        if not readers and problem is not None and self._queries.requests.may_ask(run, site):
            self._shared.deployment.clear_problem(run, site)
        # Of a query that was stopped for a reason of ours the bundle is an old one by now.
        having = [query for query in readers if site in query.bundle.sites]
        if readers and problem is not None and not having:
            raise WireError(f"{site!r:.80} reports a problem with {run} but has no part in it")
        for query in readers if problem is None else having:
            if problem is None:
                query.problems.pop(site, None)
            else:
                query.problems[site] = in_words_of(query, problem)
                if problem.code == TABLE_OUTGROWN and _sends_to_gateways(query.bundle, site):
                    # Once: a second plan has no such table, whatever is said of it.
                    self._queries.has_old_plans |= not query.outgrown
                    query.outgrown = True
            self._queries.statuses.of(query)
        self._queries.statuses.note(run)

    def _stop_unknown(self, run: str, site: str) -> None:
        if self._queries.requests.may_ask(run, site):
            self._shared.deployment.withdraw_from(run, site)

    def _overflow(self, query: RunningQuery) -> None:
        limit = self._shared.settings.max_result_rows
        error = FederationError(
            f"the result has more than {limit} distinct rows",
            hint="aggregate or filter more, so that fewer rows reach the reader",
            code="result_limit",
        )
        self._queries.fail(query, error)


def _sends_to_gateways(bundle: FragmentBundle, site: str) -> bool:
    """Whether a site sends rows of stored tables to gateways, which keep them."""
    kept = bundle.at_gateways
    return any(site in f.sites for f in bundle.fragments if f.id in kept)
