"""Index of the answers of runs, and of the queries that show one."""

from collections.abc import Iterable, Iterator, Mapping

from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer
from federated_optimizer.coordinator.queries.running_queries import RunningQuery


class AnswerIndex:
    """The answers that queries show, by run.

    Args:
        readers: The queries of each run, by id; changes with them.
    """

    def __init__(self, readers: Mapping[str, Mapping[str, RunningQuery]]) -> None:
        self._readers = readers
        self._answers: dict[str, dict[RunAnswer, None]] = {}

    def enter(self, query: RunningQuery) -> None:
        """Note that a query reads a run."""
        self._answers.setdefault(query.run, {})[query.result.answer] = None

    def forget(self, run: str) -> None:
        """Discard a run that nobody reads."""
        self._answers.pop(run, None)

    def of(self, run: str) -> tuple[RunAnswer, ...]:
        """Return the answers that queries show which read a run: one, but amid redeployments."""
        known = self._answers.get(run, {})
        gone = [a for a in known if not a.is_live or a.bundle.query != run]
        for answer in gone:
            del known[answer]
        return tuple(known)

    def speaker(self, answer: RunAnswer) -> RunningQuery | None:
        """Return a query that stands for all that show an answer."""
        return next(self.showing(answer), None)

    def showing(self, answer: RunAnswer) -> Iterator[RunningQuery]:
        """Yield the queries that show an answer and go on."""
        return self._named(answer, answer.live())

    def watched(self, answer: RunAnswer) -> tuple[RunningQuery, ...]:
        """Return those of them that somebody watches."""
        return tuple(self._named(answer, answer.watched()))

    def _named(self, answer: RunAnswer, ids: Iterable[str]) -> Iterator[RunningQuery]:
        readers = self._readers.get(answer.bundle.query, {})
        return (readers[query_id] for query_id in ids if query_id in readers)
