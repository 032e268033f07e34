"""The move of queries to another run: it is filled beside the old one, which goes on answering.

Make before break: the queries change over when both runs are at rest and hold the same rows. So no
reader notices, whatever happened meanwhile. Queries that are never at rest change over when both
hold the same rows and the new run surely has read all that the old one has. If windows have to be
filled by time, both run beside each other for that long before. When that does not come about in
time the new run is withdrawn, and all is as before.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.adaptation.bundle_choice import sends_nothing
from federated_optimizer.coordinator.adaptation.filled_runs import when_alike
from federated_optimizer.coordinator.adaptation.run_cuts import is_not_behind
from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from federated_optimizer.coordinator.queries.planned_queries import Planned, offered_plan
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.new_nodes import given_by
from federated_optimizer.coordinator.queries.runs.read_parts import (
    holders,
    may_leave,
    run_that_ends,
)
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.stored_runs import RunChanges, StoredNode, StoredQuery
from host.clocks import monotonic_clock
from streamsql.wire.codec import encode_packed
from streamsql.wire.fragments import Feed, FragmentBundle

MOVE_MICROSECONDS = 60_000_000
"""Time in which a move has to come about."""
LAKE_MICROSECONDS = 600_000_000
"""Time that it has in addition where the lake fills windows."""
REST_MICROSECONDS = 5_000_000
"""Time in which both runs should be at rest; then they may change over amid changes."""
COMPARED_SELDOM = 9
"""Rows of busy runs are compared in a tenth of the time at most, however many there are."""
MOST_NAMED = 10
"""Queries that are named where more may read the rows of a run."""


class Moves:
    """Begins moves, completes them, and gives them up."""

    def __init__(self, shared: SharedParts, queries: Queries) -> None:
        self._shared = shared
        self._queries = queries
        self._begun = 0

    async def begin(
        self,
        planned: Planned,
        movers: Sequence[RunningQuery],
        *,
        silently: bool = False,
        left: Collection[str] = (),
        earlier: tuple[Move, ...] = (),
    ) -> Move | None:
        """Deploy a plan beside what queries of one run have; None: they changed meanwhile.

        Args:
            planned: The plan.
            movers: The queries.
            silently: The plan is wanted only if gateways need not send for it.
            left: Runs that those who rest on one leave together: nothing of these is read.
            earlier: Moves of the others of these which have begun before.

        Raises:
            FederationError: The plan cannot be deployed.
        """
        shared, former = self._shared, {query.id: query.bundle for query in movers}
        async with shared.changing():
            other = self._queries.runs.alike(planned)
            if other is None or other.run == movers[0].run or other.run in left:
                if planned.bundle is movers[0].bundle:
                    return None  # the run that computes what they read has ended
                other = None
                run = f"q{await asyncio.to_thread(shared.store.next_query_number)}"
                bundle = self._fed(planned, run, movers[0], left, earlier)
            else:
                bundle = other.bundle
            if not self._going_on(former) or (
                silently and other is None and not sends_nothing(bundle)
            ):
                return None
            trial = self._trial(planned, bundle)
            published = 0
            if other is None:
                shared.deployment.publish(bundle)
                published = len(encode_packed(bundle)) * len(bundle.sites)
            else:
                trial.join(other, shared.settings.host)
            self._queries.runs.try_out(trial)
            fills = when_alike(bundle).microseconds
            move = Move(planned, trial, former, published=published, fills=fills)
            move.is_together, move.earlier = bool(left), earlier
            return move

    def _fed(
        self,
        planned: Planned,
        run: str,
        mover: RunningQuery,
        left: Collection[str],
        earlier: Iterable[Move],
    ) -> FragmentBundle:
        """Return a plan as a new run that leaves another one: it reads what of that one stays."""
        runs = self._queries.runs
        if left:
            given: dict[str, Feed] = {}
            for move in earlier:
                given |= given_by(move.trial.bundle)
            return runs.named(planned, run, given, left)
        bundle = runs.fed_but_by(planned, run, run_that_ends(runs, mover.run))
        read = [feed.source for feed in bundle.feeds if feed.run == mover.run]
        if may_leave(runs, mover, read):
            return bundle
        return runs.fed_but_by(planned, run, mover.run)

    def _trial(self, planned: Planned, bundle: FragmentBundle) -> RunningQuery:
        shared = self._shared
        self._begun += 1
        name = f"trial {self._begun} of {bundle.query}"
        trial = RunningQuery(
            id=name,
            name=name,
            text=bundle.text,
            origin=Origin.SESSION,
            created=shared.clock(),
            bundle=bundle,
            result=QueryResult(bundle, clock=shared.clock, max_behind=1, query=name),
            membership=shared.membership,
            alone=planned.alone,
            leader_of=self._queries.runs.leader,
        )
        trial.compare(self._queries.differing, self._queries.missing)
        return trial

    def why_needed(self, movers: Sequence[RunningQuery]) -> str:
        """Return why the run of queries that move has to stay, in words; empty: it need not.

        What reads its result would begin anew. Where only what it receives is read, it is left to
        a node.
        """
        runs, run = self._queries.runs, movers[0].run
        if len([q for q in runs.live(run) if not runs.is_tried(q)]) > len(movers):
            return ""
        fed = ", ".join(query.id for query in holders(runs, movers[0])[:MOST_NAMED])
        return fed and f"its rows are read by {fed}"

    def movers(self, move: Move) -> list[RunningQuery]:
        """Return the queries that still run what they ran when the move began."""
        return self._going_on(move.former)

    def _going_on(self, former: Mapping[str, FragmentBundle]) -> list[RunningQuery]:
        found = [query for query in self._queries.all() if query.id in former]
        host = self._shared.settings.host
        return [q for q in found if q.bundle is former[q.id] and host not in q.problems]

    def watch(self, move: Move) -> None:
        """Note since when both runs are beside each other, and nothing has come or gone."""
        membership, trial = self._shared.membership, move.trial
        sites = [
            (s, membership.epoch(s), membership.is_offline(s)) for s in sorted(trial.bundle.sites)
        ]
        if move.sites != sites:
            # Who was away, or begins anew, may bring what the new run has not seen.
            move.sites, move.beside = sites, None
        if move.beside is None and trial.has_inputs():
            move.beside = monotonic_clock()

    def why_not(self, move: Move) -> str:
        """Return why a move cannot come about any more, in words; empty: it may."""
        movers = self.movers(move)
        if not movers:
            return "its queries have ended, or were planned anew"
        # Who rests on a run that is left together moves as well, and reads it as a node until then.
        needed = "" if move.is_together else self.why_needed(movers)
        if needed:
            return needed
        if any(other.failed for other in move.earlier):
            return "the move of another of them was given up"
        trial = move.trial
        if trial.has_failed:
            return f"the new plan failed: {trial.error or 'it was stopped'}"
        leader = self._queries.runs.leader(trial.run)
        if leader is None or leader.bundle is not trial.bundle:
            return "the run that they were to read was planned anew"
        lake = LAKE_MICROSECONDS if trial.bundle.fills else 0
        if monotonic_clock() - move.began > MOVE_MICROSECONDS + move.fills + lake:
            if not trial.has_inputs():
                return f"the new plan was not filled within {move.seconds:.0f} s"
            return (
                f"both plans were never at rest at once within {move.seconds:.0f} s, nor gave the "
                "same rows when the new one had surely read all that the old one had"
            )
        return ""

    def is_ready(self, move: Move) -> bool:
        """Whether both runs are at rest and hold the same rows, now and at the last look.

        Counts of sites may be early by one report: so nothing may have come between two looks.
        """
        before, move.seen = move.seen, None
        if move.waits or move.filled_for < 0 or not self._at_rest(move):
            return False
        move.seen = tuple(
            (query.result.received(), query.result.lives(), query.result.changes)
            for query in (move.trial, *self.movers(move))
        )
        return move.seen == before

    def _at_rest(self, move: Move) -> bool:
        both = (move.trial, *self.movers(move))
        return all(query.has_arrived() for query in both) and self._show_the_same(move)

    def _may_follow(self, move: Move) -> bool:
        """Whether the new run has read all that the old one has, and gives the same rows now."""
        trial, movers = move.trial, self.movers(move)
        if self._queries.owed.is_owed or not movers:
            return False
        self.watch(move)
        if move.filled_for < 0:
            return False
        if not all(query.has_all_sources() for query in (trial, *movers)):
            return False
        # Counts come first: they are few, and rows and readers may be many.
        if monotonic_clock() < move.compared or not all(is_not_behind(trial, q) for q in movers):
            return False
        if self.why_not(move):
            return False
        if not {node.run for node in self._queries.nodes.left_by(movers)} <= move.nodes:
            move.may_be_busy = False  # somebody has begun to read what is left: store that first
            return False
        began = monotonic_clock()
        is_same = self._show_the_same(move)
        ended = monotonic_clock()
        move.compared = ended + COMPARED_SELDOM * (ended - began)
        return is_same

    def _show_the_same(self, move: Move) -> bool:
        both = (move.trial, *self.movers(move))
        if any(query.result.held or query.result.is_partial for query in both):
            return False
        if any(query.current_status() != QueryStatus.RUNNING for query in both):
            return False
        rows = move.trial.result.contents()
        answers = dict.fromkeys(query.result.answer for query in both[1:])  # mostly one for all
        return all(a.contents() == rows and a.view == rows for a in answers)

    async def complete(self, move: Move) -> tuple[RunningQuery, ...]:
        """Store the new plan, and change over if both runs are still at rest; return who did.

        Raises:
            FederationError: The catalog cannot be written.
        """
        async with self._shared.changing():
            await self._store_new(move)
            self.watch(move)
            if self.why_not(move) or move.filled_for < 0 or not self._at_rest(move):
                return ()
            move.moved = self._change_over(move)
            return move.moved

    async def may_be_busy(self, move: Move) -> None:
        """Let a move come about amid changes if both runs were not at rest for long enough.

        Raises:
            FederationError: The catalog cannot be written.
        """
        if move.may_be_busy or move.waits or move.filled_for < REST_MICROSECONDS:
            return
        async with self._shared.changing():
            await self._store_new(move)
            move.may_be_busy = True

    def counts_came(self, moves: Iterable[Move]) -> None:
        """Change over where the counts that have just come show that it may be done."""
        for move in moves:
            # Whoever holds the lock is changing queries.
            is_free = not (self._shared.lock.locked() or self._shared.presence.taken_over)
            is_open = move.may_be_busy and not (move.moved or move.failed)
            if is_open and is_free and self._may_follow(move):
                move.moved = self._change_over(move)

    async def _store_new(self, move: Move) -> None:
        move.stored = True
        movers = self.movers(move)
        nodes = self._queries.nodes.left_by(movers)
        await self._store(movers, move.trial.bundle, nodes=nodes)
        move.nodes |= {node.run for node in nodes}

    async def forget_nodes(self, move: Move) -> None:
        """Remove from the catalog what was to become a node, and is none.

        Raises:
            FederationError: The catalog cannot be written. Call it again then.
        """
        if not move.nodes:
            return
        async with self._shared.changing():
            nodes = self._queries.nodes
            await self._store((), ended=tuple(r for r in move.nodes if nodes.of(r) is None))
            move.nodes = frozenset()

    async def _store(
        self,
        queries: Iterable[RunningQuery],
        bundle: FragmentBundle | None = None,
        *,
        nodes: tuple[StoredNode, ...] = (),
        ended: tuple[str, ...] = (),
    ) -> None:
        """Store queries with a bundle, or with their own, and the nodes that they leave."""
        stored = tuple(
            StoredQuery(
                *(query.id, query.name, query.text, query.origin, query.created),
                bundle or query.bundle,
                logical=offered_plan(query),
            )
            for query in queries
            if query.origin != Origin.SESSION
        )
        changes = RunChanges(queries=stored, nodes=nodes, ended=ended)
        if changes:
            await asyncio.to_thread(self._shared.store.put_runs, changes)

    def _change_over(self, move: Move) -> tuple[RunningQuery, ...]:
        """Let the queries read the new run: at once, nothing comes between."""
        runs, trial = self._queries.runs, move.trial
        movers = self.movers(move)
        self._queries.keep_nodes(movers)
        for query in movers:
            runs.leave(query)
            if not trial.bundle.runs_as(query.bundle):
                query.warnings = move.planned.warnings
            fed = {feed.run for feed in trial.bundle.feeds}
            query.bundle, query.flows = trial.bundle, trial.flows
            query.began = {run: began for run, began in query.began.items() if run in fed}
            query.begin_to_read(query.run, trial)
            query.begin_to_read_others()
            query.result.hand_over(trial.bundle, trial.result)
            query.started, query.deployed = trial.started, trial.deployed
            query.problems.clear()
            query.outdated = ""
            query.compare(self._queries.differing, self._queries.missing)
            runs.enter(query)
        runs.end_trial(trial)
        self._queries.withdraw_unread(move.former[movers[0].id])
        return tuple(movers)

    async def give_up(self, move: Move) -> None:
        """Withdraw the new run; the queries stay where they are.

        Raises:
            FederationError: The catalog cannot be written, or another coordinator has taken over.
                Call it again then.
        """
        async with self._shared.changing():
            if any(trial is move.trial for trial in self._queries.runs.tried()):
                self._queries.runs.end_trial(move.trial)
                self._queries.withdraw_unread(move.trial.bundle)
            if move.stored:
                await self._store(self.movers(move))
        if move.stored:
            await self.forget_nodes(move)
