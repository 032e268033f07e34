"""Clauses that sqlglot parses and this language refuses, each with what to write instead."""

from collections.abc import Callable

from sqlglot import exp

from streamsql.binder.names.environment import Environment
from streamsql.syntax.tree_nodes import nodes_of

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
    """Return a check for a place where expressions take no subqueries."""

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
    """Check that a node has no clause beside the allowed ones."""
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


_MODIFIERS = frozenset(exp.Subquery.arg_types) - {"this", "alias", "with_", "joins"}
_ORDER = frozenset(("order", "limit", "offset"))
_LEAVE_OUT = "leave it out"

_UNREAD: dict[type[exp.Expr], dict[str, tuple[str, str]]] = {
    exp.Cast: {
        "format": ("CAST takes no FORMAT", "CAST(x AS TEXT) writes times as ISO 8601"),
        "action": ("CAST takes only a type", _LEAVE_OUT),
        "default": ("CAST takes no default", "COALESCE(CAST(x AS INTEGER), 0)"),
    },
    exp.Chr: {"charset": ("CHR takes only a code point", "CHR(65)")},
    exp.Column: {"join_mark": ("(+) is not supported", "write LEFT JOIN … ON …")},
    exp.CTE: {
        "scalar": ("WITH value AS name is not supported", "WITH name AS (SELECT …)"),
        "key_expressions": ("USING KEY is not supported", "group after the recursion"),
    },
    exp.In: {
        "unnest": ("UNNEST is not supported: arrays are not supported", "x IN ('a', 'b')"),
        "field": ("IN needs a list or a query in parentheses", "x IN ('a', 'b')"),
        "is_global": ("GLOBAL IN is not supported", "write IN"),
    },
    exp.Is: {"negate": ("this form of IS is not supported", "write NOT (x IS …)")},
    exp.RowNumber: {"this": ("ROW_NUMBER takes no argument", "ROW_NUMBER() OVER (…)")},
    exp.Order: {"siblings": ("ORDER SIBLINGS BY is not supported", "write ORDER BY")},
    exp.Ordered: {"with_fill": ("WITH FILL is not supported", _LEAVE_OUT)},
    exp.Star: {
        "replace": ("* REPLACE is not supported", "SELECT * EXCEPT (x), x + 1 AS x FROM …"),
        "rename": ("* RENAME is not supported", "SELECT * EXCEPT (x), x AS y FROM …"),
        "ilike": ("* ILIKE is not supported", "name the columns"),
    },
    exp.StrPosition: {
        "position": ("POSITION searches from the start", "POSITION('a' IN SUBSTRING(x, 3))"),
        "occurrence": ("POSITION finds only the first match", "POSITION('a' IN x)"),
    },
    exp.Trim: {"collation": ("texts have no collations", _LEAVE_OUT)},
    exp.DataType: {
        "collate": ("texts have no collations", _LEAVE_OUT),
        "nullable": ("any value may be NULL", _LEAVE_OUT),
    },
    exp.Identifier: {
        "temporary": ("# cannot be part of a name", "write the name in double quotes"),
        "global_": ("## cannot be part of a name", "write the name in double quotes"),
    },
}  # fmt: skip


def refuse_foreign(tree: exp.Expr, environment: Environment) -> None:
    """Check a query for clauses that nothing would read."""
    for node in nodes_of(tree):
        for key, (message, hint) in _unread(node).items():
            value = node.args.get(key)
            if value is None or value == [] or value is False:
                continue
            raise environment.unsupported(node, message, hint=hint, code="unsupported_clause")
        match node:
            case exp.Subquery():
                _check_subquery(node, environment)
            case exp.SetOperation():
                only(node, environment, *_OF_SET_OPERATIONS)
            case exp.Join():
                _check_join(node, environment)
            case exp.Star() if node.args.get("except_") and not _is_item(node):
                raise environment.unsupported(
                    node,
                    "EXCEPT must follow the * of a select list",
                    hint="COUNT(*) counts whole rows",
                    code="unsupported_clause",
                )
            case exp.Count() if isinstance(node.this, exp.Star) and node.expressions:
                raise environment.wrong_arguments(
                    node, "COUNT(*) takes no further arguments", "COUNT(*), or COUNT(DISTINCT a, b)"
                )
            case exp.Distinct() if node.args.get("on") and not isinstance(node.parent, exp.Select):
                raise environment.unsupported(
                    node,
                    "DISTINCT ON must follow SELECT",
                    hint="COUNT(DISTINCT a, b)",
                    code="unsupported_clause",
                )
            case _:
                pass


_OF_SET_OPERATIONS = (
    "this", "expression", "distinct", "with_", "order", "limit", "offset", "alias",
    "stream_window",
)  # fmt: skip


def _unread(node: exp.Expr) -> dict[str, tuple[str, str]]:
    kind = type(node)
    found = _UNREAD_OF.get(kind)
    if found is None:
        found = next((told for known, told in _UNREAD.items() if issubclass(kind, known)), {})
        _UNREAD_OF[kind] = found
    return found


_UNREAD_OF: dict[type[exp.Expr], dict[str, tuple[str, str]]] = {}
"""The same by class of node, as asked so far: sqlglot has some hundred."""


def _check_subquery(node: exp.Subquery, environment: Environment) -> None:
    """Refuse clauses behind the bracket of a query, where its place does not read them."""
    given = {key for key in _MODIFIERS if node.args.get(key)}
    is_value = _is_value(node)
    if given <= _ORDER and not is_value:
        return
    if is_value and node.args.get("with_"):
        raise environment.unsupported(
            node,
            "WITH cannot stand before the parenthesis of a subquery",
            hint="write it inside the parentheses: (WITH a AS (…) SELECT …)",
            code="unsupported_clause",
        )
    if given:
        word = "ORDER BY, LIMIT and OFFSET" if given <= _ORDER else "this clause"
        raise environment.unsupported(
            node,
            f"{word} cannot follow the parenthesis of a subquery",
            hint="write it inside the parentheses: (SELECT … ORDER BY x LIMIT 1)",
            code="unsupported_clause",
        )


def _is_value(node: exp.Subquery) -> bool:
    """Whether a query stands inside an expression, and not in FROM, WITH or a set operator."""
    parent: exp.Expr | None = node.parent
    while isinstance(parent, exp.Subquery | exp.Paren):
        parent = parent.parent
    relations = exp.From | exp.Join | exp.CTE | exp.SetOperation | exp.Table | exp.Lateral
    return parent is not None and not isinstance(parent, relations)


def _is_item(star: exp.Expr) -> bool:
    """Whether a star is an item of a select list: * or t.*."""
    around = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
    return isinstance(around, exp.Select)


def _check_join(node: exp.Join, environment: Environment) -> None:
    named, on = node.args.get("using"), node.args.get("on") is not None
    natural = (node.args.get("method") or "").upper() == "NATURAL"
    crossed = (node.args.get("kind") or "").upper() == "CROSS"
    if sum((bool(named), on, natural, crossed)) > 1:
        raise environment.error(
            node,
            "a JOIN takes exactly one of ON, USING, NATURAL and CROSS",
            hint="move other conditions into WHERE",
            code="unsupported_join",
        )
