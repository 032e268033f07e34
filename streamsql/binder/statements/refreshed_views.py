"""Views that are refreshed at times of day: the static engine alone computes their rows."""

from streamsql.algebra.operators import Plan, SourceKind
from streamsql.binder.statements.bind import bind_query
from streamsql.binder.statements.stored_rows import check_stored
from streamsql.catalog.catalog import Catalog, kind_of
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import RefreshSchedule
from streamsql.catalog.system import is_system
from streamsql.data.schema import Schema
from streamsql.errors import BindingError, InternalError, UnsupportedError
from streamsql.syntax.parse import parse_statement
from streamsql.syntax.statements import CreateView, Name, Query, Refresh, RefreshTimes

_LIVE = "remove REFRESH AT: the view is then updated with every change"
_REFRESHED = ("a view with REFRESH AT", _LIVE, "not_refreshable")


def define_refreshed(
    statement: CreateView, refresh: RefreshTimes, catalog: Catalog
) -> SourceDefinition:
    """Return a view as the table that its last refresh leaves."""
    span = statement.name.span
    if statement.recursive:
        raise UnsupportedError(
            "CREATE RECURSIVE VIEW takes no REFRESH AT",
            span=span,
            hint="write the recursion inside: REFRESH AT (…) AS WITH RECURSIVE …",
            code="not_refreshable",
        )
    bound = bind_query(statement.query, catalog)
    check_stored(bound, statement.query.span, *_REFRESHED)
    return SourceDefinition(
        name=statement.name.text,
        kind=SourceKind.TABLE,
        schema=_schema(statement, bound.schema),
        text=statement.text,
        refresh=RefreshSchedule(statement.query.text, refresh.times, refresh.weights),
    )


def bind_refresh(definition: SourceDefinition, catalog: Catalog) -> Plan:
    """Return the plan of what a refresh computes; its columns stand in the view's order.

    Raises:
        QueryError: What it reads has changed, so that it does not bind any more.
    """
    if definition.refresh is None:
        raise InternalError(f"{definition.name} is not refreshed")
    query = parse_statement(definition.refresh.query)
    if not isinstance(query, Query):
        raise InternalError(f"view {definition.name} has no query")
    bound = bind_query(query, catalog)
    check_stored(bound, query.span, *_REFRESHED)
    if bound.schema.dtypes != definition.schema.dtypes:
        raise BindingError(
            f"view {definition.name} was created with the columns {definition.schema}, but "
            f"its query now has {bound.schema}",
            span=query.span,
            hint=f"DROP VIEW {definition.name} and create it again",
            code="not_refreshable",
        )
    return bound.plan


def refreshed(statement: Refresh, catalog: Catalog) -> SourceDefinition:
    """Return the view or table that a REFRESH names.

    Raises:
        BindingError: There is none, or it is not refreshed at times of day, or no table.
    """
    name: Name = statement.name
    definition = catalog.find(name.text)
    if (
        isinstance(definition, SourceDefinition)
        and definition.is_table
        and statement.is_table == (definition.refresh is None)
        and not is_system(definition)
    ):
        return definition
    wanted = "stored table" if statement.is_table else "view with REFRESH AT"
    if definition is None:
        message = f"there is no {'table' if statement.is_table else 'view'} {name.text!r}"
    else:
        message = f"{kind_of(definition)} {name.text!r} is not a {wanted}"
    raise BindingError(
        message,
        span=name.span,
        hint=f"SHOW {'TABLES' if statement.is_table else 'VIEWS'} lists them",
        code="unknown_relation" if definition is None else "not_refreshable",
    )


def _schema(statement: CreateView, schema: Schema) -> Schema:
    """Return the columns under the names that CREATE VIEW gives them."""
    given = statement.columns
    if given and len(given) != len(schema):
        raise BindingError(
            f"view {statement.name.text!r} has {len(given)} column names for {len(schema)} columns",
            span=given[0].span,
            hint=f"the query has the columns {schema}",
            code="column_count",
        )
    names = [name.text for name in given] or list(schema.names)
    for position, name in enumerate(names):
        if name in names[:position]:
            raise BindingError(
                f"view {statement.name.text!r} has two columns {name!r}",
                span=given[position].span if given else statement.query.span,
                hint="rename them with AS, or in CREATE MATERIALIZED VIEW name (columns)",
                code="duplicate_name",
            )
    return Schema.of(*zip(names, schema.dtypes, strict=True))
