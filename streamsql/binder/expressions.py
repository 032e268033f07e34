"""Scalar expressions: from parsed trees to typed, positional expressions."""

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar import cast
from streamsql.binder.coercion import comparable, converted, time_value, unified
from streamsql.binder.environment import Environment, identifier_text
from streamsql.binder.functions import KNOWN_NAMES, PARSED, SIGNATURES, Signature
from streamsql.binder.operators import arithmetic, negated
from streamsql.binder.scope import Scope
from streamsql.data.types import DataType
from streamsql.syntax.cursor import nearest
from streamsql.syntax.definitions import type_named

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Exists: ("EXISTS (…) is not supported", "join with the inner query instead"),
    exp.Subquery: (
        "a query inside an expression is not supported",
        "put it into FROM and join with it",
    ),
    exp.Select: (
        "a query inside an expression is not supported",
        "put it into FROM and join with it",
    ),
    exp.Window: (
        "OVER (…) is not supported",
        "use GROUP BY, or a window on the stream such as s [PARTITION BY k ROWS 5]",
    ),
    exp.Filter: ("FILTER (WHERE …) is not supported", "use SUM(CASE WHEN … THEN 1 ELSE 0 END)"),
    exp.CurrentTimestamp: (
        "the current time is not a value: an answer would change with every tick",
        "use a window such as s [RANGE 10 MINUTES]",
    ),
    exp.CurrentDate: ("the current date is not a value", "use a window on the stream"),
    exp.Star: ("* is not a value here", "name the column"),
    exp.Placeholder: ("there are no parameters", "write the value itself"),
    exp.Parameter: ("there are no parameters", "write the value itself"),
    exp.Bracket: ("columns hold single values, not arrays", "a window stands after a stream name"),
    exp.RegexpLike: ("regular expressions are not supported", "use LIKE with % and _"),
    exp.Escape: ("ESCAPE is not supported", "% and _ have no escape; use POSITION(… IN …) > 0"),
}

AggregateHook = Callable[[exp.Expr], Expression | None]


class ExpressionBinder:
    """Binds expressions over one scope.

    Args:
        aggregates: Called with every node first; returns the column that stands for an aggregate,
            or None for any other node. Without it aggregates are refused.
    """

    def __init__(
        self,
        environment: Environment,
        scope: Scope,
        aggregates: AggregateHook | None = None,
    ) -> None:
        self._environment = environment
        self._scope = scope
        self._aggregates = aggregates

    def bind(self, node: exp.Expr) -> Expression:
        """Return the typed expression.

        Raises:
            BindingError: A name is unknown or ambiguous, or types do not fit.
            UnsupportedError: A construct is refused, with what to write instead.
        """
        if self._aggregates is not None:
            found = self._aggregates(node)
            if found is not None:
                return found
        binder = _BINDERS.get(type(node))
        if binder is not None:
            return binder(self, node)
        if type(node) in _COMPARISONS:
            return self._comparison(node, _COMPARISONS[type(node)])
        if type(node) in _ARITHMETIC:
            left, right = self.bind(node.this), self.bind(node.expression)
            return arithmetic(_ARITHMETIC[type(node)], left, right, node, self._environment)
        if type(node) in PARSED:
            return self._parsed_function(node)
        raise self._refusal(node)

    def predicate(self, node: exp.Expr, where: str) -> Expression:
        """Return a condition.

        Raises:
            BindingError: It is not BOOLEAN.
        """
        bound = self.bind(node)
        if bound.dtype not in (DataType.BOOLEAN, DataType.NULL):
            raise self._environment.error(
                node,
                f"{where} needs a condition, but this is {bound.dtype}",
                hint="compare it with something, for example … > 0",
            )
        return converted(bound, DataType.BOOLEAN)

    def _refusal(self, node: exp.Expr) -> Exception:
        for kind, (message, hint) in _REFUSED.items():
            if isinstance(node, kind):
                return self._environment.unsupported(node, message, hint=hint)
        if isinstance(node, exp.Query):
            message, hint = _REFUSED[exp.Subquery]
            return self._environment.unsupported(node, message, hint=hint)
        if isinstance(node, exp.AggFunc):
            return self._environment.unsupported(
                node,
                f"the aggregate {node.key.upper()} is not supported",
                hint="aggregates are COUNT, SUM, AVG, MIN, MAX, ARG_MIN and ARG_MAX",
            )
        name = node.name if isinstance(node, exp.Anonymous) else node.key
        return self._unknown_function(node, name)

    def _unknown_function(self, node: exp.Expr, name: str) -> Exception:
        if not isinstance(node, exp.Func):
            return self._environment.unsupported(
                node,
                "this expression is not supported",
                hint="see the language reference for operators and functions",
            )
        close = nearest(name.upper(), KNOWN_NAMES)
        hint = f"did you mean {close}?" if close else f"functions: {', '.join(KNOWN_NAMES)}"
        return self._environment.error(node, f"there is no function {name!r:.40}", hint=hint)

    def _column(self, node: exp.Expr) -> Expression:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            message, hint = _REFUSED[exp.Star]
            raise self._environment.unsupported(node, message, hint=hint)
        return self._scope.resolve(node, self._environment).column

    def _literal(self, node: exp.Expr) -> Expression:
        text = node.name
        if node.args.get("is_string"):
            return Literal(text, DataType.TEXT)
        try:
            return _number(text)
        except ValueError:
            raise self._environment.error(
                node, f"{text!r:.40} is not a number", hint="numbers fit 64 bits"
            ) from None

    def _null(self, _node: exp.Expr) -> Expression:
        return Literal(None, DataType.NULL)

    def _boolean(self, node: exp.Expr) -> Expression:
        return Literal(bool(node.this), DataType.BOOLEAN)

    def _paren(self, node: exp.Expr) -> Expression:
        return self.bind(node.this)

    def _negation(self, node: exp.Expr) -> Expression:
        return negated(self.bind(node.this), node, self._environment)

    def _not(self, node: exp.Expr) -> Expression:
        inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return Call("IS NOT NULL", (self.bind(inner.this),), DataType.BOOLEAN)
        return Call("NOT", (self.predicate(node.this, "NOT"),), DataType.BOOLEAN)

    def _logic(self, node: exp.Expr) -> Expression:
        word = "AND" if isinstance(node, exp.And) else "OR"
        left = self.predicate(node.this, word)
        return Call(word, (left, self.predicate(node.expression, word)), DataType.BOOLEAN)

    def _comparison(self, node: exp.Expr, operator: str) -> Expression:
        left, right = comparable(
            self.bind(node.this), self.bind(node.expression), node, self._environment
        )
        return Call(operator, (left, right), DataType.BOOLEAN)

    def _is(self, node: exp.Expr) -> Expression:
        bound = self.bind(node.this)
        match node.expression:
            case exp.Null():
                return Call("IS NULL", (bound,), DataType.BOOLEAN)
            case exp.Boolean() as truth:
                left, right = comparable(bound, self.bind(truth), node, self._environment)
                same = Call("=", (left, right), DataType.BOOLEAN)
                return Call("COALESCE", (same, Literal(False, DataType.BOOLEAN)), DataType.BOOLEAN)
            case _:
                raise self._environment.error(
                    node, "IS takes NULL, TRUE or FALSE", hint="use = to compare with a value"
                )

    def _null_safe(self, node: exp.Expr) -> Expression:
        left, right = comparable(
            self.bind(node.this), self.bind(node.expression), node, self._environment
        )
        boolean = DataType.BOOLEAN
        same = Call(
            "CASE",
            (
                Call("IS NULL", (left,), boolean),
                Call("IS NULL", (right,), boolean),
                Call("IS NULL", (right,), boolean),
                Literal(False, boolean),
                Call("=", (left, right), boolean),
            ),
            boolean,
        )
        return Call("NOT", (same,), boolean) if isinstance(node, exp.NullSafeNEQ) else same

    def _between(self, node: exp.Expr) -> Expression:
        value = self.bind(node.this)
        parts = []
        for operator, bound in ((">=", node.args["low"]), ("<=", node.args["high"])):
            left, right = comparable(value, self.bind(bound), node, self._environment)
            parts.append(Call(operator, (left, right), DataType.BOOLEAN))
        if node.args.get("symmetric"):
            raise self._environment.unsupported(
                node, "BETWEEN SYMMETRIC is not supported", hint="put the smaller bound first"
            )
        return Call("AND", tuple(parts), DataType.BOOLEAN)

    def _in(self, node: exp.Expr) -> Expression:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
            raise self._environment.unsupported(
                node,
                "IN (query) is not supported",
                hint="join with SELECT DISTINCT … of the inner query instead",
            )
        if node.args.get("field") is not None or not node.expressions:
            raise self._environment.error(node, "IN needs a list of values", hint="x IN ('a', 'b')")
        value = self.bind(node.this)
        candidates = []
        for candidate in node.expressions:
            value, other = comparable(value, self.bind(candidate), candidate, self._environment)
            candidates.append(other)
        return Call("IN", (value, *candidates), DataType.BOOLEAN)

    def _like(self, node: exp.Expr) -> Expression:
        sides = [self._text(node.this), self._text(node.expression)]
        if isinstance(node, exp.ILike):
            sides = [Call("LOWER", (side,), DataType.TEXT) for side in sides]
        like = Call("LIKE", tuple(sides), DataType.BOOLEAN)
        return Call("NOT", (like,), DataType.BOOLEAN) if node.args.get("negate") else like

    def _text(self, node: exp.Expr) -> Expression:
        bound = self.bind(node)
        if bound.dtype not in (DataType.TEXT, DataType.NULL):
            raise self._environment.error(
                node, f"LIKE compares TEXT, but this is {bound.dtype}", hint="CAST(… AS TEXT)"
            )
        return bound

    def _concatenation(self, node: exp.Expr) -> Expression:
        sides = (self.bind(node.this), self.bind(node.expression))
        for side, part in zip(sides, (node.this, node.expression), strict=True):
            if side.dtype in (DataType.TIMESTAMP, DataType.INTERVAL):
                raise self._environment.unsupported(
                    part, f"{side.dtype} has no text form", hint="keep it in a column of its own"
                )
        return Call("||", sides, DataType.TEXT)

    def _case(self, node: exp.Expr) -> Expression:
        subject = node.args.get("this")
        conditions, values = [], []
        for branch in node.args["ifs"]:
            if subject is None:
                conditions.append(self.predicate(branch.this, "WHEN"))
            else:
                left, right = comparable(
                    self.bind(subject), self.bind(branch.this), branch.this, self._environment
                )
                conditions.append(Call("=", (left, right), DataType.BOOLEAN))
            values.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        values.append(Literal(None, DataType.NULL) if default is None else self.bind(default))
        values = unified(values, node, self._environment, "CASE")
        pairs = [part for pair in zip(conditions, values, strict=False) for part in pair]
        return Call("CASE", (*pairs, values[-1]), values[-1].dtype)

    def _if(self, node: exp.Expr) -> Expression:
        raise self._environment.unsupported(
            node, "IF is not supported", hint="CASE WHEN condition THEN a ELSE b END"
        )

    def _alternatives(self, node: exp.Expr) -> Expression:
        name = {exp.Least: "LEAST", exp.Greatest: "GREATEST"}.get(type(node), "COALESCE")
        values = [self.bind(part) for part in (node.this, *node.expressions)]
        values = unified(values, node, self._environment, name)
        return Call(name, tuple(values), values[0].dtype)

    def _nullif(self, node: exp.Expr) -> Expression:
        value = self.bind(node.this)
        left, right = comparable(value, self.bind(node.expression), node, self._environment)
        same = Call("=", (left, right), DataType.BOOLEAN)
        return Call("CASE", (same, Literal(None, value.dtype), value), value.dtype)

    def _cast(self, node: exp.Expr) -> Expression:
        target = type_named(node.args["to"].sql())
        if target is None:
            raise self._environment.error(
                node,
                f"there is no type {node.args['to'].sql()!r:.40}",
                hint="types are TEXT, INTEGER, DOUBLE, BOOLEAN, TIMESTAMP and INTERVAL",
            )
        value = self.bind(node.this)
        if value.dtype == target:
            return value
        times = (DataType.TIMESTAMP, DataType.INTERVAL)
        if isinstance(value, Literal) and isinstance(value.value, str) and target in times:
            return Literal(time_value(value.value, target, node, self._environment), target)
        if (value.dtype in times) or (target in times and value.dtype != DataType.NULL):
            if (value.dtype, target) != (DataType.TEXT, DataType.TIMESTAMP):
                raise self._environment.unsupported(
                    node,
                    f"{value.dtype} cannot be cast to {target}",
                    hint="subtract two TIMESTAMPs to get an INTERVAL",
                )
        if isinstance(value, Literal):
            return self._constant_cast(value, target, node)
        return Call("CAST", (value,), target)

    def _constant_cast(self, value: Literal, target: DataType, node: exp.Expr) -> Literal:
        result = cast(value.value, target)
        if result is None and value.value is not None:
            raise self._environment.error(node, f"{value.value!r:.60} is not a {target}")
        return Literal(result, target)

    def _interval(self, node: exp.Expr) -> Expression:
        amount = node.args.get("this")
        unit = node.args.get("unit")
        if not isinstance(amount, exp.Literal) or (unit is not None and not unit.name):
            raise self._environment.unsupported(
                node, "an interval is a constant", hint="INTERVAL '10 min' * number"
            )
        text = f"{amount.name} {unit.name}" if unit is not None else amount.name
        micros = time_value(text, DataType.INTERVAL, node, self._environment)
        return Literal(micros, DataType.INTERVAL)

    def _parsed_function(self, node: exp.Expr) -> Expression:
        name, wanted = PARSED[type(node)]
        given = [node.args.get(argument) for argument in wanted]
        arguments = [argument for argument in given if isinstance(argument, exp.Expr)]
        others = [
            key for key, value in node.args.items() if key not in wanted and _is_content(value)
        ]
        if others:
            usage = SIGNATURES[name][0].usage
            raise self._environment.unsupported(
                node, f"{name} is not called like this", hint=f"write {usage}"
            )
        return self._call(name, arguments, node)

    def _anonymous(self, node: exp.Expr) -> Expression:
        name = str(node.this).upper()
        if name not in SIGNATURES:
            raise self._refusal(node)
        return self._call(name, list(node.expressions), node)

    def _call(self, name: str, arguments: list[exp.Expr], node: exp.Expr) -> Expression:
        bound = [self.bind(argument) for argument in arguments]
        for signature in SIGNATURES[name]:
            if _accepts(signature, bound):
                types = tuple(argument.dtype for argument in bound)
                return Call(name, tuple(bound), signature.result(types))
        usage = " or ".join(signature.usage for signature in SIGNATURES[name])
        types_text = ", ".join(argument.dtype for argument in bound)
        raise self._environment.error(
            node, f"{name} does not take ({types_text})", hint=f"write {usage}"
        )

    def _dot(self, node: exp.Expr) -> Expression:
        raise self._environment.error(
            node, "a column is written name or table.name", hint="there are no nested columns"
        )

    def _name(self, node: exp.Expr) -> Expression:
        column = exp.Column(this=node)
        column.meta.update(node.meta)
        return self._scope.resolve(column, self._environment).column


def _number(text: str) -> Literal:
    if text.isdigit():
        value = int(text) if len(text) < 20 else 2**64
        if value >= 2**63:
            raise ValueError(text)
        return Literal(value, DataType.INTEGER)
    number = float(text)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(text)
    return Literal(number, DataType.DOUBLE)


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


def contains_column(node: exp.Expr, name: str) -> bool:
    """Whether a tree reads a column of that name."""
    return any(identifier_text(column.this) == name for column in node.find_all(exp.Column))


_BINDERS: dict[type[exp.Expr], Callable[[ExpressionBinder, exp.Expr], Expression]] = {
    exp.Column: ExpressionBinder._column,
    exp.Identifier: ExpressionBinder._name,
    exp.Literal: ExpressionBinder._literal,
    exp.Null: ExpressionBinder._null,
    exp.Boolean: ExpressionBinder._boolean,
    exp.Paren: ExpressionBinder._paren,
    exp.Neg: ExpressionBinder._negation,
    exp.Not: ExpressionBinder._not,
    exp.And: ExpressionBinder._logic,
    exp.Or: ExpressionBinder._logic,
    exp.Is: ExpressionBinder._is,
    exp.NullSafeEQ: ExpressionBinder._null_safe,
    exp.NullSafeNEQ: ExpressionBinder._null_safe,
    exp.Between: ExpressionBinder._between,
    exp.In: ExpressionBinder._in,
    exp.Like: ExpressionBinder._like,
    exp.ILike: ExpressionBinder._like,
    exp.DPipe: ExpressionBinder._concatenation,
    exp.Case: ExpressionBinder._case,
    exp.If: ExpressionBinder._if,
    exp.Coalesce: ExpressionBinder._alternatives,
    exp.Least: ExpressionBinder._alternatives,
    exp.Greatest: ExpressionBinder._alternatives,
    exp.Nullif: ExpressionBinder._nullif,
    exp.Cast: ExpressionBinder._cast,
    exp.Interval: ExpressionBinder._interval,
    exp.Anonymous: ExpressionBinder._anonymous,
    exp.Dot: ExpressionBinder._dot,
}
