"""Session queries live as long as somebody reads them."""

from collections import OrderedDict
from collections.abc import Iterable

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.queries.background_work import HOUSEKEEPING_SECONDS
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from host.clocks import monotonic_clock

_REMEMBERED = 1_000
_LATE = int(4 * HOUSEKEEPING_SECONDS * 1_000_000)
"""Time between two looks after which this process has been held up, and readers with it."""


class UnreadQueries:
    """Finds the session queries that nobody reads any more, and remembers why they ended."""

    def __init__(self, settings: CoordinatorSettings) -> None:
        self._settings = settings
        self._looked = monotonic_clock()
        self._ended: OrderedDict[str, str] = OrderedDict()

    def read(self, query: RunningQuery) -> None:
        """Note a reader."""
        query.unread_since, query.ever_read = None, True

    def left(self, query: RunningQuery) -> None:
        """Note that the last reader has gone."""
        if query.origin == Origin.SESSION:
            query.unread_since = monotonic_clock()

    def keep(self, query: RunningQuery) -> None:
        """Wait for a reader as long as if the query had just been started."""
        if query.unread_since is not None:
            query.unread_since, query.ever_read = monotonic_clock(), False

    def abandoned(self, queries: Iterable[RunningQuery]) -> list[RunningQuery]:
        """Return those that nobody has read for too long; they are to be stopped.

        Time in which this process was held up does not count: it could not have heard a reader.
        """
        now = monotonic_clock()
        held_up = now - self._looked
        self._looked = now
        found = []
        for query in queries:
            if query.unread_since is None:
                continue
            if held_up > _LATE:
                query.unread_since = min(now, query.unread_since + held_up)
            seconds = self._settings.session_grace if query.ever_read else self._settings.unread
            if now - query.unread_since >= seconds * 1_000_000:
                found.append(query)
                self._remember(query, f"it had no reader for {seconds:g} s")
        return found

    def why_ended(self, name: str) -> str:
        """Return why a query ended that was not read, or nothing."""
        return self._ended.get(name, "")

    def _remember(self, query: RunningQuery, why: str) -> None:
        self._ended[query.id] = f"query {query.id} was stopped: {why}"
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
