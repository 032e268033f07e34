"""The moves that are under way, and those whose benefit is counted.

Moves go on while plans are looked at: a look takes the time of planning.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from enum import Enum, auto

import msgspec

from federated_optimizer.coordinator.adaptation.begun_moves import Move, sent_bytes_of
from federated_optimizer.coordinator.adaptation.bundle_choice import sends_nothing
from federated_optimizer.coordinator.adaptation.contested_parts import is_contested
from federated_optimizer.coordinator.adaptation.filled_runs import when_alike
from federated_optimizer.coordinator.adaptation.known_runs import (
    MEASURED_SECONDS,
    KnownRun,
    Measuring,
    rate_since,
)
from federated_optimizer.coordinator.adaptation.leaving_together import Together
from federated_optimizer.coordinator.adaptation.moves import Moves
from federated_optimizer.coordinator.adaptation.over_others import plan_read
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.plan_decisions import Decision, Outcome
from streamsql.errors import FederationError
from streamsql.wire.fragments import FragmentBundle

MOST_MOVES = 2
"""Moves at the same time, and as many that take the length of a window: each lets the network do
some work twice."""
MOST_AT_BASE = 8
"""Moves at the same time for which gateways send nothing again: only base sites work twice."""


class _Kind(Enum):
    """Kinds of moves, which are counted apart."""

    SENDS = auto()
    AT_BASE = auto()
    WINDOWS = auto()

    @classmethod
    def of(cls, bundle: FragmentBundle) -> "_Kind":
        """Return the kind of a move to a bundle as a new run has it."""
        if when_alike(bundle).microseconds > 0:
            return cls.WINDOWS
        return cls.AT_BASE if bundle.feeds and sends_nothing(bundle) else cls.SENDS


class MovesUnderWay:
    """Begins moves, goes on with them, and says in their decisions what came of them.

    State: the moves by the number of their decision, and those whose benefit is counted.

    Args:
        shared: Catalog, lock and decisions.
        queries: All queries.
        moves: Deploys and changes over.
        known: Of each run; what is known of runs that queries leave or read is changed.
        clock: Microseconds, never back.
    """

    def __init__(
        self,
        shared: SharedParts,
        queries: Queries,
        moves: Moves,
        known: MutableMapping[str, KnownRun],
        clock: Callable[[], int],
    ) -> None:
        self._queries, self._moves, self._known, self._now = queries, moves, known, clock
        self._decisions = shared.decisions
        self._moving: dict[int, Move] = {}
        self._measured: list[Measuring] = []

    def all(self) -> tuple[Move, ...]:
        """Return the moves, the oldest first."""
        return tuple(self._moving.values())

    def numbers(self) -> frozenset[int]:
        """Return the numbers of their decisions."""
        return frozenset(self._moving)

    def runs(self, *, with_new: bool = False) -> set[str]:
        """Return the runs that are left, and with `with_new` those that are moved to, too."""
        found = {move.run for move in self.all()}
        return found | {move.trial.run for move in self.all()} if with_new else found

    def has_room(self, bundle: FragmentBundle) -> bool:
        """Return whether a query with this bundle may begin to move now.

        Moves that take as long as a window are counted apart, so that they hold up no other, and
        so are those for which nothing is sent again.
        """
        kind = _Kind.of(bundle)
        alike = [move for move in self.all() if _Kind.of(move.trial.bundle) == kind]
        return len(alike) < (MOST_AT_BASE if kind == _Kind.AT_BASE else MOST_MOVES)

    def is_contested(
        self, before: FragmentBundle, after: FragmentBundle, known: Collection[int]
    ) -> bool:
        """Return what `contested_parts.is_contested` says of these moves."""
        return is_contested(self._queries.runs, before, after, self._moving, known)

    async def begin(  # noqa: PLR0913 - what moves, and what it depends on
        self,
        known: KnownRun,
        decision: Decision,
        planned: Planned,
        movers: Sequence[RunningQuery],
        *,
        silently: bool = False,
        left: Collection[str] = (),
        earlier: tuple[Move, ...] = (),
    ) -> Move | None:
        """Begin a move; return it, or None if it has not begun. See `Moves.begin`."""
        try:
            move = await self._moves.begin(
                planned, movers, silently=silently, left=left, earlier=earlier
            )
        except FederationError as error:
            said = {"outcome": Outcome.GIVEN_UP, "detail": error.message}
            self._decisions.add(msgspec.structs.replace(decision, **said))
            known.basis, known.tries = None, known.tries + 1
            return None
        if move is not None:
            self._decisions.add(decision)
            self._moving[decision.id] = move
        return move

    async def begin_together(
        self, together: Together, moves: Iterable[tuple[KnownRun, Decision, Sequence[RunningQuery]]]
    ) -> None:
        """Begin the moves of all readers of a node; if one does not begin none comes about."""
        earlier: tuple[Move, ...] = ()
        for known, decision, movers in moves:
            planned = together.members[movers[0].run]
            move = await self.begin(
                known, decision, planned, movers, left=together.left, earlier=earlier
            )
            if move is None:
                for other in earlier:
                    other.failed = "another reader of the node could not begin to move"
                return
            self._decisions.change(decision.id, plan_after=plan_read(move.trial.bundle))
            earlier = (*earlier, move)

    async def work(self, may_change: Callable[[], bool]) -> None:
        """Go on with all; they change over only where `may_change` says so.

        Raises:
            FederationError: The catalog cannot be written for one of them; the others have gone on.
                It is tried again with the next call.
        """
        failed: FederationError | None = None
        for number, move in tuple(self._moving.items()):
            try:
                await self._go_on(number, move, may_change)
            except FederationError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def counts_came(self) -> None:
        """Complete moves for which counts that a site has just told are enough."""
        self._moves.counts_came(self._moving.values())

    async def _go_on(self, number: int, move: Move, may_change: Callable[[], bool]) -> None:
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
        if not moved and may_change():
            if self._moves.is_ready(move):
                moved = await self._moves.complete(move)
            else:
                await self._moves.may_be_busy(move)
        if not moved:
            return
        await self._moves.forget_nodes(move)
        del self._moving[number]
        said = f"the queries read run {moved[0].run} from then on; their answers did not change"
        self._close(number, move, outcome=Outcome.MOVED, detail=said)
        left = self._known.get(move.run)
        if left is not None:
            left.basis = None  # it was that of those who have moved
        query, now = moved[0], self._now()
        self._known[query.run] = KnownRun.of(query, now, self._queries.runs)
        self._measured.append(Measuring(number, query.id, query.bundle, now, sent_bytes_of(query)))

    def _close(self, number: int, move: Move, **said: object) -> None:
        cost: Mapping[str, object] = {
            "switch_bytes": move.filled,
            "switch_seconds": round(move.seconds, 1),
        }
        self._decisions.change(number, **said, **cost)

    # --- what they bring ----------------------------------------------------------------------

    def rate(self, query: RunningQuery) -> float | None:
        """Return the bytes a second that the sites of a query's run send; None: not known."""
        known = self._known.get(query.run)
        if known is None:
            return None
        return rate_since(known.counted[0], self._now(), sent_bytes_of(query))

    def measure(self, now: int) -> None:
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
