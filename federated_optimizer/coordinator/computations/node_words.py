"""A node's computation as a line of words like StreamSQL, and the kind of its topmost operator."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from federated_optimizer.coordinator.contract.network_model import NodeKind
from streamsql.algebra.explain import aggregate_text, describe, window_text
from streamsql.algebra.expressions import Column, expression_text
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    Younger,
)

LONGEST = 600
"""Characters of a line of words."""

Resolve = Callable[[str], Plan | str]
"""Gives what a `RemoteSource` reads: the plan of a fragment that is no node, or a node's name."""


def kind_of_node(plan: Plan, resolve: Resolve) -> NodeKind:
    """Return the kind of the topmost operator, filters and chosen columns left aside."""
    filtered = False
    while True:
        match plan:
            case Filter(input=below):
                plan, filtered = below, True
            case Project(input=below) | Materialize(input=below):
                plan = below
            case RemoteSource(fragment=fragment) if not isinstance(found := resolve(fragment), str):
                plan = found
            case _:
                break
    match plan:
        case Join() | AsOfJoin():
            return NodeKind.JOIN
        case Aggregate():
            return NodeKind.AGGREGATE
        case Distinct():
            return NodeKind.DISTINCT
        case SetOperation() | UnionAll():
            return NodeKind.SET_OPERATION
        case Fixpoint():
            return NodeKind.RECURSION
        case Window() | HopWindow() | SessionWindow() | StreamWindow() | OverWindow() | TopN():
            return NodeKind.WINDOW
        case WindowBounds() | Younger():
            return NodeKind.WINDOW
        case OnClose() | ToStream():
            return NodeKind.WINDOW
        case Scan() | RemoteSource() | RecursiveReference() | Values():
            return NodeKind.SELECTION if filtered else NodeKind.ROWS


def words_of(plan: Plan, resolve: Resolve) -> str:
    """Return what a plan computes in one line, cut at `LONGEST` characters.

    Columns that are only chosen are left out above operators that name their own.

    Examples:
        >>> from streamsql.algebra.expressions import Call, Literal
        >>> from streamsql.algebra.operators import SourceKind
        >>> from streamsql.data.schema import Schema
        >>> from streamsql.data.types import DataType
        >>> heat = Scan("heat", SourceKind.STREAM, Schema.of(("celsius", DataType.INTEGER)))
        >>> celsius = Column(0, "celsius", DataType.INTEGER)
        >>> warm = Call(">", (celsius, Literal(27, DataType.INTEGER)), DataType.BOOLEAN)
        >>> words_of(Filter(heat, warm), lambda name: name)
        'heat WHERE celsius > 27'
    """
    text = _phrase(plan, resolve).text
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A SELECT whose clauses are still open.

    Attributes:
        chosen: Whether its columns are only some of those below, none is computed.
    """

    source: str
    columns: str = ""
    chosen: bool = False
    where: tuple[str, ...] = ()
    group: str | None = None
    having: tuple[str, ...] = ()
    distinct: bool = False

    @property
    def is_source(self) -> bool:
        """Return whether the words name a relation by itself, which needs no brackets."""
        return self == _Phrase(self.source)

    @property
    def is_open(self) -> bool:
        """Return whether conditions may still be added to WHERE, or an aggregate put above."""
        return (self.chosen or not self.columns) and self.group is None and not self.distinct

    @property
    def text(self) -> str:
        columns = f"DISTINCT {self.columns or '*'}" if self.distinct else self.columns
        clauses = {
            "SELECT": f"{columns} FROM {self.source}" if columns else "",
            "": "" if columns else self.source,
            "WHERE": " AND ".join(self.where),
            "GROUP BY": self.group or "",
            "HAVING": " AND ".join(self.having),
        }
        return " ".join(f"{word} {said}".strip() for word, said in clauses.items() if said)

    @property
    def operand(self) -> str:
        """The words of what another operator reads, whichever of its columns."""
        if self.chosen and not self.distinct:
            return replace(self, columns="", chosen=False).operand
        return self.source if self.is_source else f"({self.text})"


def _phrase(plan: Plan, resolve: Resolve) -> _Phrase:
    match plan:
        case Scan(source=source):
            past = f" FOR SYSTEM_TIME {plan.history}" if plan.history is not None else ""
            return _Phrase(source + past)
        case RemoteSource(fragment=fragment):
            found = resolve(fragment)
            return _Phrase(f"node {found}") if isinstance(found, str) else _phrase(found, resolve)
        case RecursiveReference(name=name):
            return _Phrase(name)
        case Materialize(input=below):
            return _phrase(below, resolve)
        case Filter(input=below, predicate=predicate):
            return _filtered(_phrase(below, resolve), expression_text(predicate))
        case Project():
            return _chosen(plan, _phrase(plan.input, resolve))
        case Aggregate():
            return _grouped(plan, _phrase(plan.input, resolve))
        case Distinct(input=below):
            inner = _phrase(below, resolve)
            inner = inner if inner.group is None and not inner.distinct else _Phrase(inner.operand)
            return replace(inner, distinct=True)
        case Join():
            return _Phrase(_joined(plan, resolve))
        case Window(input=below) | StreamWindow(input=below):
            return _Phrase(f"{_phrase(below, resolve).operand} [{window_text(plan)}]")
        case Younger(left=rows):
            return _Phrase(f"{_phrase(rows, resolve).operand} [{window_text(plan)}]")
        case Fixpoint(name=name):
            branches = _united(plan.base + plan.step, "UNION", resolve)
            return _Phrase(f"RECURSIVE {name} AS ({branches})")
        case SetOperation(kind=kind):
            word = f"{kind.upper()} ALL" if plan.all else kind.upper()
            return _Phrase(f"({_united(plan.inputs, word, resolve)})")
        case UnionAll(branches=branches):
            return _Phrase(f"({_united(branches, 'UNION ALL', resolve)})")
        case _:
            inputs = ", ".join(_phrase(child, resolve).operand for child in plan.inputs)
            return _Phrase(f"{describe(plan)} OF {inputs}" if inputs else describe(plan))


def _filtered(inner: _Phrase, condition: str) -> _Phrase:
    if inner.group is not None and not inner.distinct:
        return replace(inner, having=(*inner.having, condition))
    opened = inner if inner.is_open else _Phrase(inner.operand)
    return replace(opened, where=(*opened.where, condition))


def _chosen(plan: Project, inner: _Phrase) -> _Phrase:
    only_columns = all(isinstance(expression, Column) for expression in plan.expressions)
    if not inner.is_open:
        if only_columns:
            return inner
        inner = _Phrase(inner.operand)
    shown = []
    for expression, name in zip(plan.expressions, plan.names, strict=True):
        text = expression_text(expression)
        shown.append(text if text == name else f"{text} AS {name}")
    return replace(inner, columns=", ".join(shown) or "no columns", chosen=only_columns)


def _grouped(plan: Aggregate, inner: _Phrase) -> _Phrase:
    keys = ", ".join(plan.input.schema.names[position] for position in plan.group)
    calls = ", ".join(map(aggregate_text, plan.aggregates))
    # Columns that are only chosen below a group are those that it reads.
    below = inner if inner.is_open else _Phrase(inner.operand)
    columns = ", ".join(filter(None, (keys, calls)))
    return replace(below, columns=columns, chosen=False, group=keys)


def _joined(join: Join, resolve: Resolve) -> str:
    left, right = join.left.schema.names, join.right.schema.names
    names = [(left[a], right[b]) for a, b in join.keys]
    alike = all(a == b for a, b in names) and join.residual is None
    conditions = [f"{a} = {b}" for a, b in names]
    if join.residual is not None:
        conditions.append(expression_text(join.residual))
    on = f" ON {' AND '.join(conditions)}" if conditions else ""
    if names and alike:
        on = f" USING ({', '.join(name for name, _ in names)})"
    kind = "" if join.kind == JoinKind.INNER else f"{join.kind.upper()} "
    sides = (_phrase(side, resolve).operand for side in (join.left, join.right))
    return f" {kind}JOIN ".join(sides) + on


def _united(branches: Iterable[Plan], word: str, resolve: Resolve) -> str:
    return f" {word} ".join(_phrase(branch, resolve).text for branch in branches)
