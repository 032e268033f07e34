"""What kernels work on: a recursion read as a graph problem."""

import enum
from dataclasses import dataclass

from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.expressions import Expression


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
