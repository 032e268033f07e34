"""Functions and aggregates whose body is an expression: its scope, its checks, and its bounds.

A body is bound over its parameters as columns, and arguments are put into what is bound: they keep
the names of the caller. Nothing of a body remains in a plan but built-in functions and aggregates.
"""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, columns_of, substituted
from streamsql.binder.expressions.aggregate_calls import is_aggregate
from streamsql.binder.expressions.coercion import converted
from streamsql.binder.names.environment import (
    Binding,
    Environment,
    Queries,
    Scope,
    identifier_text,
)
from streamsql.binder.names.refused_clauses import refuse_foreign
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.types import DataType, common_type
from streamsql.errors import InternalError, QueryError
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.parse import parse_statement
from streamsql.syntax.script_places import Script
from streamsql.syntax.statements import CreateFunction
from streamsql.syntax.tree_nodes import nodes_of

MAX_NESTING = 16
"""Levels of bodies that call functions with bodies."""

MAX_LEVELS = 100
"""Levels of the expression that a call stands for: engines recurse over it."""

MAX_PARTS = 1_000
"""Functions, columns and constants of the expression that a call stands for."""

_MAX_KEPT = 1_024

T = TypeVar("T")
Closure = tuple[FunctionDefinition, ...]
"""A definition, and all functions that its body calls, directly or not."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body in the scope of its parameters, of which number n is column n."""

    definition: FunctionDefinition
    tree: exp.Expr
    environment: Environment

    @property
    def scope(self) -> Scope:
        """The parameters."""
        return Scope.of("", self.definition.parameters)

    @property
    def parameters(self) -> range:
        """Their columns."""
        return range(len(self.definition.parameters))


def new_body(
    definition: FunctionDefinition, tree: exp.Expr, script: Script, catalog: Catalog
) -> Body:
    """Return the body of a definition, whose places refer to a script."""
    queries = Queries(relation=_no_query, view=_no_query, block=_no_query)
    return Body(definition, tree, Environment(Binding(catalog, queries), script))


def _no_query(*_arguments: Any, **_more: Any) -> NoReturn:
    raise InternalError("the body of a function has a query")


def bound_body(
    definition: FunctionDefinition,
    environment: Environment,
    node: exp.Expr,
    kept: dict[Closure, T],
    bind: Callable[[Body], T],
) -> T:
    """Return the bound body of a function that a node calls.

    Args:
        definition: Of the function.
        environment: Of the call.
        node: The call.
        kept: Bodies that were bound before; this one is put there.
        bind: Binds a body.

    Raises:
        QueryError: It cannot be bound any more; the place is that of the call.
    """
    catalog = environment.binding.catalog
    try:
        closure = _closure(definition, catalog)
        found = kept.get(closure)
        if found is not None:
            return found
        check_nesting(definition, environment, node)
        tree, script = _parsed(definition.text)
        made = bind(new_body(definition, tree, script, catalog))
    except QueryError as error:
        raise environment.error(
            node,
            f"{definition.name} can no longer be called: {error.message}",
            hint=f"its body is {definition.code}; DROP it and CREATE it again",
            code=error.code,
        ) from None
    if len(kept) >= _MAX_KEPT:
        kept.clear()
    kept[closure] = made
    return made


# Binding a query that calls a function comes here once per call.
@lru_cache(maxsize=_MAX_KEPT)
def _parsed(text: str) -> tuple[exp.Expr, Script]:
    statement = parse_statement(text)
    if not isinstance(statement, CreateFunction) or statement.body is None:
        raise InternalError("the text of a function is another statement")
    return statement.body.tree, statement.script


@lru_cache(maxsize=_MAX_KEPT)
def _called(text: str) -> tuple[str, ...]:
    tree, _ = _parsed(text)
    names = (str(node.this) for node in nodes_of(tree) if isinstance(node, exp.Anonymous))
    return tuple(dict.fromkeys(names))


def _callees(definition: FunctionDefinition, catalog: Catalog) -> list[FunctionDefinition]:
    if not definition.body:
        return []
    found = map(catalog.find, _called(definition.text))
    return [callee for callee in found if isinstance(callee, FunctionDefinition)]


def _closure(definition: FunctionDefinition, catalog: Catalog) -> Closure:
    found, waiting = {definition.name: definition}, [definition]
    while waiting:
        for callee in _callees(waiting.pop(), catalog):
            if callee.name not in found:
                found[callee.name] = callee
                waiting.append(callee)
    return tuple(found.values())


def check_nesting(definition: FunctionDefinition, environment: Environment, node: exp.Expr) -> None:
    """Check that bodies do not call each other over too many levels.

    Raises:
        UnsupportedError: They do; the place is that of the node.
    """
    catalog = environment.binding.catalog
    level, depth = {definition.name: definition}, 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise environment.unsupported(
                node,
                f"{definition.name} calls functions that call functions, over more than "
                f"{MAX_NESTING} levels",
                hint="write the bodies of some of them in place of their calls",
                code="limit_exceeded",
            )
        called = [callee for each in level.values() for callee in _callees(each, catalog)]
        level = {callee.name: callee for callee in called if callee.body}


def check_body(body: Body) -> None:
    """Check what a body may be made of: its parameters, constants, functions and aggregates.

    Raises:
        QueryError: It has something else; the place is in the body.
    """
    environment = body.environment
    refuse_foreign(body.tree, environment)
    for node in nodes_of(body.tree):
        match node:
            case exp.Query() | exp.Exists():
                raise _refused(
                    body,
                    node,
                    "cannot contain a query",
                    "join the query with the one that calls it",
                )
            case exp.Window():
                name = body.definition.name
                raise _refused(
                    body,
                    node,
                    "cannot contain a window function",
                    f"leave out OVER here and write {name}(…) OVER (…) in the query",
                )
            case exp.Column() if not isinstance(node.this, exp.Star):
                _check_parameter(body, node)
            case exp.Anonymous() if str(node.this).lower() == body.definition.name.lower():
                hint = "steps that repeat are a query: WITH RECURSIVE"
                raise _refused(body, node, "cannot call itself", hint)
            case _ if not body.definition.aggregate and is_aggregate(node, environment):
                raise _refused(body, node, "cannot contain an aggregate", "write CREATE AGGREGATE")
            case _:
                pass


def _check_parameter(body: Body, node: exp.Column) -> None:
    definition, environment = body.definition, body.environment
    name = identifier_text(node.this)
    names = definition.parameters.names
    if node.args.get("table") is not None:
        more = ", ".join((*names, name))
        hint = f"write {name}" if name in names else f"add a parameter: {definition.name}({more})"
        raise _refused(body, node, "reads nothing but its parameters", hint)
    if name not in names:
        raise environment.error(
            node,
            f"there is no parameter {name!r}",
            hint=did_you_mean(name, names, f"parameters: {', '.join(names)}"),
            code="unknown_column",
        )


def _is_inside_aggregate(node: exp.Expr, environment: Environment) -> bool:
    around = node.parent
    while around is not None:
        if isinstance(around, exp.Filter | exp.WithinGroup) or is_aggregate(around, environment):
            return True
        around = around.parent
    return False


def _refused(body: Body, node: exp.Expr, what: str, hint: str) -> QueryError:
    kind = "an aggregate" if body.definition.aggregate else "a function"
    return body.environment.error(node, f"the body of {kind} {what}", hint=hint, code="bad_body")


def check_aggregated(body: Body, value: Expression, calls: Sized) -> None:
    """Check that the body of an aggregate calls some, and reads its parameters only there.

    Args:
        body: Of an aggregate.
        value: The bound body, whose first columns are the parameters.
        calls: The aggregates it calls.

    Raises:
        BindingError: It does not.
    """
    outside = columns_of(value).intersection(body.parameters)
    if outside:
        name = body.definition.parameters.names[min(outside)]
        columns = (node for node in nodes_of(body.tree) if isinstance(node, exp.Column))
        named = (node for node in columns if identifier_text(node.this) == name)
        apart = (node for node in named if not _is_inside_aggregate(node, body.environment))
        place = next(apart, body.tree)
        raise _refused(
            body,
            place,
            f"reads {name!r} outside an aggregate, where it has no single value",
            f"write for example MIN({name}) or AVG({name})",
        )
    if not calls:
        raise _refused(
            body, body.tree, "needs an aggregate", "write CREATE FUNCTION, or for example SUM(…)"
        )


def as_declared(body: Body, value: Expression) -> Expression:
    """Return the value of a body as one of the type behind RETURNS.

    Raises:
        BindingError: It is of a type that does not become this one by itself.
    """
    wanted = body.definition.result
    if value.dtype != DataType.NULL and common_type(value.dtype, wanted) != wanted:
        raise body.environment.type_mismatch(
            body.tree,
            f"the body is {value.dtype}, but {body.definition.name} returns {wanted}",
            f"write RETURNS {value.dtype}, or CAST(… AS {wanted})",
        )
    return converted(value, wanted)


def put_into(
    template: Expression,
    arguments: Sequence[Expression],
    definition: FunctionDefinition,
    environment: Environment,
    node: exp.Expr,
) -> Expression:
    """Return a bound body with arguments in place of its columns.

    Raises:
        UnsupportedError: It is too large, so that sums of sums do not double with every level.
    """
    made = substituted(template, arguments)
    if made is None:
        raise _too_large(definition, environment, node)
    check_size(made, definition, environment, node)
    return made


def check_size(
    value: Expression, definition: FunctionDefinition, environment: Environment, node: exp.Expr
) -> None:
    """Check that what a call stands for is no larger than engines take.

    Raises:
        UnsupportedError: It is.
    """
    parts, levels, level = 0, 0, [value]
    while level:
        parts, levels = parts + len(level), levels + 1
        if parts > MAX_PARTS or levels > MAX_LEVELS:
            raise _too_large(definition, environment, node)
        level = [below for part in level if isinstance(part, Call) for below in part.arguments]


def _too_large(
    definition: FunctionDefinition, environment: Environment, node: exp.Expr
) -> QueryError:
    return environment.unsupported(
        node,
        f"{definition.name} is too large: written out, with its arguments, it has more than "
        f"{MAX_PARTS:,} parts, or more than {MAX_LEVELS} levels",
        hint="compute the arguments in a query in FROM",
        code="limit_exceeded",
    )
