"""Catalogs, queries and bound queries from their text."""

import re

from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.library import library_views
from streamsql.syntax import (
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Query,
    parse_script,
    parse_statement,
)

Definition = CreateSource | CreateView | CreateFunction | CreateDisplay | CreateAlarm | CreateSink


def catalog_of(*scripts: str, library: bool = False) -> Catalog:
    """Return a catalog of what scripts of CREATE statements define, in their order.

    With `library` it has the views of the library, too.
    """
    catalog = Catalog(library_views() if library else ())
    for statement in (statement for script in scripts for statement in parse_script(script)):
        assert isinstance(statement, Definition)
        catalog.define(define(statement, catalog))
    return catalog


def query_of(text: str) -> Query:
    """Parse a statement that is a query."""
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return statement


def bound_query(text: str, catalog: Catalog) -> BoundQuery:
    """Parse and bind a statement that is a query."""
    return bind_query(query_of(text), catalog)


def unmarked(text: str) -> tuple[str, tuple[int, int, str]]:
    """Return a statement without the marks «», and the line, column and text that they enclose."""
    before, offending, after = re.split("[«»]", text)
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return before + offending + after, (line, column, offending)
