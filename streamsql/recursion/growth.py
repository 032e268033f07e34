"""Columns of a recursion that can take infinitely many values.

Base relations are finite, so a column that only copies values stays in a finite set. A column
computed from the recursive relation *grows* when the computation can be repeated: when it lies on
a cycle of dependences between columns. What stops it is

- a bound: the column moves by a constant in one direction and the step tests it
  (`hops + 1` with `hops < 12`); if no other branch moves it back, it also bounds how often the
  branch can be used, and so everything else the branch computes. On a cycle through several
  relations one test is enough;
- a limited sum of positive values (`a.hops + b.hops` with `a.hops + b.hops < 12` and a base of 1);
- a loop check: the step appends a value to a text and requires that the text did not contain it
  (`path NOT LIKE '%' || x || '%'`, `POSITION(x IN path) = 0`).

Mutually recursive relations are one relation with a tag; their columns are kept apart.
"""

from dataclasses import dataclass, replace

from streamsql.algebra.expressions import Call, Column, Expression, Literal, expression_text
from streamsql.algebra.operators import Fixpoint, Plan, Project, RecursiveReference
from streamsql.data.types import DataType
from streamsql.recursion.column_tracing import Trace, reads, trace
from streamsql.recursion.components import components
from streamsql.recursion.loop_bounds import (
    Passages,
    constant_move,
    counted,
    is_limited,
    is_limited_sum,
    loop_checks,
    positive_sums,
    summed,
)

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
        relation: Which of several mutually recursive relations the branch belongs to, or "".
    """

    column: int
    branch: int
    expression: str
    tested: bool = False
    relation: str = ""


_Node = tuple[str, int]
"""A column of a relation: its tag, or "" when there is one relation only, and its position."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """Column `target` is computed from column `source` in a branch.

    Attributes:
        occurrence: Which reading of the relation the source belongs to.
        move: The constant that is added, if that is all.
        below: Whether the branch tests that the source is below a bound; `above` likewise.
    """

    source: _Node
    target: _Node
    branch: int
    occurrence: int
    grows: bool
    move: float | None
    below: bool
    above: bool


def step_traces(fixpoint: Fixpoint) -> tuple[Trace, ...]:
    """Return the step branches in terms of the recursive relation's columns."""

    def is_reference(plan: Plan) -> bool:
        return isinstance(plan, RecursiveReference) and plan.name == fixpoint.name

    return tuple(trace(branch, is_reference) for branch in fixpoint.step)


def step_tags(traces: tuple[Trace, ...]) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """Return per step branch the tag it writes and the tags it reads.

    Returns:
        None when some branch does not write a constant text into the first column, or does not
        test the first column of all that it reads: then there is one relation only.
    """
    found = []
    for step in traces:
        written = step.columns[0]
        read = [_tag_read(occurrence, step) for occurrence in range(step.occurrences)]
        if not isinstance(written, Literal) or not isinstance(written.value, str):
            return None
        if any(tag is None for tag in read):
            return None
        found.append((written.value, tuple(tag for tag in read if tag is not None)))
    return tuple(found)


def _tag_read(occurrence: int, step: Trace) -> str | None:
    for predicate in step.predicates:
        match predicate:
            case Call(
                function="=", arguments=(Column(position=position), Literal(value=str() as tag))
            ) if position == occurrence * step.width:
                return tag
            case _:
                pass
    return None


def is_mutual(fixpoint: Fixpoint) -> bool:
    """Whether a fixpoint stands for several relations that define each other."""
    tags = step_tags(step_traces(fixpoint))
    return tags is not None and len({written for written, _ in tags}) > 1


def growths(fixpoint: Fixpoint) -> tuple[Growth, ...]:
    """Return every column that can take infinitely many values; empty when the recursion ends."""
    traces = step_traces(fixpoint)
    tags = _tags(traces)
    edges, stopped = _stopped(fixpoint, traces)
    return tuple(
        Growth(
            column,
            branch + 1,
            _text(fixpoint.step[branch], column),
            _is_tested(column, traces[branch]),
            tags[branch][0],
        )
        for (_, column), branch in sorted(
            _unbounded(edges, stopped).items(), key=lambda item: (item[0][1], item[0][0])
        )
    )


def endless_step(fixpoint: Fixpoint) -> int | None:
    """Return the number, from 1, of a step that a chain of derivations may use without end.

    None where a counter, a sum or a loop check stops every step.
    """
    traces = step_traces(fixpoint)
    _, stopped = _stopped(fixpoint, traces)
    for number, step in enumerate(traces):
        if any((number, occurrence) not in stopped for occurrence in range(step.occurrences)):
            return number + 1
    return None


def _tags(traces: tuple[Trace, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    most = max((t.occurrences for t in traces), default=0)
    return step_tags(traces) or (("", ("",) * most),) * len(traces)


def _stopped(fixpoint: Fixpoint, traces: tuple[Trace, ...]) -> tuple[list[_Edge], Passages]:
    """Return the dependences of columns, and the passages that chains use so often and no more."""
    tags = _tags(traces)
    positive = positive_sums(fixpoint.base, traces)
    edges = [
        edge
        for number, step in enumerate(traces)
        for edge in _edges(number, step, tags[number], positive)
    ]
    stopped = counted(traces) | summed(fixpoint.base, traces)
    # A loop check only counts when what it tests comes from a finite set without its help.
    growing = {column for _, column in _unbounded(edges, stopped)}
    for number in range(len(traces)):
        stopped |= {(number, k) for k, read in loop_checks(number, traces) if not read & growing}
    return edges, stopped


def _is_tested(column: int, step: Trace) -> bool:
    return any(
        isinstance(predicate, Call) and column in step.columns_read(predicate)
        for predicate in step.predicates
    )


def _text(branch: Plan, column: int) -> str:
    if isinstance(branch, Project):
        return expression_text(branch.expressions[column])
    return branch.schema.names[column]


def _edges(
    branch: int, step: Trace, tags: tuple[str, tuple[str, ...]], positive: frozenset[int]
) -> list[_Edge]:
    """Return the dependences of a branch; growth that a test keeps finite no longer counts."""
    written, read = tags
    found = []
    for target, expression in enumerate(step.columns):
        limited = is_limited_sum(target, step, positive)
        for position, grows in _dependences(expression):
            source, occurrence = step.column_of(position), step.occurrence_of(position)
            edge = _Edge(
                source=(read[occurrence], source),
                target=(written, target),
                branch=branch,
                occurrence=occurrence,
                grows=grows and not (limited and source == target),
                move=constant_move(expression, position),
                below=is_limited(position, step, upward=True),
                above=is_limited(position, step, upward=False),
            )
            found.append(replace(edge, grows=edge.grows and not _is_bounded(edge)))
    return found


def _is_bounded(edge: _Edge) -> bool:
    """Whether a branch moves a column by a constant and tests it on that side."""
    if edge.source != edge.target or not edge.move:
        return False
    return edge.below if edge.move > 0 else edge.above


def _unbounded(edges: list[_Edge], stopped: Passages) -> dict[_Node, int]:
    """Return growing columns with the branch in which each is computed.

    A stopped passage is used so often and no more, and between two uses of it a chain of
    derivations goes on through the others only: growth must come from a cycle of those.
    """
    kept = [edge for edge in edges if (edge.branch, edge.occurrence) not in stopped]
    result = _growing_cycles(kept)
    for start in tuple(result):
        for node in _reachable(start, edges):
            branch = next((e.branch for e in edges if e.target == node), result[start])
            result.setdefault(node, branch)
    return result


def _growing_cycles(edges: list[_Edge]) -> dict[_Node, int]:
    """Return the columns on cycles with an edge that grows, with the branch of that edge."""
    nodes = list(dict.fromkeys(node for edge in edges for node in (edge.source, edge.target)))
    reads_of: dict[_Node, list[_Node]] = {}
    for edge in edges:
        reads_of.setdefault(edge.target, []).append(edge.source)
    result: dict[_Node, int] = {}
    for members in components(nodes, reads_of):
        inner = [e for e in edges if e.source in members and e.target in members]
        if not any(edge.grows for edge in inner):
            continue
        kept = _without_tested(inner)
        if len(kept) < len(inner):
            result |= _growing_cycles(kept)
        else:
            result |= {edge.target: edge.branch for edge in reversed(inner) if edge.grows}
    return result


def _without_tested(edges: list[_Edge]) -> list[_Edge]:
    """Leave out tested edges where all edges move their column by constants in one direction.

    Values then go one way only, and none gets through a tested edge beyond its bound.
    """
    moves = [edge.move for edge in edges]
    if all(move is not None and move >= 0 for move in moves):
        return [edge for edge in edges if not edge.below]
    if all(move is not None and move <= 0 for move in moves):
        return [edge for edge in edges if not edge.above]
    return edges


def _reachable(start: _Node, edges: list[_Edge]) -> set[_Node]:
    found, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        for edge in edges:
            if edge.source == node and edge.target not in found:
                found.add(edge.target)
                waiting.append(edge.target)
    return found


def _dependences(expression: Expression) -> list[tuple[int, bool]]:
    """Return (position in the recursion, whether its values may grow here) pairs."""
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
