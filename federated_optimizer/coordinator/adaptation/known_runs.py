"""Knowledge of each run whose plan is looked after: when it was looked at, and what it has sent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from federated_optimizer.coordinator.adaptation.moves import sent_bytes_of
from federated_optimizer.coordinator.adaptation.plan_basis import Basis
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.shared_runs import SharedRuns
from streamsql.wire.fragments import FragmentBundle

LONGEST_PAUSE = 3_600_000_000
"""Microseconds until a move is tried again that was given up several times."""
MEASURED_SECONDS = 60.0
"""Time after a move in which the bytes are counted that it has brought."""
LEAST_SECONDS = 10.0
"""Bytes counted for less time say nothing."""


@dataclass(slots=True)
class KnownRun:
    """Knowledge of a run.

    Attributes:
        bundle: As it was looked at.
        looked: When its plan was last made again.
        counted: When its bytes were read, and how many there were: the last two times.
        basis: What its plan rests on; None: nobody has looked, or a move was given up.
        tries: Moves that were given up: the time until the next one doubles.
        needed: Why it has to stay, as `Moves.why_needed` says.
        fixed: Its queries if none of them may ever move.
        waits: Why it is looked at again as soon as there is room for another move; or empty.
    """

    bundle: FragmentBundle
    looked: int
    counted: tuple[tuple[int, int], tuple[int, int]]
    basis: Basis | None = None
    tries: int = 0
    needed: str = ""
    fixed: frozenset[str] = frozenset()
    waits: str = ""

    @classmethod
    def of(cls, query: RunningQuery, now: int) -> "KnownRun":
        """Return what is known of the run of a query at first."""
        counted = (now, sent_bytes_of(query))
        return cls(query.bundle, now, (counted, counted))

    def count(self, now: int, sent: int) -> None:
        """Note the bytes that were sent, once a minute."""
        if now - self.counted[1][0] >= MEASURED_SECONDS * 1_000_000:
            self.counted = (self.counted[1], (now, sent))

    def pause(self, least: int) -> int:
        """Return the time until its plan may be made again."""
        return min(least << min(self.tries, 10), max(LONGEST_PAUSE, least))


@dataclass(frozen=True, slots=True)
class Measuring:
    """A move whose benefit is being counted."""

    decision: int
    query: str
    bundle: FragmentBundle
    since: int
    bytes: int


def looked_after(runs: SharedRuns) -> Mapping[str, RunningQuery]:
    """Return a query of each run whose plan may change: no trials, nothing that has failed."""
    tried = {trial.id for trial in runs.tried()}
    leaders: Iterable[RunningQuery] = filter(None, map(runs.leader, runs.all()))
    return {
        query.run: query
        for query in leaders
        if query.id not in tried and query.gathered and not query.has_failed
    }


def is_quiet(query: RunningQuery) -> bool:
    """Whether a query runs, with nothing missing and nothing held back."""
    result = query.result
    is_shown = not (result.held or result.is_partial)
    return is_shown and query.started and query.current_status() == QueryStatus.RUNNING


def rate_since(counted: tuple[int, int], now: int, sent: int) -> float | None:
    """Return bytes a second; None: counted for too short, or a site counts from 0 again."""
    since, before = counted
    seconds = (now - since) / 1_000_000
    if seconds < LEAST_SECONDS or sent < before:
        return None
    return (sent - before) / seconds
