"""The query inside a statement."""

from streamsql.errors import InternalError
from streamsql.syntax import Query, Subscribe
from streamsql.syntax.statements import Statement


def query_of(statement: Statement) -> Query:
    """Return the query inside a SELECT or SUBSCRIBE."""
    match statement:
        case Query():
            return statement
        case Subscribe(inner=inner):
            return inner
        case _:
            raise InternalError(f"{type(statement).__name__} is not a query")
