"""Which columns of a recursion can take infinitely many values.

Base relations are finite, so a column that only copies values stays in a finite set. A column
computed from the recursive relation *grows* when the computation can be repeated: when it lies on
a cycle of dependences between columns. What stops it is

- a bound: the column moves by a constant in one direction and the step tests it
  (`hops + 1` with `hops < 12`); if no other branch moves it back, it also bounds how often the
  branch can be used, and so everything else the branch computes;
- a loop check: the step appends a value to a text and requires that the text did not contain it
  (`path NOT LIKE '%' || x || '%'`, `POSITION(x IN path) = 0`).
"""

from dataclasses import dataclass

from streamsql.algebra.expressions import Call, Column, Expression, Literal, expression_text
from streamsql.algebra.operators import Fixpoint, Plan, Project, RecursiveReference
from streamsql.binder.tracing import Trace, reads, trace
from streamsql.data.types import DataType

_SELECTORS = frozenset(
    ("LEAST", "GREATEST", "COALESCE", "CAST", "ABS", "ROUND", "FLOOR", "CEIL", "NEGATE")
)
_SHRINKING = frozenset(("LOWER", "UPPER", "TRIM", "SUBSTRING"))


@dataclass(frozen=True, slots=True)
class Growth:
    """A column that grows, and where.

    Attributes:
        column: Position in the recursive relation.
        branch: Number of the step branch, from 1.
        expression: What the branch computes, as text.
        tested: Whether the branch compares the column with something, in vain.
    """

    column: int
    branch: int
    expression: str
    tested: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    """Column `target` is computed from column `source` in a branch."""

    source: int
    target: int
    branch: int
    grows: bool


def step_traces(fixpoint: Fixpoint) -> tuple[Trace, ...]:
    """Return the step branches in terms of the recursive relation's columns."""

    def is_reference(plan: Plan) -> bool:
        return isinstance(plan, RecursiveReference) and plan.name == fixpoint.name

    return tuple(trace(branch, is_reference) for branch in fixpoint.step)


def growths(fixpoint: Fixpoint) -> tuple[Growth, ...]:
    """Return every column that can take infinitely many values; empty when the recursion ends."""
    traces = step_traces(fixpoint)
    width = len(fixpoint.columns)
    edges = [
        _Edge(source, target, number, grows)
        for number, step in enumerate(traces)
        for target, expression in enumerate(step.columns)
        for source, grows in _dependences(expression)
    ]
    stopped = {n for n in range(len(traces)) if _counts_down(n, traces, width)}
    # A loop check only counts when what it tests comes from a finite set without its help.
    growing = _unbounded(_kept(edges, stopped, traces)).keys()
    for number in range(len(traces)):
        if any(not (read & growing) for read in _loop_checks(number, traces)):
            stopped.add(number)
    unbounded = _unbounded(_kept(edges, stopped, traces))
    return tuple(
        Growth(
            column,
            branch + 1,
            _text(fixpoint.step[branch], column),
            _is_tested(column, traces[branch]),
        )
        for column, branch in sorted(unbounded.items())
    )


def _is_tested(column: int, step: Trace) -> bool:
    return any(
        isinstance(predicate, Call) and column in reads(predicate) for predicate in step.predicates
    )


def _text(branch: Plan, column: int) -> str:
    if isinstance(branch, Project):
        return expression_text(branch.expressions[column])
    return branch.schema.names[column]


def _kept(edges: list[_Edge], stopped: set[int], traces: tuple[Trace, ...]) -> list[_Edge]:
    """Return the edges; growth that something stops no longer counts as growth."""
    kept = []
    for edge in edges:
        grows = edge.grows and edge.branch not in stopped
        if grows and edge.source == edge.target:
            grows = not _is_bounded(edge.target, traces[edge.branch])
        kept.append(_Edge(edge.source, edge.target, edge.branch, grows))
    return kept


def _unbounded(edges: list[_Edge]) -> dict[int, int]:
    """Return growing columns with the branch in which each is computed."""
    result: dict[int, int] = {}
    for edge in edges:
        if edge.grows and edge.source in _reachable(edge.target, edges):
            result.setdefault(edge.target, edge.branch)
    for start in tuple(result):
        for column in _reachable(start, edges):
            branch = next((e.branch for e in edges if e.target == column), result[start])
            result.setdefault(column, branch)
    return result


def _reachable(start: int, edges: list[_Edge]) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        column = waiting.pop()
        for edge in edges:
            if edge.source == column and edge.target not in found:
                found.add(edge.target)
                waiting.append(edge.target)
    return found


def _dependences(expression: Expression) -> list[tuple[int, bool]]:
    """Return (column of the recursion, whether its values may grow here) pairs."""
    match expression:
        case Column():
            return [(position, False) for position in reads(expression)]
        case Literal():
            return []
        case Call(dtype=DataType.BOOLEAN):
            return []
        case Call(function="%", arguments=(_, Literal()), dtype=DataType.INTEGER):
            return []
        case Call(function="CASE", arguments=arguments):
            values = (*arguments[1:-1:2], arguments[-1])
            return [pair for value in values for pair in _dependences(value)]
        case Call(function=name, arguments=arguments) if name in _SELECTORS | _SHRINKING:
            return [pair for argument in arguments for pair in _dependences(argument)]
        case _:
            return [(position, True) for position in reads(expression)]


def constant_move(expression: Expression, column: int) -> float | None:
    """Return k when an expression is `column + k` for a constant k, else None.

    Examples:
        >>> hops = Column(0, "hops", DataType.INTEGER)
        >>> constant_move(Call("+", (hops, Literal(1, DataType.INTEGER)), DataType.INTEGER), 0)
        1
    """
    match expression:
        case Column(position=position):
            return 0 if position == column else None
        case Call(function="CAST", arguments=(inner,)) if expression.dtype.is_numeric:
            return constant_move(inner, column)
        case Call(function="+" | "-" as sign, arguments=(left, Literal(value=value))):
            return _moved(constant_move(left, column), value, negative=sign == "-")
        case Call(function="+", arguments=(Literal(value=value), right)):
            return _moved(constant_move(right, column), value, negative=False)
        case _:
            return None


def _moved(start: float | None, value: object, *, negative: bool) -> float | None:
    if start is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return start - value if negative else start + value


def _is_bounded(column: int, step: Trace) -> bool:
    """Whether a branch moves a column by a constant and tests it on that side."""
    move = constant_move(step.columns[column], column)
    return bool(move) and any(
        _limits(predicate, column, upward=move is not None and move > 0)
        for predicate in step.predicates
    )


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _limits(predicate: Expression, column: int, *, upward: bool) -> bool:
    match predicate:
        case Call(function="<" | "<=" | ">" | ">=" as operator, arguments=(left, right)):
            if reads(left) and reads(right):
                return False
            changing = right if reads(right) else left
            above = (_FLIPPED[operator] if reads(right) else operator) in ("<", "<=")
            return above == upward and constant_move(changing, column) is not None
        case _:
            return False


def _counts_down(branch: int, traces: tuple[Trace, ...], width: int) -> bool:
    """Whether a bounded counter limits how often a branch can be used."""
    for column in range(width):
        moves = [constant_move(step.columns[column], column) for step in traces]
        if not _is_bounded(column, traces[branch]):
            continue
        known = [move for move in moves if move is not None]
        own = moves[branch]
        if own is not None and len(known) == len(moves) and all(m * own >= 0 for m in known):
            return True
    return False


def _loop_checks(branch: int, traces: tuple[Trace, ...]) -> list[frozenset[int]]:
    """Return, for every loop check of a branch, the recursive columns that its values read."""
    step = traces[branch]
    found = []
    for predicate in step.predicates:
        check = _loop_check(predicate)
        if check is None:
            continue
        text, tested = check
        appended = _operands(step.columns[text])
        keeps = all(
            any(
                isinstance(o, Column) and o.position == text for o in _operands(other.columns[text])
            )
            for other in traces
        )
        if keeps and tested and all(value in appended for value in tested):
            found.append(frozenset(p for value in tested for p in reads(value)))
    return found


def _loop_check(predicate: Expression) -> tuple[int, list[Expression]] | None:
    """Return (text column, values it must not contain) of a loop check."""
    match predicate:
        case Call(function="NOT", arguments=(Call(function="LIKE", arguments=(text, pattern)),)):
            needle = pattern
        case Call(
            function="=",
            arguments=(
                Call(function="POSITION", arguments=(needle, text)),
                Literal(value=0),
            ),
        ):
            pass
        case Call(
            function="=",
            arguments=(
                Literal(value=0),
                Call(function="POSITION", arguments=(needle, text)),
            ),
        ):
            pass
        case Call(
            function="<",
            arguments=(
                Call(function="POSITION", arguments=(needle, text)),
                Literal(value=1),
            ),
        ):
            pass
        case _:
            return None
    if not isinstance(text, Column) or not reads(text):
        return None
    return text.position, [o for o in _operands(needle) if not isinstance(o, Literal)]


def _operands(expression: Expression) -> list[Expression]:
    match expression:
        case Call(function="||", arguments=arguments):
            return [operand for argument in arguments for operand in _operands(argument)]
        case _:
            return [expression]
