"""Queries that the static engine alone computes: over stored tables, and over the past."""

from streamsql.algebra.explain import describe
from streamsql.algebra.operators import Plan, Scan, SourceKind, Window, walk_plan
from streamsql.algebra.streams import Emit
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.catalog.system import system_source
from streamsql.errors import Span, UnsupportedError


def check_stored(bound: BoundQuery, span: Span, who: str, hint: str, code: str) -> None:
    """Check that stored tables and the past are all that a query needs.

    Args:
        bound: The query.
        span: Where it was written.
        who: What has the query, for people.
        hint: What to do about a stream that it reads.
        code: Of the error.

    Raises:
        UnsupportedError: It needs more.
    """
    if bound.emit == Emit.STREAM:
        raise UnsupportedError(
            f"{who} stores rows, but this query produces a stream",
            span=span,
            hint="remove ISTREAM, DSTREAM or RSTREAM",
            code=code,
        )
    for node in walk_plan(bound.plan):
        reason = _reason(node)
        if reason:
            raise UnsupportedError(
                f"{who} reads only stored tables and the past, but {reason}",
                span=span,
                hint=hint,
                code=code,
            )


def reads_rows(plan: Plan) -> bool:
    """A plan reads something; else its rows are in its text."""
    return any(isinstance(node, Scan) for node in walk_plan(plan))


def _reason(node: Plan) -> str:
    match node:
        case Scan() if system_source(node.source) is not None:
            return f"{node.source} is a system table"
        case Scan() if node.kind != SourceKind.TABLE:
            return f"{node.source} is a stream"
        case Window() if node.input.history is None:
            return f"{describe(node)} is a window"
        case _:
            return ""
