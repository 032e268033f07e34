"""UPDATE and MERGE in a local script: rows of a table go, others come, at one instant."""

from deploy.session.history import History
from streamsql.algebra.row_changes import MergeError, RowChange, merged_rows, updated_rows
from streamsql.binder import BoundInsert, bind_merge, bind_update
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import BindingError, UnsupportedError
from streamsql.reference import evaluate
from streamsql.reference.reference_database import contents
from streamsql.syntax import Insert, Merge, Update


def changed_table(statement: Update | Merge, catalog: Catalog, history: History) -> int:
    """Change a table of a local script; return how many rows.

    Raises:
        FederationError: The statement is wrong, or names a source: its readings only come.
    """
    if isinstance(statement, Update):
        update = bind_update(statement, catalog)
        definition = _table(update.definition, statement)
        changes = list(updated_rows(_rows(definition, history), update.predicate, update.values))
    else:
        merge = bind_merge(statement, catalog)
        definition = _table(merge.definition, statement)
        given = list(expand(evaluate(merge.rows, history.database, history.now)))
        try:
            changes = list(merged_rows(_rows(definition, history), given, merge.merge))
        except MergeError as error:
            raise BindingError(str(error), span=statement.span, code="change_failed") from error
    history.record(definition.name, _events(changes, history.now))
    return len(changes)


def inserted_rows(bound: BoundInsert, statement: Insert, history: History) -> tuple[Row, ...]:
    """Return the rows that an INSERT into a source or table of a local script adds.

    Raises:
        UnsupportedError: Rows of a query, for a source: those only go into tables.
    """
    if bound.query is None:
        return bound.rows
    _table(bound.definition, statement)
    return tuple(expand(evaluate(bound.query, history.database, history.now)))


def _table(definition: SourceDefinition, statement: Insert | Update | Merge) -> SourceDefinition:
    if definition.is_table:
        return definition
    raise UnsupportedError(
        f"{definition.name} is a source: its readings are not changed",
        span=statement.source.span,
        hint="INSERT a reading with VALUES: it replaces an older one of the same key",
        code="not_writable",
    )


def _rows(definition: SourceDefinition, history: History) -> list[Row]:
    return [row for _ts, row in contents(definition.scan(), history.database, history.now)]


def _events(changes: list[RowChange], now: int) -> tuple[SourceEvent, ...]:
    gone = [SourceEvent(old, now, delete=True) for old, _ in changes if old is not None]
    come = [SourceEvent(new, now) for _, new in changes if new is not None]
    return (*gone, *come)
