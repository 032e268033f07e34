"""Function calls, and the refusal of what is no function here."""

from typing import Any

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression
from streamsql.binder.functions import KNOWN_NAMES, PARSED, SIGNATURES, Signature
from streamsql.binder.node_binder import NodeBinder
from streamsql.data.types import DataType
from streamsql.errors import QueryError
from streamsql.syntax.cursor import nearest

_QUERY = ("a query inside an expression is not supported", "put it into FROM and join with it")
_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Exists: ("EXISTS (…) is not supported", "join with the inner query instead"),
    exp.Query: _QUERY,
    exp.Window: (
        "OVER (…) is not supported",
        "use GROUP BY, or a window on the stream such as s [PARTITION BY k ROWS 5]",
    ),
    exp.Filter: ("FILTER (WHERE …) is not supported", "use SUM(CASE WHEN … THEN 1 ELSE 0 END)"),
    exp.CurrentTimestamp: (
        "the current time is not a value: the answer would change with every tick",
        "use a window such as s [RANGE 10 MINUTES]",
    ),
    exp.CurrentDate: ("the current date is not a value", "use a window on the stream"),
    exp.Star: ("* is not a value here", "name the column"),
    exp.Placeholder: ("there are no parameters", "write the value itself"),
    exp.Parameter: ("there are no parameters", "write the value itself"),
    exp.Bracket: ("columns hold single values, not arrays", "a window stands after a stream name"),
    exp.RegexpLike: ("regular expressions are not supported", "use LIKE with % and _"),
    exp.Escape: ("ESCAPE is not supported", "POSITION(part IN text) > 0 looks for plain text"),
}
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.ArgMin, exp.ArgMax)


def bind_parsed(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind a function that sqlglot knows."""
    name, wanted = PARSED[type(node)]
    given = [node.args.get(argument) for argument in wanted]
    if any(key not in wanted and _is_content(value) for key, value in node.args.items()):
        raise binder.environment.unsupported(
            node, f"{name} is not called like this", hint=f"write {SIGNATURES[name][0].usage}"
        )
    return _call(binder, name, [a for a in given if isinstance(a, exp.Expr)], node)


def bind_anonymous(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind a function that only we know, such as `distance`."""
    name = str(node.this).upper()
    if name not in SIGNATURES:
        raise refusal(binder, node)
    return _call(binder, name, list(node.expressions), node)


def bind_concatenation(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `||`, which writes numbers and truth values as text."""
    sides = (binder.bind(node.this), binder.bind(node.expression))
    for side, part in zip(sides, (node.this, node.expression), strict=True):
        if side.dtype in (DataType.TIMESTAMP, DataType.INTERVAL):
            raise binder.environment.unsupported(
                part, f"{side.dtype} has no text form", hint="keep it in a column of its own"
            )
    return Call("||", sides, DataType.TEXT)


def refusal(binder: NodeBinder, node: exp.Expr) -> QueryError:
    """Return the error for a node that no part of the binder takes."""
    environment = binder.environment
    if isinstance(node, _AGGREGATES):
        return environment.error(
            node,
            f"the aggregate {node.sql_name()} cannot stand here",
            hint="conditions on aggregates go into HAVING",
        )
    for kind, (message, hint) in _REFUSED.items():
        if isinstance(node, kind):
            return environment.unsupported(node, message, hint=hint)
    if isinstance(node, exp.AggFunc):
        return environment.unsupported(
            node,
            f"the aggregate {node.sql_name()} is not supported",
            hint="aggregates are COUNT, SUM, AVG, MIN, MAX, ARG_MIN and ARG_MAX",
        )
    if not isinstance(node, exp.Func):
        return environment.unsupported(
            node,
            "this expression is not supported",
            hint="see the language reference for operators and functions",
        )
    name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()
    if name.upper() == "NOW":
        message, hint = _REFUSED[exp.CurrentTimestamp]
        return environment.unsupported(node, message, hint=hint)
    close = nearest(name.upper(), KNOWN_NAMES)
    hint = f"did you mean {close}?" if close else f"functions: {', '.join(KNOWN_NAMES)}"
    return environment.error(node, f"there is no function {name!r:.40}", hint=hint)


def _call(binder: NodeBinder, name: str, arguments: list[exp.Expr], node: exp.Expr) -> Expression:
    bound = [binder.bind(argument) for argument in arguments]
    for signature in SIGNATURES[name]:
        if _accepts(signature, bound):
            types = tuple(argument.dtype for argument in bound)
            return Call(name, tuple(bound), signature.result(types))
    usage = " or ".join(signature.usage for signature in SIGNATURES[name])
    types_text = ", ".join(argument.dtype for argument in bound)
    raise binder.environment.error(
        node, f"{name} does not take ({types_text})", hint=f"write {usage}"
    )


def _accepts(signature: Signature, arguments: list[Expression]) -> bool:
    most = len(signature.arguments)
    if not most - signature.optional <= len(arguments) <= most:
        return False
    return all(
        argument.dtype in (*accepted, DataType.NULL)
        for argument, accepted in zip(arguments, signature.arguments, strict=False)
    )


def _is_content(value: Any) -> bool:
    return isinstance(value, exp.Expr) or (isinstance(value, list) and bool(value))
