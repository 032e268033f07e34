"""Running queries by their text, however its words are spaced."""

from federated_optimizer.coordinator.queries.running_queries import RunningQuery


class QueriesByText:
    """Index of the queries of each text, oldest first."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, ...], dict[str, RunningQuery]] = {}

    def find(self, text: str) -> RunningQuery | None:
        """Return a query of a text, however its words are spaced; None: there is none."""
        return next(iter(self._of.get(_words(text), {}).values()), None)

    def add(self, query: RunningQuery) -> None:
        """Note a query."""
        self._of.setdefault(_words(query.text), {})[query.id] = query

    def discard(self, query: RunningQuery) -> None:
        """Let a query go; nothing happens when it is not there."""
        words = _words(query.text)
        known = self._of.get(words, {})
        known.pop(query.id, None)
        if not known:
            self._of.pop(words, None)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())
