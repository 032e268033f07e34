"""Knowledge of each run whose plan is looked after: when it was looked at, and what it has sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from federated_optimizer.coordinator.adaptation.begun_moves import sent_bytes_of
from federated_optimizer.coordinator.adaptation.decision_rows import FIRST_LOOK
from federated_optimizer.coordinator.adaptation.plan_basis import Basis
from federated_optimizer.coordinator.adaptation.reconsidered import Reconsidered
from federated_optimizer.coordinator.computations.run_nodes import number_of
from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.read_parts import Part, only_reads
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.network.run_ages import age_of
from streamsql.wire.fragments import FragmentBundle

LONGEST_PAUSE = 3_600_000_000
"""Microseconds until a move or a look is tried again that has failed several times."""
MEASURED_SECONDS = 60.0
"""Time after a move in which the bytes are counted that it has brought."""
_READS_THE_SAME = "reads a source of it"
LEAST_SECONDS = 10.0
"""Bytes counted for less time say nothing."""


@dataclass(frozen=True, slots=True)
class OwnLook:
    """A look that queries of one text still need, as one at others of their run said nothing.

    Attributes:
        reason: Why their run was looked at.
        again: Time before which they are left out.
        failed: Looks in a row that failed.
    """

    reason: str
    again: int
    failed: int = 0


@dataclass(slots=True)
class Company:
    """The parts of nodes that only one run reads: they are sent and computed for it alone.

    So it may do better without.

    Attributes:
        alone: As it was looked at.
        why: Why it is to be looked at again: queries that read one have left; or empty.
    """

    alone: frozenset[Part] = frozenset()
    why: str = ""
    _changes: int = -1

    def see(self, runs: SharedRuns, query: RunningQuery) -> None:
        """Note how it is now."""
        self.alone, self.why, self._changes = only_reads(runs, query), "", runs.changes

    def left(self, runs: SharedRuns, query: RunningQuery) -> str:
        """Return why its run is to be looked at again, in words; empty: it is not left alone.

        Work: that of the nodes that it reads, if any run has changed since.
        """
        if self._changes != runs.changes:
            self._changes = runs.changes
            new = sorted(only_reads(runs, query) - self.alone, key=_by_age)
            self.why = f"nobody else reads {_named(runs, new[0])} any more" if new else ""
        return self.why


def _by_age(part: Part) -> tuple[tuple[int, str], str]:
    return age_of(part[0]), part[1]


def _named(runs: SharedRuns, part: Part) -> str:
    """Return the name of a node of which nobody else reads anything, or of a part of one."""
    run, fragment = part
    whole = len(runs.fed.readers(run)) == 1
    return f"node {number_of(run)}" if whole else f"node {number_of(run)}/{fragment}"


@dataclass(slots=True)
class KnownRun:
    """Knowledge of a run.

    Attributes:
        bundle: As it was looked at.
        looked: When its plan was last made again.
        counted: When its bytes were read, and how many there were: the last two times.
        basis: What its plan rests on; None: nobody has looked, a move was given up, or some of its
            queries move away.
        tries: Moves that were given up: the time until the next one doubles.
        needed: Why it has to stay, as `Moves.why_needed` says.
        fixed: Its queries if none of them may ever move.
        waits: Why it is looked at again as soon as there is room for another move; or empty.
        wanted: For what it waits: the bundle that it would have.
        own: Looks that some of its queries still need, by their text.
        newest: The newest run that there was when it was looked at.
        company: Which nodes only it read then.
    """

    bundle: FragmentBundle
    looked: int
    counted: tuple[tuple[int, int], tuple[int, int]]
    basis: Basis | None = None
    tries: int = 0
    needed: str = ""
    fixed: frozenset[str] = frozenset()
    waits: str = ""
    wanted: FragmentBundle | None = None
    own: dict[str, OwnLook] = field(default_factory=dict)
    newest: str = ""
    company: Company = field(default_factory=Company)

    @classmethod
    def of(cls, query: RunningQuery, now: int, runs: SharedRuns) -> "KnownRun":
        """Return what is known of the run of a query at first."""
        counted = (now, sent_bytes_of(query))
        found = cls(query.bundle, now, (counted, counted))
        found.company.see(runs, query)
        return found

    def count(self, now: int, sent: int) -> None:
        """Note the bytes that were sent, once a minute."""
        if now - self.counted[1][0] >= MEASURED_SECONDS * 1_000_000:
            self.counted = (self.counted[1], (now, sent))

    def pause(self, least: int) -> int:
        """Return the time until its plan may be made again."""
        return doubled(least, self.tries)

    @property
    def has_failed(self) -> bool:
        """Whether the last look at some of its queries failed: the next one may, too."""
        return any(own.failed for own in self.own.values())

    def next_own(self, queries: Iterable[RunningQuery], now: int) -> OwnLook | None:
        """Return a look that some of its present queries need now."""
        texts = {query.text for query in queries}
        self.own = {text: own for text, own in self.own.items() if text in texts}
        return next((own for own in self.own.values() if own.again <= now), None)

    def begin_look(
        self, queries: Iterable[RunningQuery], now: int, pause: int
    ) -> list[RunningQuery]:
        """Return the queries to look at now: first those that need a look of their own."""
        left = [q for q in queries if q.text not in self.own or self.own[q.text].again <= now]
        left.sort(key=lambda query: query.text not in self.own)
        if left:
            self.looked, self.waits = now, ""
            own = self.own.get(left[0].text)
            if own is not None:  # not at once again, whatever comes of it
                self.own[left[0].text] = replace(own, again=now + pause)
        return left

    @staticmethod
    def is_routine(reason: str) -> bool:
        """Return whether a look for a reason is worth a row only if it finds another plan."""
        return reason in ("", FIRST_LOOK) or reason.endswith(_READS_THE_SAME)

    def see(self, runs: SharedRuns, query: RunningQuery) -> None:
        """Note up to which run its plan has been compared with what others compute.

        `query` is one of its own.
        """
        self.company.see(runs, query)
        tried = {trial.run for trial in runs.tried()}
        self.newest = max((run for run in runs.names() if run not in tried), key=age_of, default="")

    def others(self, runs: SharedRuns, query: RunningQuery) -> str:
        """Return why other runs are a reason to look at its plan again; empty: they are none.

        `query` is one of its own. A newer run reads a source of it, or nobody else reads a node.
        """
        run = runs.newest.beside(query)
        if age_of(run) > age_of(self.newest):
            return f"run {run} {_READS_THE_SAME}"
        return self.company.left(runs, query)

    def look_failed(self, text: str, reason: str, now: int, pause: int) -> None:
        """Leave queries out of looks for a while that doubles each time."""
        own = self.own.get(text)
        failed = 1 if own is None else own.failed + 1
        self.own[text] = OwnLook(reason, now + doubled(pause, failed), failed)

    def note_look(
        self, found: Reconsidered, queries: Sequence[RunningQuery], reason: str, now: int
    ) -> None:
        """Note what the choice rests on, and which queries it says nothing of."""
        is_own = found.planned.bundle.text in self.own
        for query in queries:
            if query.id not in found.apart:
                self.own.pop(query.text, None)
            elif not is_own:
                self.own.setdefault(query.text, OwnLook(reason, now))
        if not is_own or not (found.apart or self.own):
            self.basis = found.basis
        elif self.basis is not None:
            # Facts may have changed since the others were looked at.
            self.basis = {**found.basis, **self.basis}


def doubled(pause: int, times: int) -> int:
    """Return a pause that doubles each time, up to an hour."""
    return min(pause << min(times, 10), max(LONGEST_PAUSE, pause))


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
        if query.id not in tried
        and query.origin != Origin.NODE  # its readers would begin anew
        and query.gathered
        and not query.has_failed
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
