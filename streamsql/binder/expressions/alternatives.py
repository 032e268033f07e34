"""Expressions that choose between values: CASE, COALESCE, LEAST, GREATEST and NULLIF."""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.binder.expressions.coercion import comparable, unified
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.data.types import DataType

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
