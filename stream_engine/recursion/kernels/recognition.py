"""Find out whether a recursion is a graph problem.

A step rule must have the form  R(p, k, v) ⋈ E(k, k', w) -> R(p, k', v ⊕ w):  p is carried along
unchanged, k is joined by equality and replaced by columns of the other atoms, and v is the column
that an aggregate selection minimises or maximises. The other atoms with all their predicates are
the edge relation E; several step rules make one graph.
"""

from collections.abc import Iterable

from stream_engine.recursion.kernels.graph_problem import (
    GraphProblem,
    Kind,
    PayloadRule,
    ValueRule,
    value_rule,
)
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import RECURSIVE, Rule
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    map_columns,
)
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.types import DataType


class NotAGraphProblemError(Exception):
    """The recursion has another shape; the text says where it differs."""


def recognise(program: Program) -> GraphProblem:
    """Return the graph problem that a recursion is.

    Raises:
        NotAGraphProblemError: It is none; the text is a reason for EXPLAIN.
    """
    steps = [_Step(rule) for rule in program.rules if rule.is_step]
    base = tuple(rule for rule in program.rules if not rule.is_step)
    if not steps:
        raise NotAGraphProblemError("no rule reads the relation itself")
    value = _value_column(program.selection)
    node, carried, computed = _classified(program, steps, value)
    for step in steps:
        step.check_edges()
    group, payload = _grouped(program, node, carried, computed, value)
    values = _value_rule(program, steps, value)
    if payload and values.kind is Kind.PLATEAU and values.weights[0] is not None:
        raise NotAGraphProblemError(
            "with LEAST or GREATEST, best rows that differ in other columns may depend on "
            "worse rows"
        )
    extras = [step.payload_columns(payload) for step in steps]
    if not node:
        raise NotAGraphProblemError("no column is joined with another relation")
    return GraphProblem(
        kind=values.kind,
        title=_title(values, payload, grouped=bool(group)),
        group=group,
        node=node,
        value=value,
        payload=payload,
        negated=values.negated,
        base=base,
        edges=tuple(
            step.edge_rule(node, values.weights[i], extras[i]) for i, step in enumerate(steps)
        ),
        payload_rules=tuple(
            step.payload_rule(payload, extras[i], program.width) for i, step in enumerate(steps)
        ),
        weighted=values.weights[0] is not None,
    )


class _Step:
    """A step rule with the relation's columns replaced by what they are joined with.

    Attributes:
        bound: Per column of the relation that an equality fixes, the expression over other atoms.
    """

    def __init__(self, rule: Rule) -> None:
        if not rule.is_linear:
            raise NotAGraphProblemError("a rule reads the relation more than once")
        self.rule = rule
        at = rule.atoms.index(RECURSIVE)
        self.start = rule.offsets[at]
        self.width = rule.widths[at]
        if len(rule.atoms) == 1:
            raise NotAGraphProblemError("a rule reads no other relation")
        self.bound: dict[int, Expression] = {}
        rest: list[Expression] = []
        for predicate in rule.predicates:
            pair = self._equality(predicate)
            if pair is None or pair[0] in self.bound:
                rest.append(predicate)
            else:
                self.bound[pair[0]] = pair[1]
        self.predicates = tuple(self._replaced(p) for p in rest)
        self.head = tuple(self._replaced(e) for e in rule.head)

    def own(self, expression: Expression) -> set[int]:
        end = self.start + self.width
        return {c - self.start for c in columns_of(expression) if self.start <= c < end}

    def is_unchanged(self, column: int) -> bool:
        head = self.rule.head[column]
        return isinstance(head, Column) and head.position == self.start + column

    def check_edges(self) -> None:
        """Refuse edges that depend on the relation, or that join nothing.

        Raises:
            NotAGraphProblemError: They do.
        """
        for predicate in self.predicates:
            if self.own(predicate):
                raise NotAGraphProblemError(
                    f"a condition reads column {self.name(min(self.own(predicate)))} of "
                    "the relation without joining it"
                )
        groups = [{i} for i, atom in enumerate(self.rule.atoms) if atom != RECURSIVE]
        for predicate in self.predicates:
            read = {self._atom(position) for position in columns_of(predicate)}
            touched = [group for group in groups if group & read]
            if touched:
                groups = [group for group in groups if not group & read]
                groups.append(set().union(*touched))
        if len(groups) > 1:
            raise NotAGraphProblemError(
                "only the recursive relation joins the other relations of a rule"
            )

    def name(self, column: int) -> str:
        """Return the name of a column of the relation, as far as the rule tells."""
        for expression in self.rule.predicates + self.rule.head:
            for read in _columns(expression):
                if read.position == self.start + column and read.name:
                    return read.name
        return f"number {column + 1}"

    def payload_columns(self, payload: tuple[int, ...]) -> tuple[int, ...]:
        if self._carries(payload):
            return ()
        read: set[int] = set()
        for column in payload:
            read |= columns_of(self.rule.head[column])
        end = self.start + self.width
        return tuple(sorted(c for c in read if not self.start <= c < end))

    def payload_rule(
        self, payload: tuple[int, ...], extra: tuple[int, ...], width: int
    ) -> PayloadRule:
        if self._carries(payload):
            return PayloadRule(None)

        def place(column: Column) -> Expression:
            if column.position in extra:
                position = width + extra.index(column.position)
            else:
                position = column.position - self.start
            return Column(position, column.name, column.dtype)

        return PayloadRule(tuple(map_columns(self.rule.head[c], place) for c in payload))

    def edge_rule(
        self, node: tuple[int, ...], weight: Expression | None, extra: tuple[int, ...]
    ) -> Rule:
        types = {c.position: c for e in self.rule.head for c in _columns(e)}
        head = tuple(self.bound[c] for c in node) + tuple(self.head[c] for c in node)
        head += () if weight is None else (weight,)
        head += tuple(types[c] for c in extra)

        def drop(column: Column) -> Expression:
            after = column.position > self.start
            position = column.position - self.width if after else column.position
            return Column(position, column.name, column.dtype)

        kept = [i for i, atom in enumerate(self.rule.atoms) if atom != RECURSIVE]
        return Rule(
            tuple(self.rule.atoms[i] for i in kept),
            tuple(self.rule.widths[i] for i in kept),
            tuple(map_columns(p, drop) for p in self.predicates),
            tuple(map_columns(e, drop) for e in head),
        )

    def _carries(self, payload: tuple[int, ...]) -> bool:
        return all(self.is_unchanged(column) for column in payload)

    def _equality(self, predicate: Expression) -> tuple[int, Expression] | None:
        """Return the column of the relation that a predicate equates with others, and with what."""
        if not isinstance(predicate, Call) or predicate.function != "=":
            return None
        left, right = predicate.arguments
        for mine, other in ((left, right), (right, left)):
            if isinstance(mine, Column) and self.own(mine) and not self.own(other):
                return mine.position - self.start, other
        return None

    def _replaced(self, expression: Expression) -> Expression:
        def replace(column: Column) -> Expression:
            return self.bound.get(column.position - self.start, column)

        own = {self.start + c for c in self.bound}
        return map_columns(expression, lambda c: replace(c) if c.position in own else c)

    def _atom(self, position: int) -> int:
        offsets = self.rule.offsets
        return max(i for i in range(len(offsets)) if offsets[i] <= position)


def _columns(expression: Expression) -> Iterable[Column]:
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _columns(argument)


def _value_column(selection: AggregateSelection | None) -> int | None:
    if selection is None:
        return None
    if len(selection.bests) > 1:
        raise NotAGraphProblemError("several aggregates select at once")
    return selection.bests[0].value


def _classified(
    program: Program, steps: list[_Step], value: int | None
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    node: list[int] = []
    carried: list[int] = []
    computed: list[int] = []
    for column in range(program.width):
        bound = sum(column in step.bound for step in steps)
        if column == value:
            if bound:
                raise NotAGraphProblemError(f"the best value {steps[0].name(column)} is joined")
        elif bound == len(steps):
            node.append(column)
            if any(step.own(step.head[column]) for step in steps):
                raise NotAGraphProblemError(
                    f"column {steps[0].name(column)} is joined, and computed from the relation"
                )
        elif bound:
            raise NotAGraphProblemError(f"column {steps[0].name(column)} is joined in some rules")
        elif all(step.is_unchanged(column) for step in steps):
            carried.append(column)
        else:
            computed.append(column)
    return tuple(node), tuple(carried), tuple(computed)


def _grouped(
    program: Program,
    node: tuple[int, ...],
    carried: tuple[int, ...],
    computed: tuple[int, ...],
    value: int | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if program.selection is None:
        if computed:
            raise NotAGraphProblemError(
                f"column number {computed[0] + 1} is computed step by step, but no MIN or "
                "MAX selects by it"
            )
        return carried, ()
    chosen = set(program.selection.group)
    if not chosen.issuperset(node):
        raise NotAGraphProblemError("the best rows are not selected per node")
    if not chosen.issubset(node + carried):
        raise NotAGraphProblemError("a computed column selects the best rows")
    rest = [c for c in (*carried, *computed) if c not in chosen and c != value]
    return tuple(c for c in carried if c in chosen), tuple(sorted(rest))


def _value_rule(program: Program, steps: list[_Step], value: int | None) -> ValueRule:
    if value is None or program.selection is None:
        return ValueRule(Kind.REACH, "reachable", negated=False, weights=(None,) * len(steps))
    minimum = program.selection.bests[0].minimum
    heads = []
    for step in steps:
        mine = Column(step.start + value, "", DataType.NULL)
        heads.append((step.head[value], mine.position))
        if step.own(step.head[value]) - {value}:
            raise NotAGraphProblemError("the best value is computed from other columns")
    try:
        return value_rule(heads, minimum=minimum)
    except ValueError as error:
        raise NotAGraphProblemError(str(error)) from None


def _title(values: ValueRule, payload: tuple[int, ...], *, grouped: bool) -> str:
    if values.kind is Kind.COST and not grouped and values.title != "hops":
        return "nearest"
    return f"{values.title} with all best rows" if payload else values.title
