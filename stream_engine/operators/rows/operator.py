"""What every operator is to its circuit.

An operator never sees the clock, never mutates a delta it is given, and may return a delta it
keeps no reference to. Deltas on one edge always add up to a relation (no negative weights), except
below a log whose producer withdrew rows it never sent.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.wire.messages import AnnotatedRow

MAX_ROUNDS = 32
"""Rounds of one change that are told apart; later ones are added to the last."""


class RoundTrace:
    """Counts rows that a recursion derives and deletes, per round of its last change and in all.

    A round may derive rows that the change deletes again, and delete rows that it derives again:
    only the sums over a change agree with what it does to the view.

    Attributes:
        last: (derived, deleted) per round of the last change that did anything.
    """

    __slots__ = ("_now", "deleted", "derived", "last")

    def __init__(self) -> None:
        self._now: list[tuple[int, int]] = []
        self.last: tuple[tuple[int, int], ...] = ()
        self.derived = 0
        self.deleted = 0

    def note(self, derived: int, deleted: int = 0) -> None:
        """Count a round."""
        self.derived += derived
        self.deleted += deleted
        if len(self._now) < MAX_ROUNDS:
            self._now.append((derived, deleted))
        else:
            before, gone = self._now[-1]
            self._now[-1] = (before + derived, gone + deleted)

    def end(self, come: int, gone: int) -> None:
        """Close a change.

        Args:
            come: Rows that entered the view.
            gone: Rows that left it; those that no round has counted left before the first.
        """
        derived = sum(round_[0] for round_ in self._now)
        deleted = sum(round_[1] for round_ in self._now)
        if gone > deleted:
            self.deleted += gone - deleted
            self._now.insert(0, (0, gone - deleted))
        if come > derived:  # an algorithm without rounds
            self.note(come - derived)
        if self._now:
            self.last, self._now = tuple(self._now), []


class Operator(Protocol):
    """An incremental operator over rows; its circuit calls it at most once a step and port."""

    def initial(self) -> Delta:
        """Return the output over empty inputs; called once, before anything else."""
        return {}

    def apply(self, port: int, delta: Delta) -> Delta:
        """Ingest the change of an input (`port` counts from 0); return the change of the output."""

    def state_rows(self) -> int:
        """Return how many rows it remembers."""
        return 0


class TimedOperator(Protocol):
    """An operator that reads a source with its event times.

    In a step the circuit calls `advance` first, then `apply_timed` if the source changed.
    """

    def advance(self, now: int) -> Delta:
        """Move the time; return what that changes. `now` never goes back."""

    def apply_timed(self, delta: TimedDelta) -> Delta:
        """Ingest the change of the source; return the change of the output."""

    def next_wakeup(self) -> int | None:
        """Return when `advance` will next change something, or None."""
        return None

    def state_rows(self) -> int:
        """Return how many rows it remembers."""
        return 0


class RecursiveMessage(Protocol):
    """What a fixpoint sends to the same fixpoint at another site."""

    @property
    def site(self) -> str:
        """The receiver."""

    @property
    def port(self) -> str:
        """The fixpoint's port there."""

    @property
    def annotated(self) -> tuple[AnnotatedRow, ...]:
        """Rows with their provenance; they count before the kills."""

    @property
    def kills(self) -> tuple[int, ...]:
        """Tokens of dead base rows."""


class WorkCounters(Protocol):
    """What a fixpoint counts; see `FixpointCounters` of `fixpoint_options`."""

    settles: int
    rounds: int
    derivations: int
    rederived: int
    received_rows: int
    sent_rows: int
    sent_kills: int
    recomputed: int
    trace: RoundTrace


class RecursiveOperator(Protocol):
    """A fixpoint: inputs are buffered, then run to quiescence at this site."""

    @property
    def counters(self) -> WorkCounters:
        """Work done since it began."""

    @property
    def description(self) -> str:
        """How it is maintained, for EXPLAIN ANALYZE: "absorption (dnf, lazy)"."""

    @property
    def leaves(self) -> tuple[Plan, ...]:
        """The distinct non-recursive subplans it reads; port i of `apply` is leaf i."""

    def apply(self, port: int, delta: Delta) -> None:
        """Buffer the change of a leaf."""

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has nothing left to do with what other sites have sent."""

    def settle(self, rounds: int | None = None) -> Delta:
        """Run until nothing changes locally; return the set-level change of the view.

        Args:
            rounds: Stop after that many rounds and keep the rest for the next call; for tests that
                count messages per round.

        Raises:
            RecursionLimitError: The view grew past its limit.
        """

    def receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        """Buffer what another site sent."""

    def drain(self) -> Sequence[RecursiveMessage]:
        """Return and discard what has to be sent to other sites."""

    def kill_site(self, site: str, epoch: int) -> None:
        """Declare dead what rests on a site's base rows of this epoch and earlier ones."""

    def state_rows(self) -> Iterable[Row]:
        """Return the rows of the view at this site."""


@runtime_checkable
class TimedRecursion(Protocol):
    """A fixpoint that sends some of what it has derived later, to send less of it.

    In a step the circuit calls `advance` before `settle`. The view never depends on the time.
    """

    def advance(self, now: int) -> None:
        """Move the time, in microseconds since 1970 UTC; it never goes back."""

    def next_wakeup(self) -> int | None:
        """Return when `settle` would send something although nothing came in, or None."""


@runtime_checkable
class ReplayableRecursion(Protocol):
    """A fixpoint that can tell another site from its state all it has to know."""

    def replay(self, site: str) -> Sequence[RecursiveMessage]:
        """Return messages that take the place of all that were sent to a site so far."""


class Sessions(ABC):
    """An operator that remembers sessions."""

    @abstractmethod
    def oldest(self) -> int | None:
        """Return where the oldest session that is remembered starts; None where there is none."""


class SessionRows(Sessions):
    """One that passes on the rows of sessions, with the bounds of their session."""


class WindowCloser(ABC):
    """An operator whose windows close with the watermark.

    Attributes:
        sessions: Those that are dropped with its windows, if its windows are sessions.
    """

    sessions: Sessions | None

    @property
    @abstractmethod
    def closed(self) -> int | None:
        """The watermark: windows that ended by then have closed. None before the first."""

    @abstractmethod
    def begin_after(self, watermark: int) -> None:
        """Count windows that ended by then as closed, without emitting them."""
