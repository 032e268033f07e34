"""Offers of runs that queries may read, kept in step with the runs, by what a query is allowed.

A query may read what is older than its run, runs well, and rests on nothing that whoever has
started the query may not read. A query that acts on the world reads results only of runs in which
the changes of one reading arrive together.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from typing_extensions import override

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.read_parts import ReadRuns, may_leave, parts_read
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from federated_optimizer.coordinator.store.grant_store import MadeKind
from federated_optimizer.coordinator.timed_attempts import undisturbed
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.sharing.computation_index import Allowed, ComputationIndex
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.run_offers import offers_of
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle

AT_ONCE = 16
"""Runs of which offers are made without a pause: some milliseconds."""


class _NotedIndex(ComputationIndex):
    """An index whose changes are whole, whatever ends the work that makes them.

    Attributes:
        touched: Runs whose offers were changed since this was last emptied.
        is_broken: Whether a change has failed halfway, as where a plan is too deep.
    """

    def __init__(self) -> None:
        super().__init__()
        self.touched: set[str] = set()
        self.is_broken = False

    @override
    def add(self, offer: Offer) -> None:
        with self._changing(offer.run):
            super().add(offer)

    @override
    def remove(self, run: str) -> None:
        with self._changing(run):
            super().remove(run)

    @contextmanager
    def _changing(self, run: str) -> Iterator[None]:
        with undisturbed():
            self.touched.add(run)
            try:
                yield
            except BaseException:
                self.is_broken = True
                raise


class ReadableOffers:
    """The offers of all runs.

    State: the index, and as what each run is in it.

    Attributes:
        runs: Those whose offers they are.
    """

    def __init__(self, runs: SharedRuns, rights: ReadingRights) -> None:
        self.runs = runs
        self._rights = rights
        self._index = _NotedIndex()
        self._known: dict[str, tuple[FragmentBundle, bool]] = {}
        self._planned: set[str] = set()
        self._is_planning = False
        self._statistics: Statistics | None = None
        self._estimated: dict[Offer, float] = {}

    def index(self) -> ComputationIndex:
        """Return the index of what runs offer now. Work: that of the runs that have changed."""
        with undisturbed():
            if self._is_planning:
                self._mend()
            self._look()
        return self._index

    async def catch_up(self) -> None:
        """Look at the runs that have changed, a few at a time: other work goes on in between.

        After a start these are all runs. `index` then looks at what is left, at most `AT_ONCE`.
        """
        while len(self.runs.touched) > AT_ONCE:
            with undisturbed():
                if self._is_planning:
                    self._mend()
                self._look(AT_ONCE)
            await asyncio.sleep(0)

    def _look(self, most: int | None = None) -> None:
        # A run whose offers cannot be made is not offered, and keeps no other one from being so.
        for run in tuple(islice(self.runs.touched, most)):
            del self.runs.touched[run]
            leader = self._offering(run)
            if leader is None:
                self._index.remove(run)
                self._known.pop(run, None)
                continue
            is_node, known = self._is_node(run), self._known.get(run)
            if known is None or known[0] is not leader.bundle or known[1] != is_node:
                self._put(run, leader.bundle, is_node=is_node)

    def estimates(self, statistics: Statistics) -> Callable[[Offer], float]:
        """Return what estimates how many rows an offer has, once while statistics are the same."""
        if statistics is not self._statistics:
            self._statistics, self._estimated = statistics, {}
        known = self._estimated

        def estimated(offer: Offer) -> float:
            if offer not in known:
                known[offer] = estimate(offer.plan, statistics).rows
            return known[offer]

        return estimated

    def offer(self, planned: Planned, bundle: FragmentBundle) -> None:
        """Offer a run that is only thought of, until `take_back`."""
        assert planned.logical is not None  # noqa: S101  (else nobody reads it)
        for offer in offers_of(bundle, planned.logical, reads=planned.reads):
            self._index.add(offer)

    def take_back(self, run: str) -> None:
        """Offer a run no more that is only thought of."""
        self._index.remove(run)

    def looked(self) -> "ReadableOffers":
        """Return itself with the offers of now: what a process finds out is seen nowhere else."""
        self.index()
        return self

    def plan_again(self, run: str, bundle: FragmentBundle) -> None:
        """Offer what a run will compute with its next bundle, until `look_again`."""
        if run in self._known:
            self._planned.add(run)
            self._put(run, bundle, is_node=self._known[run][1])

    def look_again(self) -> None:
        """Offer what runs compute now, whatever was planned for them."""
        planned, self._planned = self._planned, set()
        self.runs.touched.update(dict.fromkeys(planned))

    def _put(self, run: str, bundle: FragmentBundle, *, is_node: bool) -> None:
        leader = self.runs.leader(run)
        assert leader is not None  # noqa: S101  (there are no offers without one)
        assert leader.logical is not None  # noqa: S101
        self._index.remove(run)
        may = (leader.reads, leader.tells)
        for offer in offers_of(bundle, leader.logical, *may, is_node=is_node):
            self._index.add(offer)
        self._known[run] = bundle, is_node

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Leave the index as it was, or let it be mended before it is looked at again.

        Work on the event loop is ended by a timer, between any two steps, even those that would
        mend something. What runs offer that it has changed is offered anew: a few runs, not all.
        """
        self._index.touched.clear()
        self._is_planning = True
        yield
        self._is_planning = False

    def _mend(self) -> None:
        """Let go what was changed by planning that has come to no end."""
        self._is_planning = False
        if self._index.is_broken:
            self._index, self._known = _NotedIndex(), {}
            self.runs.touched = dict.fromkeys(self.runs.all())
            return
        for run in tuple(self._index.touched):
            self._index.remove(run)
            self._known.pop(run, None)
            self.runs.touched[run] = None

    def _offering(self, run: str) -> RunningQuery | None:
        leader = self.runs.leader(run)
        if leader is None or leader.alone or leader.logical is None or not leader.gathered:
            return None
        return None if self.runs.is_tried(leader) else leader

    def _is_node(self, run: str) -> bool:
        return next(self.runs.seen(run), None) is None  # however many read it

    # --- what a query may read ----------------------------------------------------------------

    def for_new(self, principal: Principal, *, whole_changes: bool) -> Allowed:
        """Return which offers a new query of somebody may read."""
        known: dict[Offer, bool] = {}
        may_read: dict[frozenset[Read], bool] = {}

        def allowed(offer: Offer) -> bool:
            if offer not in known:
                # Thousands of offers rest on a few relations.
                may = may_read.get(offer.reads)
                if may is None:
                    may = may_read[offer.reads] = self._may_read(principal, offer.reads)
                known[offer] = may and self._is_well(offer, whole_changes=whole_changes)
            return known[offer]

        return allowed

    def for_running(self, query: RunningQuery) -> Allowed:
        """Return which offers a query may read when it is planned again: those that it reads."""
        read = {(feed.run, feed.source) for feed in query.bundle.feeds}
        return lambda offer: (
            (offer.run, offer.fragment) in read and self._is_well(offer, whole_changes=False)
        )

    def for_moves(self, queries: Sequence[RunningQuery]) -> Allowed:
        """Return which offers queries of one run may all read when they move.

        None that rest on its result; what their run receives goes on without them. If the maker of
        one has no account any more they may read none.
        """
        run, news = queries[0].run, []
        for query in queries:
            principal = self._rights.maker(MadeKind.QUERY, query.id)
            if principal is None:
                return lambda _offer: False
            news.append(self.for_new(principal, whole_changes=query.whole_changes))
        rest = {run} if may_leave(self.runs, queries[0]) else self.runs.resting_on(run)
        return lambda offer: (
            offer.is_readable
            and offer.run not in rest
            and not is_ending(self.runs, offer)
            and all(new(offer) for new in news)
        )

    def _is_well(self, offer: Offer, *, whole_changes: bool) -> bool:
        leader = self.runs.leader(offer.run)
        if leader is None:
            return True  # a node that is made together with the query, in the same way
        if leader.has_failed or (leader.origin == Origin.NODE and leader.outdated):
            return False
        return _is_leaf(offer) or leader.whole_changes or not whole_changes

    def _may_read(self, principal: Principal, reads: frozenset[Read]) -> bool:
        return next(self._rights.refusals(principal, reads), None) is None


def is_ending(runs: ReadRuns, offer: Offer) -> bool:
    """Return whether a result is that of a node that goes on only for what it receives.

    Whoever read it would cause it, and leave it, and so on.
    """
    leader = runs.leader(offer.run)
    if leader is None or leader.origin != Origin.NODE or _is_leaf(offer):
        return False
    own = {fragment.id: fragment for fragment in leader.bundle.own}
    read = parts_read(runs, offer.run)
    return all(part in own and own[part].consumer for part in read)


def rows_of(runs: SharedRuns, estimated: Callable[[Offer], float]) -> Callable[[Offer], float]:
    """Return what tells how many rows an offer has: counted where a query reads it.

    `estimated` tells it of others.
    """
    known: dict[Offer, float] = {}

    def rows(offer: Offer) -> float:
        if offer not in known:
            known[offer] = _rows(offer)
        return known[offer]

    def _rows(offer: Offer) -> float:
        leader = runs.leader(offer.run)
        is_result = bool(offer.fragment) and not offer.bundle.fragment(offer.fragment).consumer
        if is_result and leader is not None and not leader.bundle.silent and leader.started:
            return float(leader.result.size)
        return estimated(offer)

    return rows


def _is_leaf(offer: Offer) -> bool:
    """Return whether an offer is of what gateways or tables deliver."""
    return bool(offer.fragment) and bool(offer.bundle.fragment(offer.fragment).consumer)
