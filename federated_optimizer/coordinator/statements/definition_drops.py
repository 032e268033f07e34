"""DROP of definitions: which one a statement means, and what still uses it."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from sqlglot import exp

from streamsql.catalog.catalog import Catalog, check_not_system, is_library, kind_of
from streamsql.catalog.definitions import Definition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.schema import Schema
from streamsql.errors import BindingError, QueryError
from streamsql.syntax import CreateFunction, Drop, Query, Subscribe, parse_statement


class Reader(NamedTuple):
    """A query that stands, of an alarm or of a user, a view's, or a function with a body.

    Attributes:
        kind: The word used in DROP.
        columns: Of a running query: what its readers were told; None for others.
    """

    kind: str
    name: str
    text: str
    columns: Schema | None = None


def dropped_definition(statement: Drop, catalog: Catalog) -> Definition | None:
    """Return the definition to drop; None: there is none, and IF EXISTS says that this is fine.

    Raises:
        BindingError: There is none of that kind, or users may not drop it.
    """
    kind, name = statement.kind, statement.name.text
    found = catalog.find(name)
    if found is None or kind_of(found) != kind:
        if statement.if_exists:
            return None
        listed = "FUNCTIONS" if kind == "aggregate" else f"{kind.upper()}S"
        raise BindingError(
            f"there is no {kind} {name!r}",
            span=statement.name.span,
            hint=f"SHOW {listed} lists them" if found is None else f"it is {_with_article(found)}",
            code="unknown_relation",
        )
    check_not_system(name, statement.name.span, code="in_use")
    if is_library(found):
        raise BindingError(
            f"{found.name!r} is a library view and cannot be dropped",
            span=statement.name.span,
            hint="CREATE VIEW with the same name replaces it",
            code="in_use",
        )
    return found


def _with_article(definition: Definition) -> str:
    kind = kind_of(definition)
    return f"an {kind}" if kind.startswith("a") else f"a {kind}"


def users_of(definition: Definition, catalog: Catalog, readers: Iterable[Reader]) -> list[str]:
    """Return what reads a definition, directly or through views, as DROP names it."""
    found = readers_of(definition, catalog, readers)
    return [f"{reader.kind} {reader.name}" for reader in found]


def readers_of(definition: Definition, catalog: Catalog, readers: Iterable[Reader]) -> list[Reader]:
    """Return what reads a definition, directly or not: of `readers`, views and functions."""
    name = definition.name.lower()

    def uses(text: str) -> bool:
        return name in names_used(text, catalog)

    # To parse the texts of thousands of queries takes seconds: most do not even have the name in
    # them, nor that of a view or function that uses it.
    functions = [Reader(kind_of(f), f.name, f.text) for f in catalog.functions if f.body]
    over = [view.name for view in catalog.views if uses(view.query)]
    over += [function.name for function in functions if uses(function.text)]
    said = [each.lower().replace('"', '""') for each in (definition.name, *over)]
    named = (reader for reader in readers if any(map(reader.text.lower().__contains__, said)))
    views = (Reader("view", view, query) for view, query in _user_views(catalog))
    others = (other for other in (*views, *functions) if other.name != definition.name)
    return [reader for reader in chain(named, others) if uses(reader.text)]


def refuse_used(statement: Drop, definition: Definition, users: list[str]) -> None:
    """Refuse to drop what something else uses.

    Raises:
        BindingError: `users` names one.
    """
    if not users:
        return
    # Quoted, because names may hold dashes and capitals.
    kind, _, user = users[0].partition(" ")
    raise BindingError(
        f"{kind_of(definition)} {definition.name!r} is used by {', '.join(users)}",
        span=statement.name.span,
        hint=f'DROP {kind.upper()} "{user}" first',
        code="in_use",
    )


def names_used(text: str, catalog: Catalog) -> frozenset[str]:
    """Return the names of all that the text of a query or function reads or calls, lower case.

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
            elif isinstance(definition, FunctionDefinition) and definition.body:
                waiting.append(definition.text)
    return frozenset(used)


def _user_views(catalog: Catalog) -> Iterator[tuple[str, str]]:
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
        yield from _names_in(query.tree)
    elif isinstance(query, CreateFunction) and query.body is not None:
        yield from _names_in(query.body.tree)


def _names_in(tree: exp.Expr) -> Iterator[str]:
    for table in tree.find_all(exp.Table):
        yield table.name.lower()
    for call in tree.find_all(exp.Anonymous):
        yield str(call.this).lower()
