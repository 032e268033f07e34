"""Statuses of running queries: when results are released, and what readers are told of them."""

from collections.abc import Callable, Iterator
from itertools import islice

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from host.clocks import monotonic_clock
from streamsql.errors import FederationError, RecursionRoundsError

SWEEP = 20
"""Looks in which every run is looked at, whether or not something has happened to it."""

MOST_SWEPT = 25
"""Runs of these that one look takes up at most: with more runs a sweep takes more looks."""

AT_ONCE = 200
"""Runs that are looked at in one turn of the event loop: some 20 ms."""

MOST_WAITING = 500
"""Runs that one look takes up at most because time passes for them: all, while they are so few."""

_SETTLING = frozenset({QueryStatus.RUNNING, QueryStatus.DEGRADED})


class StatusRefresh:
    """Looks at queries after something happened to a site or time has passed.

    State: the runs to be looked at. Those at rest are left out, so that a look costs what the
    others cost: nothing is on its way in them, and all that changes this calls `of_run` or `all`.

    Args:
        fail: Stops a query for a reason of ours.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        runs: SharedRuns,
        fail: Callable[[RunningQuery, FederationError], None],
    ) -> None:
        self._settings = settings
        self._runs = runs
        self._fail = fail
        self._restless: dict[str, None] = {}  # those looked at last come last
        self._due: dict[str, None] = {}
        self._sweep: list[str] = []
        self._are_all_due = False

    def all(self) -> None:
        """Refresh every query, of many runs most with the next look: something has happened."""
        self._are_all_due = True
        self.begin_look()
        self.go_on()

    def all_due(self) -> None:
        """Refresh every query with the next look."""
        self._are_all_due = True

    def note(self, run: str) -> None:
        """Refresh a run, and those that read its rows, with the next look."""
        for each in (run, *(reader.run for reader in self._runs.fed_by(run))):
            self._restless[each] = self._due[each] = None

    def begin_look(self) -> None:
        """Begin to refresh what something happened to, or for which time matters; see `go_on`."""
        entered = dict.fromkeys(self._runs.entered)
        self._runs.entered.clear()
        if self._are_all_due:
            self._are_all_due, self._sweep = False, []
            self._due.update(dict.fromkeys(self._runs.names()))
        else:
            self._sweep = self._sweep or list(self._runs.names())
            part = min(1 + len(self._runs.names()) // SWEEP, MOST_SWEPT)
            self._due.update((self._sweep.pop(), None) for _ in range(min(part, len(self._sweep))))
        self._due.update(entered)
        self._due.update(dict.fromkeys(islice(self._restless, MOST_WAITING)))

    def go_on(self) -> bool:
        """Refresh some of the runs that are due; return whether there are more."""
        for run in tuple(islice(self._due, AT_ONCE)):
            del self._due[run]
            self._restless.pop(run, None)
            self.of_run(run)
            if self._is_at_rest(run):
                self._restless.pop(run, None)
        return bool(self._due)

    def restless(self) -> Iterator[RunningQuery]:
        """Yield a query of each run that is not known to be at rest."""
        runs = tuple(self._restless | self._due)
        return filter(None, map(self._runs.leader, runs))

    def _is_at_rest(self, run: str) -> bool:
        """Return whether nothing is on its way in a run, and nobody waits to be told so."""
        answers = self._runs.answers.of(run)
        if len(answers) > 1:
            return False
        for answer in answers:
            query = self._runs.answers.speaker(answer)
            if query is None:
                continue
            is_shown = not (answer.held or answer.is_partial)
            # What a degraded one lacks comes with an event; of a failed one nothing comes.
            has_settled = query.status == QueryStatus.FAILED or (
                query.status in _SETTLING and query.is_settled()
            )
            if not (is_shown and has_settled):
                return False
            if any(reader.result.tells_progress for reader in self._runs.answers.watched(answer)):
                return False
        return True

    def of_run(self, run: str) -> None:
        """Refresh the queries of a run."""
        self._restless[run] = None
        answers = self._runs.answers.of(run)
        for answer in answers:
            self.of_answer(answer)
        for answer in answers[1:]:
            answer.merge_into(answers[0])

    def of_answer(self, answer: RunAnswer) -> None:
        """Refresh the queries that show an answer.

        All have one status. So one is looked at, those that are watched, and all if it is new.
        """
        speaker = self._runs.answers.speaker(answer)
        if speaker is None:
            return
        self._restless[speaker.run] = None
        before = speaker.status
        self.of(speaker)
        is_new = speaker.status != before
        others = (
            tuple(self._runs.answers.showing(answer))
            if is_new
            else self._runs.answers.watched(answer)
        )
        for query in others:
            if query is not speaker:
                self.of(query)

    def of(self, query: RunningQuery) -> None:
        """Release a held result when it is time, and tell readers about a new status."""
        result = query.result
        if result.held and self._may_release(query):
            result.release(is_partial=not query.has_arrived())
        elif result.is_partial and query.has_arrived():
            result.is_partial = False
        self._check_rounds(query)
        status = query.current_status()
        if status != query.status:
            if QueryStatus.FAILED in (status, query.status):
                self._runs.changes += 1  # lists leave out those that have failed
            query.status = status
            query.result.announce(status, query.error)
        if query.result.wants_progress and query.is_settled():
            query.result.tell_progress()

    def _may_release(self, query: RunningQuery) -> bool:
        waited = monotonic_clock() - query.result.held_since >= self._settings.switch * 1_000_000
        return query.result.is_synchronised and (waited or query.has_arrived())

    def _check_rounds(self, query: RunningQuery) -> None:
        """Stop a query whose settled answer needs more rounds than it allows.

        Before it is settled, base rows or derivations that are on their way may need fewer.
        """
        beyond = next(query.flows.beyond_rounds(), None)
        if beyond is None or self._settings.host in query.problems:
            return
        if query.is_settled():
            self._fail(query, RecursionRoundsError.of(beyond.name, beyond.allowed))
