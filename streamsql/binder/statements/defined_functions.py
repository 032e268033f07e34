"""CREATE FUNCTION and CREATE AGGREGATE to definitions of the catalog."""

from collections.abc import Sequence

import msgspec
from sqlglot import exp

from streamsql.algebra.user_functions import is_implementation
from streamsql.binder.aggregation.aggregate_binder import Aggregation
from streamsql.binder.aggregation.aggregate_bodies import bind_aggregate
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.expressions.function_bodies import check_nesting, new_body
from streamsql.binder.expressions.function_expansion import bind_function
from streamsql.binder.expressions.scalar_functions import KNOWN_NAMES, SPELLINGS
from streamsql.binder.names.environment import Scope
from streamsql.binder.statements.aggregate_merges import merge_of
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.schema import Schema
from streamsql.errors import BindingError, QueryError
from streamsql.syntax.parse import parse_statement
from streamsql.syntax.statements import ColumnDefinition, CreateFunction, FunctionBody, Query


def define_function(statement: CreateFunction, catalog: Catalog) -> FunctionDefinition:
    """Return the definition of a function or aggregate.

    Raises:
        BindingError: Its name is taken, or the implementation or the body is wrong.
        UnsupportedError: The body is refused.
    """
    name = statement.name
    what = "aggregate" if statement.aggregate else "function"
    if name.text.upper() in {*KNOWN_NAMES, *SPELLINGS}:
        raise BindingError(
            f"{name.text.upper()} is a function of the language",
            span=name.span,
            hint="choose another name",
            code="reserved_name",
        )
    if not _is_free(statement):
        raise BindingError(
            f"{name.text.upper()} means something else in SQL, so this could not be called",
            span=name.span,
            hint="choose another name",
            code="reserved_name",
        )
    if statement.body is None and not is_implementation(statement.implementation):
        raise BindingError(
            f"{statement.implementation!r:.80} names no implementation",
            span=statement.place,
            hint="write 'package.module:name' of a module that is installed at the sites",
            code="bad_implementation",
        )
    parameters = named_columns(statement.parameters, "parameter")
    if not statement.parameters:
        raise BindingError(
            f"{what} {name.text!r} has no parameters",
            span=name.span,
            hint="write a constant instead; to count rows write COUNT(*)",
            code="missing_columns",
        )
    definition = FunctionDefinition(
        name=name.text,
        aggregate=statement.aggregate,
        parameters=parameters,
        result=statement.result,
        implementation=statement.implementation,
        on_null=statement.on_null,
        text=statement.text,
    )
    if statement.body is None:
        return msgspec.structs.replace(definition, merged_by=merge_of(statement))
    return _with_body(definition, statement, statement.body, catalog)


def _is_free(statement: CreateFunction) -> bool:
    """Return False where a call would be parsed as something else: SQL has words of its own."""
    arguments = ", ".join("x" for _ in statement.parameters)
    name = statement.name.text
    quoted = name.replace('"', '""')
    for written in (name, f'"{quoted}"'):
        try:
            query = parse_statement(f"SELECT {written}({arguments})")
        except QueryError:
            return False
        called = query.tree.expressions[0] if isinstance(query, Query) else None
        if not isinstance(called, exp.Anonymous) or called.name.lower() != name.lower():
            return False
    return True


def _with_body(
    definition: FunctionDefinition, statement: CreateFunction, body: FunctionBody, catalog: Catalog
) -> FunctionDefinition:
    """Return a definition with the expression behind AS, which is checked."""
    if statement.merged_by is not None:
        raise BindingError(
            "MERGED BY is for aggregates of Python; an expression is computed from parts by itself",
            span=statement.merged_by.span,
            hint="leave out MERGED BY",
            code="bad_merge",
        )
    made = msgspec.structs.replace(definition, body=body.text)
    bound = new_body(made, body.tree, statement.script, catalog)
    check_nesting(made, bound.environment, body.tree)
    if made.aggregate:
        bind_aggregate(bound, Aggregation)
    else:
        bind_function(bound, ExpressionBinder(bound.environment, Scope()))
    return made


def named_columns(written: Sequence[ColumnDefinition], what: str) -> Schema:
    """Return columns or parameters as a schema; `what` is their word.

    Raises:
        BindingError: Two have the same name.
    """
    seen: set[str] = set()
    for column in written:
        if column.name.text in seen:
            raise BindingError(
                f"{what} {column.name.text!r} is defined twice",
                span=column.name.span,
                hint="rename one of them",
                code="duplicate_name",
            )
        seen.add(column.name.text)
    return Schema.of(*((column.name.text, column.dtype) for column in written))
