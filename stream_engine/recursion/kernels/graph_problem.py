"""What kernels work on: a recursion read as a graph problem, and how its best value changes.

Algorithms work on *keys* that are to be small: the value itself where MIN selects, its negation
where MAX does. A step may only leave a key as it is or make it larger.
"""

import enum
from dataclasses import dataclass

from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.data.types import DataType


class Kind(enum.StrEnum):
    """Which algorithm solves it.

    REACH: which nodes a source reaches. COST: the least sum of non-negative weights. PLATEAU: the
    least of the greatest weight on the way (greatest of the least, with negated values), or the
    least value of any source.
    """

    REACH = "reach"
    COST = "cost"
    PLATEAU = "plateau"


@dataclass(frozen=True, slots=True)
class PayloadRule:
    """How one step rule computes the payload columns.

    Attributes:
        expressions: One per payload column, over the relation's row followed by `EdgeRule.extra`
            columns; None when all are carried unchanged.
    """

    expressions: tuple[Expression, ...] | None


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """A recursion R(group, node, value, payload) as a graph problem.

    For every value of the group columns there are sources (base rows) with a start value, and one
    graph whose edges are the same for all groups. The columns of R are those of `group`, `node`,
    `value` and `payload` together, each once.

    Attributes:
        title: For EXPLAIN: "reachable", "cheapest", "hops", "widest", "nearest", …
        group: Columns carried along unchanged, each combination a problem of its own.
        node: Columns that a step replaces by columns of other relations.
        value: The column with the best value, or None without selection.
        payload: Columns that distinguish best rows of the same group and node.
        negated: Whether the greatest value is best; algorithms then work on -value.
        base: Rules that give whole rows of R.
        edges: Per step rule, a rule over leaves whose head is the node columns before the step,
            those after it, the weight (unless there is none) and the columns the payload reads.
        payload_rules: Per step rule, how it computes the payload.
    """

    kind: Kind
    title: str
    group: tuple[int, ...]
    node: tuple[int, ...]
    value: int | None
    payload: tuple[int, ...]
    negated: bool
    base: tuple[Rule, ...]
    edges: tuple[Rule, ...]
    payload_rules: tuple[PayloadRule, ...]
    weighted: bool


_ORDERED = (DataType.INTEGER, DataType.DOUBLE, DataType.TIMESTAMP, DataType.INTERVAL)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """How steps change the best value.

    Attributes:
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
