"""Statuses of running queries: when results are released, and what readers are told of them."""

from collections.abc import Callable, Iterator

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from host.clocks import monotonic_clock
from streamsql.errors import FederationError, RecursionRoundsError

SWEEP = 20
"""Looks in which every run is looked at, whether or not something has happened to it."""


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
        self._restless: set[str] = set()
        self._sweep: list[str] = []
        self._are_all_due = False

    def all(self) -> None:
        """Refresh every query: something happened to a site."""
        self._are_all_due = True
        self.look()

    def all_due(self) -> None:
        """Refresh every query with the next look."""
        self._are_all_due = True

    def note(self, run: str) -> None:
        """Refresh a run, and those that read its rows, with the next look."""
        self._restless.update((run, *(reader.run for reader in self._runs.fed_by(run))))

    def look(self) -> None:
        """Refresh the queries to which something happened, or for which time matters."""
        self._restless |= self._runs.entered
        self._runs.entered.clear()
        if self._are_all_due:
            self._are_all_due, self._sweep = False, []
            self._restless.update(self._runs.names())
        else:
            self._sweep = self._sweep or list(self._runs.names())
            part = 1 + len(self._runs.names()) // SWEEP
            self._restless.update(self._sweep[-part:])
            del self._sweep[-part:]
        for run in tuple(self._restless):
            self.of_run(run)
            if self._is_at_rest(run):
                self._restless.discard(run)

    def restless(self) -> Iterator[RunningQuery]:
        """Yield a query of each run that is not known to be at rest."""
        return filter(None, map(self._runs.leader, tuple(self._restless)))

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
            if not (is_shown and query.status == QueryStatus.RUNNING and query.is_settled()):
                return False
            if any(reader.result.tells_progress for reader in self._runs.answers.watched(answer)):
                return False
        return True

    def of_run(self, run: str) -> None:
        """Refresh the queries of a run."""
        self._restless.add(run)
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
        self._restless.add(speaker.run)
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
