"""Parse and bind a text as it is being typed, without running it."""

from federated_optimizer.coordinator.contract.coordinator_model import Diagnosis, Validation
from federated_optimizer.coordinator.contract.presentation import presentation_of
from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from federated_optimizer.coordinator.trials.tried_past import tried_past
from streamsql.binder import (
    Creating,
    altered_source,
    bind_confidence,
    bind_deletions,
    bind_query,
    bind_what_if,
    bind_why,
    define,
    mapping_warnings,
)
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.errors import FederationError, QueryError
from streamsql.syntax import (
    AlterSource,
    Explain,
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    Query,
    RunOnHistory,
    Subscribe,
    parse_script,
)
from streamsql.syntax.statements import Statement


def validate(text: str, catalog: Catalog) -> Validation:
    """Return what is wrong with a script, the columns of its last query, and warnings.

    Definitions count for the statements after them, without entering the catalog.
    """
    try:
        statements = parse_script(text)
    except FederationError as error:
        return Validation((_diagnosis(error, 1, 1),))
    scratch = catalog.scratch()
    found: list[Diagnosis] = []
    schema = Schema(())
    warnings: list[str] = []
    for statement in statements:
        try:
            schema = _check(statement, scratch, warnings) or schema
        except FederationError as error:
            found.append(_diagnosis(error, statement.span.line, statement.span.column))
    types = tuple(str(field.dtype) for field in schema.fields)
    return Validation(tuple(found), schema.names, tuple(warnings), types)


def select_all(name: str) -> str:
    """Return the query for all of a relation of the catalog."""
    return f'SELECT * FROM "{name}"'  # noqa: S608  (a known name)


def _check(statement: Statement, catalog: Catalog, warnings: list[str]) -> Schema | None:
    """Bind one statement; return the columns if it is a query."""
    match statement:
        case Explain(inner=inner):
            return _check(inner, catalog, warnings)
        case Query() | Subscribe():
            bound = bind_query(query_of(statement), catalog)
            presentation_of(statement, bound.schema, bound.emit)
            warnings.extend(bound.warnings)
            return bound.schema
        case ExplainWhy():
            bind_why(statement, catalog)
        case ExplainWhatIf():
            if statement.inner is None:
                bind_deletions(statement, catalog)
            elif statement.named is None or catalog.find(statement.named.text) is not None:
                bind_what_if(statement, catalog)  # else it may be a running query's name
        case ExplainConfidence():
            bind_confidence(statement, catalog)
        case RunOnHistory(named=named):
            if named is None or catalog.find(named.text) is not None:
                return tried_past(statement, catalog, None).query.schema
        case AlterSource():
            return _check(altered_source(statement, catalog), catalog, warnings)
        case _ if isinstance(statement, Creating):
            definition = define(statement, catalog)
            catalog.define_here(definition)
            if isinstance(definition, SourceDefinition):
                warnings.extend(mapping_warnings(definition))
        case _:
            pass  # nothing to bind
    return None


def _diagnosis(error: FederationError, line: int, column: int) -> Diagnosis:
    span = error.span if isinstance(error, QueryError) else None
    if span is None:
        return Diagnosis(error.message, line, column, "", error.hint, code=error.code)
    return Diagnosis(error.message, span.line, span.column, span.text, error.hint, code=error.code)
