"""Running queries are given other plans when what their plans rest on has changed.

A run is looked at once soon after it was deployed, to learn what its plan rests on, and then
whenever a fact has left its range. It moves if another plan saves more than filling it costs. Moves
go on while plans are looked at: a look takes the time of planning, on a busy machine seconds.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from federated_optimizer.coordinator.adaptation.begun_moves import sent_bytes_of
from federated_optimizer.coordinator.adaptation.decision_rows import FIRST_LOOK, DecisionRows
from federated_optimizer.coordinator.adaptation.filled_runs import too_long, when_alike
from federated_optimizer.coordinator.adaptation.known_runs import (
    KnownRun,
    is_quiet,
    looked_after,
)
from federated_optimizer.coordinator.adaptation.leaving_together import leave_together
from federated_optimizer.coordinator.adaptation.left_nodes import LeftNodes, leaving_words
from federated_optimizer.coordinator.adaptation.move_gains import why_not_worth
from federated_optimizer.coordinator.adaptation.moves import Moves
from federated_optimizer.coordinator.adaptation.moves_under_way import MovesUnderWay
from federated_optimizer.coordinator.adaptation.plan_basis import left_range
from federated_optimizer.coordinator.adaptation.reconsidered import Reconsidered, reconsider_all
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.read_parts import run_that_ends
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.plan_decisions import Outcome
from federated_optimizer.network.run_ages import age_of
from federated_optimizer.statistics.planning_statistics import Statistics
from host.clocks import monotonic_clock
from streamsql.errors import FederationError
from streamsql.wire.fragments import FragmentBundle

log = logging.getLogger(__name__)

LOOK_SHARE = 6
"""Facts are looked at so many times in the time between two changes of a query's plan."""
LONGEST_LOOK = 10_000_000
"""Microseconds between two looks at most."""
IN_ONE_TURN = 100
"""Runs of which it is found in one turn of the event loop whether to look at them."""
AT_ONCE = 16
"""Runs whose plans are made again in one look: forking a process for it costs more than a plan."""


class Adaptation:
    """Looks after the plans of all runs.

    State: what is known of each run, and the moves under way.

    Args:
        clock: Microseconds, never back.
    """

    def __init__(
        self,
        shared: SharedParts,
        planner: Planner,
        queries: Queries,
        clock: Callable[[], int] = monotonic_clock,
    ) -> None:
        self._shared = shared
        self._now = clock
        self._planner = planner
        self._queries = queries
        self._decisions = shared.decisions
        self._pause = int(shared.settings.adapt * 1_000_000)
        self._known: dict[str, KnownRun] = {}
        self._moves = Moves(shared, queries)
        self._moving = MovesUnderWay(shared, queries, self._moves, self._known, clock)
        self._rows = DecisionRows(shared, planner, self._moving.rate)
        self._left = LeftNodes(queries, self._pause)
        self._looked = clock()

    async def work(self) -> None:
        """Go on with moves.

        Raises:
            FederationError: The catalog cannot be written for one of them; the others have gone on.
                It is tried again with the next call.
        """
        await self._moving.work(self._may_look)

    async def look(self) -> None:
        """Look at plans if it is time to; `work` may be called meanwhile."""
        now = self._now()
        if not self._pause or now - self._looked < min(self._pause // LOOK_SHARE, LONGEST_LOOK):
            return
        self._looked = now
        self._moving.measure(now)
        if self._may_look():
            await self._look(now)

    def counts_came(self) -> None:
        """Complete moves for which counts that a site has just told are enough."""
        self._moving.counts_came()

    def _may_look(self) -> bool:
        """Whether nothing else is changing: then facts would tell of that and not of the world."""
        return self._shared.client.connected and not self._queries.owed.is_owed

    # --- which runs ---------------------------------------------------------------------------

    async def _look(self, now: int) -> None:
        found = await self._due(now)
        await self._join_equal(now)
        waiting = [run for run in found if run not in self._moving.runs()]
        waiting.sort(key=lambda run: self._known[run].looked)
        # One that took too long may do so again: by itself it costs one time limit, not five.
        doubtful = [run for run in waiting if self._known[run].has_failed][:1]
        usual = [run for run in waiting if not self._known[run].has_failed][:AT_ONCE]
        for runs in (usual, doubtful):
            await self._reconsider({run: found[run] for run in runs})
        await self._leave_together(now)

    async def _leave_together(self, now: int) -> None:
        """Let all who rest on a run leave it that is too wide for them, if no other query moves."""
        self._left.see(now)
        found = None if self._moving.all() else self._left.due(self._known, now)
        if found is None:
            return
        node, groups = found
        offers, metric = self._queries.offers.looked(), self._shared.settings.metric
        work = partial(leave_together, self._planner, node, groups, metric, offers)
        try:
            together = await self._shared.beside.run(work, "looking at the readers of a node")
        except FederationError as error:
            log.info("the readers of %s could not be planned without it: %s", node, error)
            self._left.decided(node, now, moves=False)
            return
        if self._moving.all() or not self._left.goes_on(node, groups):
            return
        is_worth_it = together is not None and together.is_worth_it
        self._left.decided(node, self._now(), moves=is_worth_it)
        if together is not None and is_worth_it:
            reason = leaving_words(node, groups)
            moves = (  # a row has a number when it is made, and keeps it when it is added
                (self._known[run], self._rows.leaving(groups[run], planned, reason), groups[run])
                for run, planned in together.members.items()
            )
            await self._moving.begin_together(together, moves)

    async def _due(self, now: int) -> dict[str, str]:
        """Return the runs whose plans are to be made again, with the reason."""
        statistics: Statistics = self._planner.statistics()
        found: dict[str, str] = {}
        running = looked_after(self._queries.runs)
        for run in self._known.keys() - running:
            del self._known[run]
        for number, run in enumerate(running, 1):
            if number % IN_ONE_TURN == 0:
                await asyncio.sleep(0)  # other work goes on between the runs of a large network
            leader, known = self._queries.runs.leader(run), self._known.get(run)
            if leader is None:
                continue  # it has ended meanwhile
            if known is None or known.bundle is not leader.bundle:
                self._known[run] = KnownRun.of(leader, now, self._queries.runs)
                continue
            known.count(now, sent_bytes_of(leader))
            live = self._queries.runs.live(run)
            # A plan that was asked for ends, too, when gateways cannot keep its table any more.
            never = not known.bundle.at_gateways and all(q.id in known.fixed for q in live)
            if never or not is_quiet(leader):
                continue
            if known.waits:
                if self._moving.has_room(known.wanted or known.bundle):
                    found[run] = known.waits
                continue
            own = known.next_own(live, now)
            if own is not None:
                found[run] = own.reason
                continue
            left_out = all(query.text in known.own for query in live)
            if left_out or now - known.looked < known.pause(self._pause):
                continue
            if known.basis is None:
                found[run] = ""
                continue
            why = next(map(str, left_range(known.basis, statistics)), "")
            if known.needed and not self._moves.why_needed(live):
                found[run] = "no other query needs it as it is any more"
            elif why := why or known.others(self._queries.runs, leader):
                found[run] = why
        return found

    async def _join_equal(self, now: int) -> None:
        """Let the queries of a run read an older one that computes the same, if there is one."""
        runs = self._queries.runs
        for run, known in tuple(self._known.items()):
            older = runs.older_equal(run)
            if older is None or now - known.looked < known.pause(self._pause):
                continue
            moving = self._moving.runs(with_new=True)
            if {run, older.run} & moving or not self._moving.has_room(known.bundle):
                continue
            live = runs.live(run)
            queries = [q for q in live if q.id in self._queries and q.bundle is known.bundle]
            if not (queries and is_quiet(queries[0]) and is_quiet(older)):
                continue
            if not self._moves.why_needed(queries):
                reason = f"run {older.run} computes the same"
                detail = "its rows are compared with theirs"
                row = self._rows.same(queries, reason, Outcome.MOVING, detail)
                await self._moving.begin(known, row, planned_of(queries[0]), queries)

    async def _reconsider(self, reasons: Mapping[str, str]) -> None:
        """Make the plans of runs again; begin moves where other ones are worth it."""
        groups: dict[str, list[RunningQuery]] = {}
        for run in reasons:
            queries = [q for q in self._queries.runs.live(run) if q.id in self._queries]
            known = self._known.get(run)
            queries = [] if known is None else known.begin_look(queries, self._now(), self._pause)
            if known is not None and queries:
                known.see(self._queries.runs, queries[0])
                groups[run] = queries
        bundles, begun = {run: self._known[run].bundle for run in groups}, self._moving.numbers()
        for run, found in (await self._reconsidered(groups)).items():
            known = self._known.get(run)
            if known is None or known.bundle is not bundles[run]:
                continue
            if isinstance(found, FederationError):
                self._look_failed(known, groups[run], reasons[run], found)
            else:
                await self._decide(known, groups[run], reasons[run], found, begun)

    async def _reconsidered(
        self, groups: Mapping[str, Sequence[RunningQuery]]
    ) -> dict[str, Reconsidered | FederationError]:
        """Return what would be planned now; a run that takes too long keeps no other from it."""
        if not groups:
            return {}
        offers, metric = self._queries.offers.looked(), self._shared.settings.metric
        work = partial(reconsider_all, self._planner, groups, metric, self._fed, offers)
        try:
            return await self._shared.beside.run(work, "looking at a plan again")
        except FederationError as error:
            if len(groups) == 1:
                return dict.fromkeys(groups, error)
        runs = tuple(groups)
        halves = (runs[: len(runs) // 2], runs[len(runs) // 2 :])
        first, second = ({run: groups[run] for run in half} for half in halves)
        return await self._reconsidered(first) | await self._reconsidered(second)

    def _must_wait(self, known: KnownRun, found: Reconsidered, begun: Collection[int]) -> bool:
        """Return whether moves decide first: `begun` were under way when the choice was made."""
        known.wanted = wanted = found.over or found.planned.bundle
        if not self._moving.has_room(wanted):
            return True
        if found.over is None:
            return False
        goes_on = all(self._queries.runs.leader(feed.run) for feed in wanted.feeds)
        return not goes_on or self._moving.is_contested(known.bundle, wanted, begun)

    async def _decide(
        self,
        known: KnownRun,
        queries: Sequence[RunningQuery],
        reason: str,
        found: Reconsidered,
        begun: Collection[int] = (),
    ) -> None:
        """Decide whether the queries of a run take the plan that was found."""
        current = [q for q in queries if q.id in self._queries and q.bundle is known.bundle]
        if current and found.before is None and known.bundle.at_gateways:
            self._queries.has_old_plans = True  # gateways would have to keep too much of a table
        if not current or found.before is None:
            return  # it is planned for other sites or definitions by now
        changes = not found.planned.bundle.runs_as(known.bundle)
        why, movers = self._why_kept(found, current, changes=changes)
        if changes and not why and self._must_wait(known, found, begun):
            known.waits = reason or FIRST_LOOK
            return
        known.note_look(found, current, reason, self._now())
        if not changes and known.is_routine(reason):
            return
        known.needed = why if movers else ""
        if known.needed:
            self._left.wants(known.bundle.query, self._now())
        never = when_alike(known.bundle).never
        known.fixed = frozenset(q.id for q in current if never or q.id in found.fixed)
        looked = [query for query in current if query.id not in found.apart]
        decision = self._rows.compared(looked if why else movers, reason, found, why)
        if why:
            self._decisions.add(decision)
        elif await self._moving.begin(
            known, decision, found.planned, movers, silently=found.work is not None
        ):
            for row in self._rows.staying(current, reason, found):
                self._decisions.add(row)

    def _look_failed(
        self,
        known: KnownRun,
        queries: Sequence[RunningQuery],
        reason: str,
        error: FederationError,
    ) -> None:
        """Let queries whose plan could not be made again wait, and say so."""
        text = queries[0].text  # it was the first to be planned
        known.look_failed(text, reason, self._now(), self._pause)
        failed = [q for q in queries if q.id in self._queries and q.text == text]
        if failed:
            why = f"its plan could not be made again: {error.message}"
            self._decisions.add(self._rows.same(failed, reason, Outcome.KEPT, why))

    def _fed(self, planned: Planned, left: str) -> FragmentBundle:
        """Return a plan with what runs of now would give a newer one that leaves a run."""
        runs = self._queries.runs
        newer = max((*runs.names(), left), key=age_of) + "+"
        return runs.fed_but_by(planned, newer, run_that_ends(runs, left))

    def _why_kept(
        self, found: Reconsidered, queries: Sequence[RunningQuery], *, changes: bool
    ) -> tuple[str, list[RunningQuery]]:
        """Return why queries keep their plan, in words, or those that move."""
        movers = [q for q in queries if q.id not in found.fixed and q.id not in found.apart]
        if not movers:
            return next(iter(found.fixed.values())), []
        if not changes:
            return "no other plan is much cheaper", []
        alike = when_alike(found.planned.bundle)
        stays = when_alike(queries[0].bundle).never or alike.never or too_long(alike)
        if stays:
            return f"it cannot move: {stays}", []
        needed = self._moves.why_needed(movers)
        if needed:
            return needed, movers
        why = why_not_worth(found, alike)
        if why:
            return why, []
        return "", movers
