"""How the best value of a graph problem changes from step to step.

Algorithms work on *keys* that are to be small: the value itself where MIN selects, its negation
where MAX does. A step may only leave a key as it is or make it larger.
"""

from dataclasses import dataclass

from stream_engine.recursion.kernels.problem import Kind
from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.data.types import DataType

_ORDERED = (DataType.INTEGER, DataType.DOUBLE, DataType.TIMESTAMP, DataType.INTERVAL)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """How steps change the best value.

    Attributes:
        negated: Whether keys are negated values.
        weights: Per step, what is added to the key (COST), or bounds it from below (PLATEAU), as a
            value before negation; None where the kind or the step has no weight.
    """

    kind: Kind
    title: str
    negated: bool
    weights: tuple[Expression | None, ...]


def value_rule(heads: list[tuple[Expression, int]], *, minimum: bool) -> ValueRule:
    """Return what the steps do to the best value.

    Args:
        heads: Per step, the new value over the wide row, and the old value's position there.
        minimum: Whether the least value is best.

    Raises:
        ValueError: Not one of the known forms; the text says why.
    """
    if not minimum and heads[0][0].dtype not in _ORDERED:
        raise ValueError(f"the greatest {heads[0][0].dtype} is best")
    found = [_operation(head, at) for head, at in heads]
    kinds = {kind for kind, _ in found} - {"same"}
    best = "least" if minimum else "greatest"
    if not kinds:
        return ValueRule(Kind.PLATEAU, f"{best} label", not minimum, (None,) * len(found))
    if kinds <= {"+", "-"}:
        weights = tuple(_added(kind, w) for kind, w in found)
        hops = minimum and all(isinstance(w, Literal) and w.value == 1 for w in weights)
        title = "hops" if hops else ("cheapest" if minimum else "dearest")
        return ValueRule(Kind.COST, title, not minimum, weights)
    wanted = "GREATEST" if minimum else "LEAST"
    if kinds != {wanted}:
        raise ValueError(f"steps compute {', '.join(sorted(kinds))}, and the {best} value is best")
    if any(kind == "same" for kind, _ in found):
        raise ValueError(f"some steps keep the value and others compute {wanted}")
    title = "narrowest" if minimum else "widest"
    return ValueRule(Kind.PLATEAU, title, not minimum, tuple(w for _, w in found))


def _operation(head: Expression, at: int) -> tuple[str, Expression]:
    match head:
        case Column(position=position) if position == at:
            return "same", head
        case Call(function="+" | "-" as name, arguments=(left, right)):
            if _is_value(left, at) and at not in columns_of(right):
                return name, right
            if name == "+" and _is_value(right, at) and at not in columns_of(left):
                return name, left
        case Call(function="LEAST" | "GREATEST" as name, arguments=arguments):
            others = tuple(a for a in arguments if not _is_value(a, at))
            if len(others) < len(arguments) and not any(at in columns_of(a) for a in others):
                return name, others[0] if len(others) == 1 else Call(name, others, head.dtype)
        case _:
            pass
    raise ValueError("the best value is not the old one plus, LEAST or GREATEST something")


def _is_value(expression: Expression, at: int) -> bool:
    return isinstance(expression, Column) and expression.position == at


def _added(kind: str, weight: Expression) -> Expression:
    if kind == "same":
        return Literal(0, DataType.INTEGER)
    return weight if kind == "+" else Call("NEGATE", (weight,), weight.dtype)
