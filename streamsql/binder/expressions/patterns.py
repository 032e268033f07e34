"""Regular expressions: `text ~ 'pattern'`, REGEXP_LIKE, REGEXP_MATCHES and SIMILAR TO.

Patterns are constants, so that every engine has compiled them before the first row, and of the
subset that means the same everywhere; see `streamsql.algebra.regular_expressions`.
"""

from collections.abc import Callable

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.regular_expressions import (
    RegularExpressionError,
    compile_pattern,
    similar_pattern,
)
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.data.types import DataType

_USAGE = "mid ~ '^m-[0-9]+$', or REGEXP_LIKE(mid, '^m-[0-9]+$', 'i') for both cases"
_PARTS = ("this", "expression", "flag")


def bind_regexp(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `text ~ pattern` and REGEXP_LIKE(text, pattern [, 'i'])."""
    if any(value for key, value in node.args.items() if key not in _PARTS):
        raise _misused(binder, node)
    return _regexp(binder, node.this, node.expression, node.args.get("flag"))


def bind_regexp_folded(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `text ~* pattern`."""
    return _matched(binder, node.this, node.expression, "i", str)


def bind_regexp_call(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind REGEXP_MATCHES(text, pattern [, 'i']), as DuckDB has it."""
    given = list(node.expressions)
    if len(given) not in (2, 3):
        raise _misused(binder, node)
    return _regexp(binder, *given)


def _regexp(
    binder: NodeBinder, text: exp.Expr, pattern: exp.Expr, flag: exp.Expr | None = None
) -> Expression:
    flags = "" if flag is None else _constant(binder, flag)
    if flag is not None and flags not in ("", "i"):
        raise _misused(binder, flag)
    return _matched(binder, text, pattern, flags, str)


def bind_similar(binder: NodeBinder, node: exp.Expr, escape: str = "\\") -> Expression:
    """Bind `text SIMILAR TO pattern`, which matches whole texts."""
    return _matched(
        binder, node.this, node.expression, "", lambda text: similar_pattern(text, escape)
    )


def _matched(
    binder: NodeBinder, text: exp.Expr, pattern: exp.Expr, flags: str, form: Callable[[str], str]
) -> Expression:
    bound = binder.bind(text)
    if bound.dtype not in (DataType.TEXT, DataType.NULL):
        raise binder.environment.type_mismatch(
            text,
            f"a regular expression tests TEXT, but this has type {bound.dtype}",
            "CAST(… AS TEXT)",
        )
    written = _constant(binder, pattern)
    try:
        expression = form(written)
        compile_pattern(expression, flags)
    except RegularExpressionError as error:
        raise binder.environment.error(
            pattern,
            f"this regular expression cannot be used: {error}",
            hint="supported: . [a-z] [^a-z] \\d \\w \\s ( ) | * + ? {2,5} ^ and $; \\ makes the "
            "next character literal",
            code="bad_pattern",
        ) from None
    arguments = (bound, Literal(expression, DataType.TEXT), Literal(flags, DataType.TEXT))
    return Call("REGEXP_LIKE", arguments, DataType.BOOLEAN)


def _constant(binder: NodeBinder, node: exp.Expr) -> str:
    bound = binder.bind(node)
    if isinstance(bound, Literal) and isinstance(bound.value, str):
        return bound.value
    raise binder.environment.error(
        node,
        "a regular expression is a constant text",
        hint=f"{_USAGE}; to search for text from a column use POSITION(part IN text) > 0",
        code="bad_pattern",
    )


def _misused(binder: NodeBinder, node: exp.Expr) -> Exception:
    return binder.environment.wrong_arguments(
        node, "a regular expression takes a text, a pattern, and optionally 'i'", _USAGE
    )
