"""Running queries are given other plans when what their plans rest on has changed.

A run is looked at once soon after it was deployed, to learn what its plan rests on, and then
whenever a fact has left its range. It moves if another plan is much cheaper and saves more, within
`HORIZON_SECONDS`, than filling it costs. Moves go on while plans are looked at: a look takes the
time of planning, and on a busy machine that is seconds.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from federated_optimizer.coordinator.adaptation.filled_runs import MARGIN, Alike, when_alike
from federated_optimizer.coordinator.adaptation.known_runs import (
    MEASURED_SECONDS,
    KnownRun,
    Measuring,
    is_quiet,
    looked_after,
    rate_since,
)
from federated_optimizer.coordinator.adaptation.moves import Move, Moves, sent_bytes_of
from federated_optimizer.coordinator.adaptation.plan_basis import left_range
from federated_optimizer.coordinator.adaptation.reconsidered import Reconsidered, reconsider_all
from federated_optimizer.coordinator.queries.planner import Planned, Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.plan_decisions import Decision, Outcome
from federated_optimizer.statistics.planning_statistics import Statistics
from host.clocks import monotonic_clock
from streamsql.algebra.metrics import BY_BYTES
from streamsql.data.durations import duration_text
from streamsql.data.types import MICROSECONDS
from streamsql.errors import FederationError
from streamsql.wire.fragments import FragmentBundle

log = logging.getLogger(__name__)

HORIZON_SECONDS = 600.0
"""Time in which a change of plan has to save what it costs."""
LOOK_SHARE = 6
"""Facts are looked at so many times in the time between two changes of a query's plan."""
LONGEST_LOOK = 10_000_000
"""Microseconds between two looks at most."""
AT_ONCE = 16
"""Runs whose plans are made again in one look: forking a process for it costs more than a plan."""
MOST_MOVES = 2
"""Moves at the same time, and as many that take the length of a window: each lets the network do
some work twice."""
LONGEST_BESIDE = 3_600_000_000 + MARGIN
"""Microseconds that two runs may be beside each other until windows of the new one are filled: an
hour's window may."""
FIRST_LOOK = "the first look at the plan since it was deployed"


class Adaptation:
    """Looks after the plans of all runs.

    State: what is known of each run, the moves under way, and those whose benefit is counted.

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
        self._moves = Moves(shared, queries)
        self._pause = int(shared.settings.adapt * 1_000_000)
        self._known: dict[str, KnownRun] = {}
        self._moving: dict[int, Move] = {}
        self._measured: list[Measuring] = []
        self._looked = clock()

    async def work(self) -> None:
        """Go on with moves.

        Raises:
            FederationError: The catalog cannot be written; it is tried again with the next call.
        """
        for number, move in tuple(self._moving.items()):
            await self._go_on(number, move)

    async def look(self) -> None:
        """Look at plans if it is time to; `work` may be called meanwhile."""
        now = self._now()
        if not self._pause or now - self._looked < min(self._pause // LOOK_SHARE, LONGEST_LOOK):
            return
        self._looked = now
        self._measure(now)
        if self._may_look():
            await self._look(now)

    def counts_came(self) -> None:
        """Complete moves for which counts that a site has just told are enough."""
        self._moves.counts_came(self._moving.values())

    def _may_look(self) -> bool:
        """Whether nothing else is changing: then facts would tell of that and not of the world."""
        return self._shared.client.connected and not self._queries.owed.is_owed

    # --- which runs ---------------------------------------------------------------------------

    async def _look(self, now: int) -> None:
        found = self._due(now)
        busy = {move.run for move in self._moving.values()}
        waiting = [run for run in found if run not in busy]
        waiting.sort(key=lambda run: self._known[run].looked)
        await self._reconsider({run: found[run] for run in waiting[:AT_ONCE]})

    def _due(self, now: int) -> dict[str, str]:
        """Return the runs whose plans are to be made again, with the reason."""
        statistics: Statistics = self._planner.statistics()
        found: dict[str, str] = {}
        running = looked_after(self._queries.runs)
        self._known = {run: known for run, known in self._known.items() if run in running}
        for run, leader in running.items():
            known = self._known.get(run)
            if known is None or known.bundle is not leader.bundle:
                self._known[run] = KnownRun.of(leader, now)
                continue
            known.count(now, sent_bytes_of(leader))
            live = self._queries.runs.live(run)
            # A plan that was asked for ends, too, when gateways cannot keep its table any more.
            never = not known.bundle.at_gateways and all(q.id in known.fixed for q in live)
            if never or not is_quiet(leader):
                continue
            if known.waits:
                if self._has_room(known.bundle):
                    found[run] = known.waits
                continue
            if now - known.looked < known.pause(self._pause):
                continue
            if known.basis is None:
                found[run] = ""
                continue
            left = left_range(known.basis, statistics)
            if known.needed and not self._moves.why_needed(live):
                found[run] = "no other query reads its rows any more"
            elif left:
                found[run] = str(left[0])
        return found

    def _has_room(self, bundle: FragmentBundle) -> bool:
        """Whether another move may begin; those that take the length of a window hold up no other.

        `bundle` is of a query that would move.
        """
        takes_time = when_alike(bundle).microseconds > 0
        alike = [move for move in self._moving.values() if (move.fills > 0) == takes_time]
        return len(alike) < MOST_MOVES

    async def _reconsider(self, reasons: Mapping[str, str]) -> None:
        """Make the plans of runs again; begin moves where other ones are worth it."""
        groups: dict[str, list[RunningQuery]] = {}
        for run in reasons:
            queries = [q for q in self._queries.runs.live(run) if q.id in self._queries]
            known = self._known.get(run)
            if queries and known is not None:
                known.looked, known.waits = self._now(), ""
                groups[run] = queries
        bundles = {run: self._known[run].bundle for run in groups}
        for run, found in (await self._reconsidered(groups)).items():
            known = self._known.get(run)
            if isinstance(found, FederationError):
                log.info("the plan of run %s is not made again: %s", run, found.message)
            elif known is not None and known.bundle is bundles[run]:
                await self._decide(known, groups[run], reasons[run], found)

    async def _reconsidered(
        self, groups: Mapping[str, Sequence[RunningQuery]]
    ) -> dict[str, Reconsidered | FederationError]:
        """Return what would be planned now; a run that takes too long keeps no other from it."""
        if not groups:
            return {}
        work = partial(
            reconsider_all, self._planner, groups, self._shared.settings.metric, self._fed
        )
        try:
            return await self._shared.beside.run(work, "looking at a plan again")
        except FederationError as error:
            if error.code != "statement_limit" or len(groups) == 1:
                return dict.fromkeys(groups, error)
        runs = tuple(groups)
        halves = (runs[: len(runs) // 2], runs[len(runs) // 2 :])
        first, second = ({run: groups[run] for run in half} for half in halves)
        return await self._reconsidered(first) | await self._reconsidered(second)

    async def _decide(
        self, known: KnownRun, queries: Sequence[RunningQuery], reason: str, found: Reconsidered
    ) -> None:
        """Decide whether the queries of a run take the plan that was found."""
        current = [q for q in queries if q.id in self._queries and q.bundle is known.bundle]
        if current and found.before is None and known.bundle.at_gateways:
            self._queries.has_old_plans = True  # gateways would have to keep too much of a table
        if not current or found.before is None:
            return  # it is planned for other sites or definitions by now
        changes = not found.planned.bundle.runs_as(known.bundle)
        why, movers = self._why_kept(found, current, changes=changes)
        if changes and not why and not self._has_room(found.planned.bundle):
            known.waits = reason or FIRST_LOOK
            return
        before, known.basis = known.basis, found.basis
        if before is None and not changes:
            return
        known.needed = why if movers else ""
        ids = frozenset(query.id for query in current)
        is_fixed = bool(when_alike(known.bundle).never) or ids <= set(found.fixed)
        known.fixed = ids if is_fixed else frozenset()
        decision = self._decided(current if why else movers, reason, found, why)
        if why:
            self._decisions.add(decision)
        else:
            await self._begin(decision, found, movers)

    def _fed(self, planned: Planned, left: str) -> FragmentBundle:
        """Return a plan with what runs of now would give a newer one, but for the one it leaves."""
        runs = self._queries.runs
        newer = max((*runs.all(), left), key=lambda run: (len(run), run)) + "+"
        return runs.fed_but_by(planned, newer, left)

    def _why_kept(
        self, found: Reconsidered, queries: Sequence[RunningQuery], *, changes: bool
    ) -> tuple[str, list[RunningQuery]]:
        """Return why queries keep their plan, in words, or those that move."""
        movers = [query for query in queries if query.id not in found.fixed]
        if not movers:
            return next(iter(found.fixed.values())), []
        if not changes:
            return "no other plan is much cheaper", []
        alike = when_alike(found.planned.bundle)
        stays = when_alike(queries[0].bundle).never or alike.never or _too_long(alike)
        if stays:
            return f"it cannot move: {stays}", []
        needed = self._moves.why_needed(movers)
        if needed:
            return needed, movers
        assert found.before is not None  # noqa: S101  (looked at by the caller)
        value, metric = found.weighing.value, found.weighing.metric
        before, after = (value(plan.cost) - value(plan.fed) for plan in (found.before, found.after))
        saved = (before - after) * HORIZON_SECONDS
        beside = alike.microseconds / MICROSECONDS  # both send meanwhile
        filling = value(found.filling) + after * beside
        if saved <= filling:
            unit = "bytes" if metric == BY_BYTES else f"by {metric}"
            return (
                f"filling the other plan takes {filling:,.0f} {unit}; it saves "
                f"{max(saved, 0):,.0f} in {HORIZON_SECONDS:.0f} s"
            ), []
        return "", movers

    def _decided(
        self, queries: Sequence[RunningQuery], reason: str, found: Reconsidered, why: str
    ) -> Decision:
        before = found.after if found.before is None else found.before
        return Decision(
            id=self._decisions.next_id(),
            ts=self._shared.clock(),
            queries=", ".join(query.id for query in queries),
            run=queries[0].run,
            reason=reason or FIRST_LOOK,
            outcome=Outcome.KEPT if why else Outcome.MOVING,
            detail=why or _begun(found, when_alike(found.planned.bundle).microseconds),
            plan_before=before.words,
            plan_after=found.after.words,
            bytes_before=before.cost.bytes,
            bytes_after=found.after.cost.bytes,
            measured_before=self._rate(queries[0]),
        )

    # --- moves --------------------------------------------------------------------------------

    async def _begin(
        self, decision: Decision, found: Reconsidered, movers: Sequence[RunningQuery]
    ) -> None:
        try:
            move = await self._moves.begin(found.planned, movers)
        except FederationError as error:
            said = {"outcome": Outcome.GIVEN_UP, "detail": error.message}
            self._decisions.add(msgspec.structs.replace(decision, **said))
            return
        if move is not None:
            self._decisions.add(decision)
            self._moving[decision.id] = move

    async def _go_on(self, number: int, move: Move) -> None:
        if not (move.failed or move.moved):
            self._moves.watch(move)
            move.failed = self._moves.why_not(move)
        if move.failed:
            self._close(number, move, outcome=Outcome.GIVEN_UP, detail=move.failed)
            await self._moves.give_up(move)
            del self._moving[number]
            known = self._known.get(move.run)
            if known is not None:
                known.looked, known.basis, known.tries = self._now(), None, known.tries + 1
            return
        moved = move.moved
        if not moved and self._may_look():
            if self._moves.is_ready(move):
                moved = await self._moves.complete(move)
            else:
                await self._moves.may_be_busy(move)
        if not moved:
            return
        del self._moving[number]
        said = "the queries read the new plan from then on; their answers did not change"
        self._close(number, move, outcome=Outcome.MOVED, detail=said)
        query, now = moved[0], self._now()
        self._known[query.run] = KnownRun.of(query, now)
        self._measured.append(Measuring(number, query.id, query.bundle, now, sent_bytes_of(query)))

    def _close(self, number: int, move: Move, **said: object) -> None:
        cost: Mapping[str, object] = {
            "switch_bytes": move.filled,
            "switch_seconds": round(move.seconds, 1),
        }
        self._decisions.change(number, **said, **cost)

    # --- what it brings -----------------------------------------------------------------------

    def _rate(self, query: RunningQuery) -> float | None:
        known = self._known.get(query.run)
        if known is None:
            return None
        return rate_since(known.counted[0], self._now(), sent_bytes_of(query))

    def _measure(self, now: int) -> None:
        """Fill in what moves have brought."""
        left = []
        for each in self._measured:
            query = self._queries.find(each.query)
            if query is None or query.bundle is not each.bundle:
                continue  # it has ended, or runs something else
            if now - each.since < MEASURED_SECONDS * 1_000_000:
                left.append(each)
                continue
            rate = rate_since((each.since, each.bytes), now, sent_bytes_of(query))
            self._decisions.change(each.decision, measured_after=rate)
        self._measured = left


def _too_long(alike: Alike) -> str:
    if alike.microseconds <= LONGEST_BESIDE:
        return ""
    return (
        f"its windows would take {duration_text(alike.microseconds)} to be filled, and no lake "
        "fills them"
    )


def _begun(found: Reconsidered, windows: int = 0) -> str:
    said = "the other plan is being filled"
    if windows:
        said += f", which takes {duration_text(windows)} because of its windows"
    if found.weighing.value(found.filling):
        return said
    return f"{said}; that has no price by {found.weighing.metric}: costing at most half suffices"
