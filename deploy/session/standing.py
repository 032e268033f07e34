"""Alarms and views of REFRESH AT in a local session, updated when rows or time change."""

import itertools
from collections import Counter
from collections.abc import Callable

from deploy.session.history import History
from federated_optimizer.alarm_life_cycle import AlarmBook
from federated_optimizer.coordinator.contract.coordinator_model import AlarmInfo, alarm_info
from federated_optimizer.coordinator.contract.refresh_text import Refreshes
from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.catalog.refresh_times import next_refresh, zone_of
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.errors import InternalError
from streamsql.reference.reference_database import contents
from streamsql.syntax import parse_statement
from streamsql.wire.site_messages import RefreshState

ZONE = "UTC"


class StandingDefinitions:
    """Alarms and refreshed views, oldest first: what a view reads is refreshed before it.

    A script's time stands still between its statements. A row that is there after two of them has
    been there throughout; of several refresh times that one statement passes only the last counts.

    Args:
        catalog: What their queries read.
        history: Records the rows of a refresh, as changes of a table.
        answer: Returns the relation of a query at the end of the history.
    """

    def __init__(
        self, catalog: Catalog, history: History, answer: Callable[[BoundQuery], Delta]
    ) -> None:
        self._catalog = catalog
        self._history = history
        self._answer = answer
        self._refreshes: dict[str, RefreshState] = {}
        self._books: dict[str, AlarmBook] = {}
        self._numbers = itertools.count(1)

    @property
    def refreshes(self) -> Refreshes:
        """When each view was refreshed and will be."""
        return Refreshes(self._refreshes, ZONE)

    def alarms(self) -> tuple[AlarmInfo, ...]:
        """Return all alarms as lists show them."""
        return tuple(
            alarm_info(book, self._bound(book.definition.query).schema)
            for book in self._books.values()
        )

    def begin(self, definition: Definition) -> None:
        """Compute an alarm or a refreshed view for the first time; ignore other definitions.

        Raises:
            FederationError: It cannot be computed, and is not followed.
        """
        if isinstance(definition, AlarmDefinition):
            book = AlarmBook(definition, self._numbers.__next__)
            self._meet(book)
            self._books[definition.name] = book
        elif isinstance(definition, SourceDefinition) and definition.refresh is not None:
            self.refresh(definition)

    def discard(self, name: str) -> None:
        """Stop following a definition, if it is followed."""
        self._books.pop(name, None)
        self._refreshes.pop(name, None)

    def update(self) -> None:
        """Refresh the views that are due, and compare the alarms with the answers as they are now.

        Raises:
            FederationError: One of them cannot be computed.
        """
        for view, state in tuple(self._refreshes.items()):
            if state.next is not None and state.next <= self._history.now:
                definition = self._catalog.find(view)
                if not isinstance(definition, SourceDefinition):
                    raise InternalError(f"view {view} is not in the catalog")
                self.refresh(definition)
        for book in self._books.values():
            self._meet(book)

    def refresh(self, view: SourceDefinition) -> int:
        """Compute a view, record what has changed, and return its number of rows.

        Raises:
            FederationError: It cannot be computed; the old rows stay.
        """
        if view.refresh is None:
            raise InternalError(f"{view.name} has no query")
        now = self._history.now
        rows = self._answer(self._bound(view.refresh.query))
        missing = Counter(rows)
        events = []
        for ts, row in contents(view.scan(), self._history.database, now):
            if missing[row] > 0:
                missing[row] -= 1
            else:
                events.append(SourceEvent(row, ts, delete=True))
        events += [SourceEvent(row, now) for row in missing.elements()]
        if events:
            self._history.record(view.name, tuple(events))
        count = sum(rows.values())
        due = next_refresh(now, view.refresh.times, zone_of(ZONE))
        self._refreshes[view.name] = RefreshState(view.name, now, due, rows=count)
        return count

    def _meet(self, book: AlarmBook) -> None:
        book.meet(self._answer(self._bound(book.definition.query)), self._history.now)

    def _bound(self, text: str) -> BoundQuery:
        return bind_query(query_of(parse_statement(text)), self._catalog)
