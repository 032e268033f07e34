"""Views of REFRESH AT in a local session: refreshed when its time has passed one of theirs."""

from collections import Counter
from collections.abc import Callable

from deploy.session.history import History
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refreshes import next_refresh, zone_of
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.errors import InternalError
from streamsql.reference.database import contents
from streamsql.syntax import Query, parse_statement
from streamsql.wire.site_messages import RefreshState

Answer = Callable[[BoundQuery], Delta]
ZONE = "UTC"


class LocalRefreshes:
    """The views of a session, oldest first: what a view reads is refreshed before it.

    A script's time stands still between its statements, so of several times that one statement
    passes only the last one shows.

    Args:
        history: Where the rows of a refresh are recorded, as changes of a table.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._states: dict[str, RefreshState] = {}

    @property
    def states(self) -> dict[str, RefreshState]:
        """When each view was refreshed and will be."""
        return self._states

    def forget(self, name: str) -> None:
        """Forget a view."""
        self._states.pop(name, None)

    def look(self, catalog: Catalog, answer: Answer) -> None:
        """Refresh the views whose time has come."""
        for view, state in tuple(self._states.items()):
            definition = catalog.find(view)
            if state.next is not None and state.next <= self._history.now:
                if not isinstance(definition, SourceDefinition):
                    raise InternalError(f"view {view} is not in the catalog")
                self.refresh(definition, catalog, answer)

    def refresh(self, definition: SourceDefinition, catalog: Catalog, answer: Answer) -> int:
        """Compute a view, record what has changed, and return how many rows it has.

        Raises:
            FederationError: It cannot be computed; the old rows stay.
        """
        schedule = definition.refresh
        query = parse_statement(schedule.query) if schedule is not None else None
        if schedule is None or not isinstance(query, Query):
            raise InternalError(f"{definition.name} has no query")
        now = self._history.now
        rows = answer(bind_query(query, catalog))
        missing = Counter(rows)
        events = []
        for ts, row in contents(definition.scan(), self._history.database, now):
            if missing[row] > 0:
                missing[row] -= 1
            else:
                events.append(SourceEvent(row, ts, delete=True))
        events += [SourceEvent(row, now) for row in missing.elements()]
        if events:
            self._history.record(definition.name, tuple(events))
        count = sum(rows.values())
        due = next_refresh(now, schedule.times, zone_of(ZONE))
        self._states[definition.name] = RefreshState(definition.name, now, due, rows=count)
        return count
