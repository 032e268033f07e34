"""Which definitions a statement uses, directly and through views."""

from collections.abc import Iterator

from sqlglot import exp

from streamsql.catalog.catalog import Catalog, is_library
from streamsql.catalog.definitions import ViewDefinition
from streamsql.errors import QueryError
from streamsql.syntax import Query, Subscribe, parse_statement


def names_used(text: str, catalog: Catalog) -> frozenset[str]:
    """Return the names of all that a query's text reads or calls, lower case.

    A text that no longer parses uses nothing we could name.
    """
    used: set[str] = set()
    waiting = [text]
    while waiting:
        for name in _names(waiting.pop()):
            if name in used:
                continue
            definition = catalog.find(name)
            if definition is None:
                continue
            used.add(name)
            if isinstance(definition, ViewDefinition):
                waiting.append(definition.query)
    return frozenset(used)


def user_views(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield name and query of every view but those of the library."""
    for view in catalog.views:
        if not is_library(view):
            yield view.name, view.query
    for table in catalog.refreshed:
        if table.refresh is not None:
            yield table.name, table.refresh.query


def _names(text: str) -> Iterator[str]:
    try:
        statement = parse_statement(text)
    except QueryError:
        return
    query = statement.inner if isinstance(statement, Subscribe) else statement
    if isinstance(query, Query):
        for table in query.tree.find_all(exp.Table):
            yield table.name.lower()
        for call in query.tree.find_all(exp.Anonymous):
            yield str(call.this).lower()
