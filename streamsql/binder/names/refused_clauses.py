"""Clauses sqlglot can parse and this language refuses, each with what to write instead."""

from collections.abc import Callable

from sqlglot import exp

from streamsql.binder.names.environment import Environment

_MESSAGES = {
    "db": ("schemas are not supported: a relation has one name", "write the name without a dot"),
    "side": ("an outer UNION is not supported", "write UNION or UNION ALL"),
    "by_name": ("UNION BY NAME is not supported", "list the columns in the same order"),
    "hint": ("optimizer hints are not supported", "remove the comment"),
    "order": (
        "ORDER BY without LIMIT is not supported here: a relation has no order",
        "remove it, or add LIMIT; only the outermost ORDER BY orders the result",
    ),
    "limit": ("LIMIT is not supported here", "move it into a query in FROM"),
    "offset": ("OFFSET is not supported here", "move it into a query in FROM"),
    "limit_options": ("LIMIT takes a whole number of rows", "write LIMIT 10"),
    "alias": ("a join in parentheses cannot have a name", "remove AS …"),
    "windows": ("WINDOW clauses are not supported", "put the window after the stream: s [ROWS 5]"),
    "sample": ("TABLESAMPLE is not supported", "use a window to read fewer rows"),
    "pivots": ("PIVOT is not supported", "use SUM(CASE WHEN … THEN … END) per column"),
    "laterals": ("LATERAL is not supported", "join with a query in FROM"),
    "into": ("SELECT INTO is not supported", "CREATE VIEW name AS SELECT …"),
    "locks": ("row locks are not supported", "remove FOR UPDATE"),
    "connect": ("CONNECT BY is not supported", "use WITH RECURSIVE"),
    "match": ("MATCH_RECOGNIZE is not supported", "join the stream with itself"),
    "rollup": ("WITH ROLLUP is not supported", "GROUP BY ROLLUP (a, b)"),
    "cube": ("WITH CUBE is not supported", "GROUP BY CUBE (a, b)"),
    "totals": ("WITH TOTALS is not supported", "GROUP BY GROUPING SETS ((a, b), ())"),
}


def queries_refused(environment: Environment, where: str) -> Callable[[exp.Expr], None]:
    """Return a check for a place where expressions take no subqueries.

    Raises:
        UnsupportedError: The node it is called with is one.
    """

    def check(node: exp.Expr) -> None:
        inside = isinstance(node, exp.In) and node.args.get("query") is not None
        if inside or isinstance(node, exp.Exists | exp.Query | exp.Any | exp.All):
            raise environment.unsupported(
                node,
                f"a subquery in {where} is not supported",
                hint="compute it in a query in FROM: (SELECT …, (SELECT …) AS x FROM …) AS q",
                code="unsupported_subquery",
            )

    return check


def only(node: exp.Expr, environment: Environment, *allowed: str) -> None:
    """Check that a node has no clause beside the allowed ones.

    Raises:
        UnsupportedError: It has; names the clause.
    """
    for key, value in node.args.items():
        if key in allowed or value is None or value is False or value == []:
            continue
        message, hint = _MESSAGES.get(
            key,
            (f"{key.strip('_').replace('_', ' ').upper()} is not supported here", "leave it out"),
        )
        place = value[0] if isinstance(value, list) else value
        where = place if isinstance(place, exp.Expr) and environment.place(place) else node
        raise environment.unsupported(where, message, hint=hint, code="unsupported_clause")
