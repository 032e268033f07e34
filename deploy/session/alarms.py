"""Alarms of a local session: looked at after every statement that changes rows or time."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from federated_optimizer.alarm_book import AlarmBook
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.notices import AlarmDefinition
from streamsql.data.delta import Delta
from streamsql.errors import InternalError
from streamsql.syntax import Query, parse_statement

if TYPE_CHECKING:
    from federated_optimizer.coordinator.contract.coordinator_model import AlarmInfo

Answer = Callable[[BoundQuery], Delta]


class LocalAlarms:
    """The books of a session's alarms.

    A script's time stands still between its statements: a row that is there after two of them has
    been there all the while.
    """

    def __init__(self) -> None:
        self._books: dict[str, AlarmBook] = {}
        self._next = 0

    def follow(self, definition: AlarmDefinition) -> None:
        """Begin with an alarm."""
        self._books[definition.name] = AlarmBook(definition, self._number)

    def forget(self, name: str) -> None:
        """Forget an alarm and all its rows."""
        self._books.pop(name, None)

    def look(self, catalog: Catalog, answer: Answer, now: int) -> None:
        """Take in the answers as they are now."""
        for book in self._books.values():
            relation = answer(bind_query(_query(book.definition), catalog))
            book.meet(relation, now)

    def infos(self, catalog: Catalog) -> "tuple[AlarmInfo, ...]":
        """Return all alarms as lists show them."""
        return tuple(self._info(book, catalog) for book in self._books.values())

    def _info(self, book: AlarmBook, catalog: Catalog) -> "AlarmInfo":
        # Imported here because the coordinator loads a database library, which scripts do not need.
        from federated_optimizer.coordinator.contract.coordinator_model import alarm_info  # noqa: PLC0415

        return alarm_info(book, bind_query(_query(book.definition), catalog).schema)

    def _number(self) -> int:
        self._next += 1
        return self._next


def _query(definition: AlarmDefinition) -> Query:
    statement = parse_statement(definition.query)
    if not isinstance(statement, Query):
        raise InternalError(f"alarm {definition.name} has no query")
    return statement
