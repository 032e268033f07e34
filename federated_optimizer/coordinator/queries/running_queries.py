"""A running query: text, bundle, result and status."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import (
    Origin,
    QueryInfo,
    QueryStatus,
)
from federated_optimizer.coordinator.contract.presentation import Presentation
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from federated_optimizer.coordinator.queries.bundle_sites import BundleSites
from federated_optimizer.coordinator.queries.running_warnings import (
    left_out,
    missing_sources,
    slow_sentence,
    sources_read_by,
)
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.coordinator.sites.flows import FlowReports, sites_of
from federated_optimizer.coordinator.sites.source_serving import MissingRows
from host.clocks import monotonic_clock
from streamsql.algebra.operators import Plan, SortKey
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import FlowReport, QueryProblem
from streamsql.wire.source_shapes import DIFFERENCE_CODE, DIFFERENCE_HINT

FATAL = frozenset(
    {
        "recursion_limit",
        "recursion_rounds",
        "internal_error",
        "result_limit",
        "unsupported",
        "step_budget",
        "statement_limit",
        "not_allowed",
        "quota_exceeded",
    }
)
"""Problems after which a site has stopped the query; others may pass."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Status of a query, the sites it waits for, warnings while it runs, and whether it rests."""

    status: QueryStatus
    waiting_for: tuple[str, ...]
    warnings: tuple[str, ...]
    settled: bool


@dataclass(slots=True)
class RunningQuery:
    """One query.

    Attributes:
        warnings: From binding.
        outdated: Why it cannot be planned again, and runs as it was planned before; or empty.
        order: How the result is shown.
        problems: What sites say keeps them from answering, by site.
        unread_since: When a session query lost its last reader, or was made, by `monotonic_clock`;
            None while read.
        status: As last announced to readers.
        deployed: When this version was, by `monotonic_clock`.
        presentation: How its answer is given to readers.
        gathered: Whether its result comes from one place, not from every gateway.
        missing: Why rows of its declared sources are missing, by source and gateway.
        differing: Gateways whose definition of a source it reads differs from the catalog's, and
            how: their rows are left out.
        reads: The relations that its text names, and those that its views name.
        alone: Why no other query can read its bundle, in words; empty: any equal one does.
        leader_of: Returns a query that reads a run, or None.
        began: Reports of the sites of other queries' runs when it began to read them, by run.
        on_site_left: Called with each of its engine sites that leaves, at once.
        outgrown: Whether the static engine has said that a table has too many rows for the
            gateways of its run.
        logical: What it computes, over sources; None: nobody has to know.
        whole_changes: Whether its plan lets the changes of one reading arrive together.
        tells: Of a node, the relations that the queries read that it was made for.
    """

    id: str
    name: str
    text: str
    origin: Origin
    created: int
    bundle: FragmentBundle
    result: QueryResult
    membership: Membership
    warnings: tuple[str, ...] = ()
    outdated: str = ""
    order: tuple[SortKey, ...] = ()
    flows: FlowReports = field(default_factory=FlowReports)
    problems: dict[str, QueryProblem] = field(default_factory=dict)
    unread_since: int | None = None
    ever_read: bool = False
    status: QueryStatus = QueryStatus.STARTING
    deployed: int = field(default_factory=monotonic_clock)
    presentation: Presentation = field(default_factory=Presentation)
    gathered: bool = True
    differing: dict[str, str] = field(default_factory=dict)
    missing: dict[str, Mapping[str, MissingRows]] = field(default_factory=dict)
    reads: frozenset[Read] = frozenset()
    alone: str = ""
    leader_of: Callable[[str], "RunningQuery | None"] = lambda _run: None
    began: dict[str, Mapping[str, FlowReport]] = field(default_factory=dict)
    on_site_left: Callable[[str], None] | None = None
    outgrown: bool = False
    logical: Plan | None = None
    whole_changes: bool = False
    tells: frozenset[Read] = frozenset()
    _known_sites: BundleSites | None = None

    @property
    def run(self) -> str:
        """The name under which sites run its bundle; equal queries have one run."""
        return self.bundle.query

    @property
    def started(self) -> bool:
        """Whether this version has once had all its inputs, as all that show its answer."""
        return self.result.answer.started

    @started.setter
    def started(self, started: bool) -> None:
        self.result.answer.started = started

    @property
    def has_failed(self) -> bool:
        """Whether a site, or the coordinator, has stopped it."""
        return any(problem.code in FATAL for problem in self.problems.values())

    def join(self, other: "RunningQuery", host: str) -> None:
        """Know what another query of the same run has received and heard so far.

        Args:
            other: Reads the same bundle.
            host: The coordinator; what it says of the other concerns the other alone.
        """
        if self.run != self.id:
            self.begin_to_read(self.run, other)
        self.flows = other.flows
        problems = {site: p for site, p in other.problems.items() if site != host}
        self.problems = {site: in_words_of(self, p) for site, p in problems.items()}
        self.result.join(other.result)
        self.started, self.deployed = other.started, other.deployed
        self.outgrown = self.outgrown or other.outgrown

    def begin_to_read(self, run: str, other: "RunningQuery | None") -> None:
        """Count from now on what the run of another query sends for this one."""
        if run not in self.began:
            self.began[run] = {} if other is None else other.flows.reports()

    def begin_to_read_others(self) -> None:
        """Count from now on what the runs send that its own is fed by."""
        direct = {feed.run for feed in self.bundle.feeds}
        for run in direct | {feeder.run for feeder in self._feeders() if feeder is not None}:
            self.begin_to_read(run, self.leader_of(run))

    def since(self, flows: FlowReports, run: str, site: str) -> FlowReport | None:
        """Return the report of a site from which on the counts of a run are this query's own.

        None: all of them are.
        """
        if run == self.id and run not in self.began:
            return None
        began = self.began.get(run, {}).get(site)
        marked = flows.marked(site) if began is None and flows.found else None
        return began if marked is None else marked[1]

    @property
    def engine_sites(self) -> frozenset[str]:
        """The gateways and base sites that run something of it."""
        return self._sites().engines

    def _sites(self) -> BundleSites:
        if self._known_sites is None or self._known_sites.bundle is not self.bundle:
            self._known_sites = BundleSites.of(self.bundle)
        return self._known_sites

    def site_left(self, site: str) -> None:
        """Note that an engine site is away, or was; the last counts of tables remain true."""
        if site not in self.engine_sites:
            return
        self.flows.left(site)
        if self.on_site_left is not None:
            self.on_site_left(site)

    def lost_touch(self) -> None:
        """Note that the broker is away, and with it every site."""
        self.flows.lost_touch()
        for site in self.engine_sites:
            self.site_left(site)

    def is_settled(self) -> bool:
        """Whether nothing is on its way, neither here nor into view."""
        return not self.result.held and self.has_arrived()

    def has_arrived(self) -> bool:
        """Whether nothing is on its way between sites or to here."""
        if not self.has_all_sources():
            return False
        feeders = self._feeders()
        return self.channels_agree() and all(q is not None and q.channels_agree() for q in feeders)

    def has_all_sources(self) -> bool:
        """Whether its sites have all rows of its sources that there are."""
        if self.differing or not self.result.is_synchronised:
            return False
        # Until a gateway reports the catalog's definition nobody knows what it sends. What it will
        # not send for a reason that it gives is missing for good, like rows of one that is away.
        if any(gap.is_awaited for by in self.missing.values() for gap in by.values()):
            return False
        # Rows that base sites read themselves stay when their gateway goes, and what it reads
        # meanwhile comes as history when it is back: nothing says how much that is.
        return not any(map(self.membership.owes_readings, self.read_by_bases()))

    def channels_agree(self) -> bool:
        """Whether nothing is on its way in the channels of its run."""
        if not all(map(self.membership.is_offline, self.flows.outdated)):
            return False
        away = frozenset(filter(self.membership.is_offline, self.engine_sites))
        result = self.result
        return self.flows.is_settled(self.bundle, result.received(), away, result.lives())

    def _feeders(self) -> tuple["RunningQuery | None", ...]:
        """Return a query of each run from which its own reads, and of those that these read.

        None: one is not there as planned.
        """
        found: dict[str, RunningQuery | None] = {}
        waiting = list(self.bundle.feeds)
        while waiting:
            feed = waiting.pop()
            if feed.run in found:
                continue
            query = self.leader_of(feed.run)
            is_there = query is not None and query.bundle.version == feed.version
            found[feed.run] = query if is_there else None
            if query is not None and is_there:
                waiting.extend(query.bundle.feeds)
        return tuple(found.values())

    def read_by_bases(self) -> frozenset[str]:
        """Return the gateways whose readings base sites read themselves, as `[ROWS n]` does."""
        sources = self._sites().direct
        return self.membership.offering(sources) if sources else frozenset()

    def compare(
        self,
        differing: Mapping[str, Mapping[str, str]],
        missing: Mapping[str, Mapping[str, MissingRows]],
    ) -> None:
        """Note what is wrong with the sources that it reads.

        Args:
            differing: How gateways define sources otherwise than the catalog, by source and
                gateway.
            missing: Why rows of declared sources are missing, by source and gateway.
        """
        self.differing = {}
        sources = sources_read_by(self.bundle)
        self.missing = {source: missing[source] for source in sorted(sources & missing.keys())}
        for source in sorted(sources & differing.keys()):
            for site, difference in differing[source].items():
                said = f"source {source} is defined differently from the catalog: {difference}"
                self.differing[site] = "; ".join(filter(None, (self.differing.get(site), said)))

    def has_inputs(self) -> bool:
        """Whether every site that is not away runs and has what the others send first."""
        feeders = self._feeders()
        return self.has_own_inputs() and all(q is not None and q.has_own_inputs() for q in feeders)

    def has_own_inputs(self) -> bool:
        """Whether that is so for the fragments of its own run."""
        present = [s for s in sites_of(self.bundle) if not self.membership.is_offline(s)]
        if not all(self.flows.is_idle(site) for site in present):
            return False
        return self.result.is_synchronised and not self.flows.without_input(present)

    def waiting_for(self) -> tuple[str, ...]:
        """Return the sites that are away, or from which nothing has come yet."""
        sites = sites_of(self.bundle)
        away = self._away()
        if not self.started:
            away |= set(self.result.unsynchronised)
            silent = {site for site in sites if site not in self.flows.heard_from()}
            away |= silent or {site for site in sites if not self.flows.is_idle(site)}
            away |= self.flows.without_input(sites)
        return tuple(sorted(away))

    def current_status(self) -> QueryStatus:
        """Return where the query stands now."""
        self.started = self.started or self.has_inputs()
        if self.has_failed:
            return QueryStatus.FAILED
        if self._away() or self._problems() or self.differing or any(self.missing.values()):
            return QueryStatus.DEGRADED
        return QueryStatus.RUNNING if self.started else QueryStatus.STARTING

    def _problems(self) -> dict[str, QueryProblem]:
        """Return the problems of its run, and of sites that run fragments for it in other runs."""
        feeders = [query for query in self._feeders() if query is not None and query.problems]
        if not feeders:
            return self.problems
        own = {fragment.id for fragment in self.bundle.own}
        sites = {site for f in self.bundle.fragments if f.id not in own for site in f.sites}
        found = {site: q.problems[site] for q in feeders for site in sites & q.problems.keys()}
        return {
            **{site: in_words_of(self, problem) for site, problem in found.items()},
            **self.problems,
        }

    def _away(self) -> set[str]:
        """Return the sites that are away and whose rows belong to the answer."""
        sites = self._sites().answering | self.read_by_bases()
        return set(filter(self.membership.is_offline, sites))

    def slow_sites(self) -> tuple[str, ...]:
        """Return a sentence per site that holds windows back, with what to do about it."""
        return tuple(
            slow_sentence(slow, offline=self.membership.is_offline(site))
            for site, slow in sorted(self.flows.slow().items())
        )

    @property
    def error(self) -> str:
        """Problems, one a line."""
        lines = [
            f"{site}: {difference} ({DIFFERENCE_HINT})"
            for site, difference in sorted(self.differing.items())
        ]
        for site, problem in sorted(self._problems().items()):
            if site in self.differing and problem.code == DIFFERENCE_CODE:
                continue  # the site says the same
            hint = f" ({problem.hint})" if problem.hint else ""
            lines.append(f"{site}: {problem.message}{hint}")
        return "\n".join(lines)

    def standing(self) -> Standing:
        """Return how it stands; all queries that show its answer stand alike, with one plan."""
        return Standing(
            self.current_status(),
            self.waiting_for(),
            missing_sources(self.bundle, self.missing)
            + left_out(self.bundle)
            + self.slow_sites()
            + self.result.notices(),
            settled=self.is_settled(),
        )

    def info(self, standing: Standing | None = None) -> QueryInfo:
        """Return the query as lists show it, which may know how it stands."""
        standing = standing or self.standing()
        why, do = self.outdated, "stop it and start it with a corrected text"
        old = f"it keeps its old plan, because it cannot be replanned: {why}; {do}" if why else ""
        return QueryInfo(
            id=self.id,
            name=self.name,
            text=self.text,
            status=standing.status,
            schema=self.bundle.schema,
            origin=self.origin,
            emit=self.bundle.emit,
            version=self.bundle.version,
            created=self.created,
            rows=self.result.answer.rows,
            changes=self.result.changes,
            last_change=self.result.last_change,
            error=self.error,
            waiting_for=standing.waiting_for,
            warnings=self.warnings + ((old,) if old else ()) + standing.warnings,
            settled=standing.settled,
            display=self.presentation.display,
            snapshot=self.presentation.snapshot,
            progress=self.presentation.progress,
            key=self.presentation.key,
            units=self.bundle.units,
            run=self.run,
        )


def in_words_of(query: RunningQuery, problem: QueryProblem) -> QueryProblem:
    """Return what a site says of a run, said of one of the queries that read it."""
    message = re.sub(r"\bquery q\d+\b", f"query {query.id}", problem.message)
    return msgspec.structs.replace(problem, message=message)
