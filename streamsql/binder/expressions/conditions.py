"""Conditions and choices: logic, comparisons, IS, BETWEEN, IN, LIKE, CASE and COALESCE."""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.binder.expressions.coercion import comparable, unified
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.expressions.patterns import bind_similar
from streamsql.data.types import DataType

_BOOLEAN = DataType.BOOLEAN

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def bind_logic(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind AND and OR."""
    word = "AND" if isinstance(node, exp.And) else "OR"
    left = binder.predicate(node.this, word)
    return Call(word, (left, binder.predicate(node.expression, word)), _BOOLEAN)


def bind_not(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind NOT; `NOT x IS NULL` becomes `x IS NOT NULL`."""
    inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return Call("IS NOT NULL", (binder.bind(inner.this),), _BOOLEAN)
    return Call("NOT", (binder.predicate(node.this, "NOT"),), _BOOLEAN)


def bind_comparison(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `=`, `<>`, `<`, `<=`, `>` and `>=`."""
    left, right = _sides(binder, node)
    return Call(COMPARISONS[type(node)], (left, right), _BOOLEAN)


def _sides(binder: NodeBinder, node: exp.Expr) -> tuple[Expression, Expression]:
    left, right = binder.bind(node.this), binder.bind(node.expression)
    return comparable(left, right, node, binder.environment)


def bind_is(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `IS NULL`, `IS TRUE`, `IS FALSE` and `IS UNKNOWN`."""
    bound = binder.bind(node.this)
    match node.expression:
        case exp.Null():
            return Call("IS NULL", (bound,), _BOOLEAN)
        case exp.Boolean() as truth:
            sides = comparable(bound, binder.bind(truth), node, binder.environment)
            same = Call("=", sides, _BOOLEAN)
            return Call("COALESCE", (same, Literal(False, _BOOLEAN)), _BOOLEAN)
        case exp.Var(this="UNKNOWN"):
            tested = binder.predicate(node.this, "IS UNKNOWN")
            return Call("IS NULL", (tested,), _BOOLEAN)
        case _:
            raise binder.environment.error(
                node,
                "IS takes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM",
                hint="use = to compare with a value",
                code="unsupported_expression",
            )


def bind_null_safe(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `IS [NOT] DISTINCT FROM`, equality under which NULL equals NULL."""
    left, right = _sides(binder, node)
    left_missing = Call("IS NULL", (left,), _BOOLEAN)
    right_missing = Call("IS NULL", (right,), _BOOLEAN)
    same = Call(
        "CASE",
        (
            left_missing,
            right_missing,
            right_missing,
            Literal(False, _BOOLEAN),
            Call("=", (left, right), _BOOLEAN),
        ),
        _BOOLEAN,
    )
    return Call("NOT", (same,), _BOOLEAN) if isinstance(node, exp.NullSafeNEQ) else same


def bind_between(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind BETWEEN; both bounds belong to the range."""
    low, high = node.args["low"], node.args["high"]
    within = _within(binder, node, low, high)
    if not node.args.get("symmetric"):
        return within
    return Call("OR", (within, _within(binder, node, high, low)), _BOOLEAN)


def _within(binder: NodeBinder, node: exp.Expr, low: exp.Expr, high: exp.Expr) -> Expression:
    value = binder.bind(node.this)
    parts = []
    for operator, bound in ((">=", low), ("<=", high)):
        sides = comparable(value, binder.bind(bound), node, binder.environment)
        parts.append(Call(operator, sides, _BOOLEAN))
    return Call("AND", tuple(parts), _BOOLEAN)


def bind_in(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `x IN (a, b)`."""
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise binder.environment.unsupported(
            node,
            "IN (query) is not supported",
            hint="join with SELECT DISTINCT … of the inner query instead",
            code="unsupported_subquery",
        )
    if node.args.get("field") is not None or not node.expressions:
        raise binder.environment.wrong_arguments(
            node, "IN needs a list of values", "x IN ('a', 'b')"
        )
    value = binder.bind(node.this)
    candidates = []
    for candidate in node.expressions:
        value, other = comparable(value, binder.bind(candidate), candidate, binder.environment)
        candidates.append(other)
    return Call("IN", (value, *candidates), _BOOLEAN)


def bind_like(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind LIKE, and ILIKE as LIKE over lower case; a backslash escapes unless ESCAPE says else."""
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    escape = [] if plain else [exp.Literal.string("\\")]
    return _like(binder, node, [node.this, pattern, *escape])


def bind_escape(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `LIKE pattern ESCAPE character`."""
    like = node.this
    if not isinstance(like, exp.Like | exp.ILike | exp.SimilarTo):
        raise binder.environment.unsupported(
            node,
            "ESCAPE is allowed only with LIKE, ILIKE and SIMILAR TO",
            hint="x LIKE '10!%' ESCAPE '!'",
            code="unsupported_expression",
        )
    escape = node.expression
    if isinstance(escape, exp.Literal) and len(escape.name) > 1:
        raise binder.environment.wrong_arguments(
            escape, "ESCAPE takes one character", "x LIKE '10!%' ESCAPE '!'"
        )
    if isinstance(like, exp.SimilarTo):
        return bind_similar(binder, like, escape.name)
    return _like(binder, like, [like.this, like.expression, escape])


def _like(binder: NodeBinder, node: exp.Expr, nodes: list[exp.Expr]) -> Expression:
    parts = [_text(binder, part) for part in nodes]
    if isinstance(node, exp.ILike):
        parts = [Call("LOWER", (part,), DataType.TEXT) for part in parts]
    like = Call("LIKE" if len(parts) == 2 else "LIKE ESCAPE", tuple(parts), _BOOLEAN)
    return Call("NOT", (like,), _BOOLEAN) if node.args.get("negate") else like


def _text(binder: NodeBinder, node: exp.Expr) -> Expression:
    bound = binder.bind(node)
    if bound.dtype not in (DataType.TEXT, DataType.NULL):
        raise binder.environment.type_mismatch(
            node, f"LIKE compares TEXT, but this has type {bound.dtype}", "CAST(… AS TEXT)"
        )
    return bound


_NAMES: dict[type[exp.Expr], str] = {
    exp.Coalesce: "COALESCE",
    exp.Least: "LEAST",
    exp.Greatest: "GREATEST",
}


def bind_case(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind both forms of CASE; without ELSE the value is NULL."""
    subject = node.args.get("this")
    conditions, values = [], []
    for branch in node.args["ifs"]:
        conditions.append(_condition(binder, subject, branch.this))
        values.append(binder.bind(branch.args["true"]))
    default = node.args.get("default")
    values.append(Literal(None, DataType.NULL) if default is None else binder.bind(default))
    values = unified(values, node, binder.environment, "CASE")
    pairs = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return Call("CASE", (*pairs, values[-1]), values[-1].dtype)


def _condition(binder: NodeBinder, subject: exp.Expr | None, node: exp.Expr) -> Expression:
    if subject is None:
        return binder.predicate(node, "WHEN")
    sides = comparable(binder.bind(subject), binder.bind(node), node, binder.environment)
    return Call("=", sides, DataType.BOOLEAN)


def bind_if(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Refuse IF."""
    raise binder.environment.unsupported(
        node,
        "IF is not supported",
        hint="CASE WHEN condition THEN a ELSE b END",
        code="unsupported_expression",
    )


def bind_choice(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind COALESCE, LEAST and GREATEST under one type."""
    name = _NAMES[type(node)]
    values = [binder.bind(part) for part in (node.this, *node.expressions)]
    values = unified(values, node, binder.environment, name)
    return Call(name, tuple(values), values[0].dtype)


def bind_nullif(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind NULLIF as a CASE."""
    value = binder.bind(node.this)
    sides = comparable(value, binder.bind(node.expression), node, binder.environment)
    same = Call("=", sides, DataType.BOOLEAN)
    return Call("CASE", (same, Literal(None, value.dtype), value), value.dtype)


def filtered(condition: Expression | None, value: Expression) -> Expression:
    """Return the value where a FILTER holds, NULL elsewhere: aggregates skip NULLs."""
    if condition is None:
        return value
    missing = Literal(None, value.dtype)
    return Call("CASE", (condition, value, missing), value.dtype)
