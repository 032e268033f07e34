"""How far a plan's supports can be trusted when base rows go.

Without aggregates and left joins a row holds exactly as long as one of its supports is there. The
others bring rows *into* being when base rows go: a smaller count, a row padded with NULLs, a next
best path. So the columns whose values change that way are followed up the plan:

- as long as a row shows them all, it is told apart from the rows that come, and its supports say
  all;
- where they are dropped (`SELECT gateway … HAVING COUNT(*) > 2`), a row that comes may be equal to
  it: each support still suffices, but the row may outlive them all (*loose*);
- where rows that come are counted, compared or looked for by another aggregate, outer, anti or
  as-of join, EXCEPT or TopN, they may take the row away although a support is there (*disturbed*).
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from streamsql.algebra.explain import describe
from streamsql.algebra.expressions import Column, Expression, columns_of
from streamsql.algebra.operators import (
    Aggregate,
    AggregateFunction,
    AggregateSelection,
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
    SetKind,
    SetOperation,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    Younger,
    refers_to,
)
from streamsql.errors import UnsupportedError


class NewValue(Enum):
    """How the new values of a column compare with the current one of their group."""

    NOT_LESS = auto()
    NOT_GREATER = auto()
    ANY = auto()


Changing = dict[int, NewValue]
"""Columns that tell new rows from current ones."""

_BESTS = {
    AggregateFunction.MIN: NewValue.NOT_LESS,
    AggregateFunction.MAX: NewValue.NOT_GREATER,
    AggregateFunction.ARG_MIN: NewValue.NOT_LESS,
    AggregateFunction.ARG_MAX: NewValue.NOT_GREATER,
}
_COUNTS = (AggregateFunction.COUNT, AggregateFunction.COUNT_ALL)


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """How far supports can be trusted.

    Attributes:
        loose: A row may hold without any of its supports.
        disturbed: A row may go in spite of one of its supports.
    """

    loose: bool
    disturbed: bool


def faithfulness_of(plan: Plan) -> Faithfulness:
    """Return how far the supports of a plan's rows can be trusted."""
    analysis = _Analysis()
    analysis.visit(plan)
    return Faithfulness(analysis.loose or analysis.disturbed, analysis.disturbed)


@dataclass(slots=True)
class _Analysis:
    """Walks a plan bottom-up.

    Attributes:
        loose: Some operator drops a column that tells new rows from current ones.
        disturbed: Some operator lets new rows remove others.
    """

    loose: bool = False
    disturbed: bool = False
    _seen: dict[Plan, Changing] = field(default_factory=dict)

    def visit(self, plan: Plan) -> Changing:
        """Return the changing columns of a plan."""
        known = self._seen.get(plan)
        if known is None:
            known = self._seen[plan] = self._changing(plan)
        return known

    def _changing(self, plan: Plan) -> Changing:
        match plan:
            case Scan() | Window() | Values() | RemoteSource() | RecursiveReference():
                return {}
            case Filter() | Distinct() | HopWindow() | Materialize():
                return self.visit(plan.input)
            case TopN(input=child, offset=offset):
                # What moves up tells itself apart by any column; what was skipped may move, too.
                self.visit(child)
                self.disturbed = self.disturbed or _brings(child) or offset > 0
                return _all_columns(plan)
            case AsOfJoin() | SetOperation():
                return self._of_two(plan)
            case SessionWindow():
                return self._of_session(plan)
            case (
                OverWindow() | OnClose() | ToStream() | StreamWindow() | WindowBounds() | Younger()
            ):
                raise unexplained(plan)
            case Project():
                return self._of_project(plan)
            case Join():
                return self._of_join(plan)
            case UnionAll(branches=branches):
                return self._of_union(branches)
            case Aggregate():
                return self._of_aggregate(plan)
            case Fixpoint():
                return self._of_fixpoint(plan)

    def _of_project(self, plan: Project) -> Changing:
        below = self.visit(plan.input)
        shown = {e.position for e in plan.expressions if isinstance(e, Column)}
        self.loose = self.loose or not below.keys() <= shown
        return {
            position: below[expression.position]
            for position, expression in enumerate(plan.expressions)
            if isinstance(expression, Column) and expression.position in below
        }

    def _of_session(self, plan: SessionWindow) -> Changing:
        below = self.visit(plan.input)
        # The bounds stand as long as all rows of the session do, and often with fewer.
        self.loose = True
        self.disturbed = self.disturbed or _brings(plan.input)
        width = len(plan.input.schema)
        return dict.fromkeys((*below, width, width + 1), NewValue.ANY)

    def _of_two(self, plan: AsOfJoin | SetOperation) -> Changing:
        below = {**self.visit(plan.left), **self.visit(plan.right)}
        # Of many copies fewer may do.
        self.loose = self.loose or (isinstance(plan, SetOperation) and plan.all)
        if isinstance(plan, SetOperation) and plan.kind == SetKind.INTERSECT:
            return dict.fromkeys(below, NewValue.ANY)
        # A right row that comes takes a left row away, or is found instead of an older one.
        self.disturbed = self.disturbed or _brings(plan.right)
        return _all_columns(plan)

    def _of_filtering_join(self, plan: Join) -> Changing:
        left, right = self.visit(plan.left), self.visit(plan.right)
        if plan.kind == JoinKind.ANTI:
            self.disturbed = self.disturbed or _brings(plan.right)
            return _all_columns(plan)
        self.loose = self.loose or bool(right)  # another partner may come
        return dict.fromkeys(left, NewValue.ANY)

    def _of_join(self, plan: Join) -> Changing:
        if plan.kind.is_filter:
            return self._of_filtering_join(plan)
        left = dict.fromkeys(self.visit(plan.left), NewValue.ANY)
        width = len(plan.left.schema)
        if plan.kind == JoinKind.FULL:
            self.visit(plan.right)
            self.disturbed = self.disturbed or _brings(plan.left) or _brings(plan.right)
            return _all_columns(plan)
        if plan.kind == JoinKind.LEFT:
            # A left row whose partners go is there with NULLs; one that gets a partner is not.
            self.disturbed = self.disturbed or _brings(plan.right)
            padded = range(width, width + len(plan.right.schema))
            return {**left, **dict.fromkeys(padded, NewValue.ANY)}
        right = self.visit(plan.right)
        return {**left, **{position + width: NewValue.ANY for position in right}}

    def _of_union(self, branches: tuple[Plan, ...]) -> Changing:
        total: Changing = {}
        for branch in branches:
            for position, how in self.visit(branch).items():
                total[position] = how if total.get(position, how) == how else NewValue.ANY
        if total and any(total != self.visit(branch) for branch in branches):
            # A row that comes in one branch may equal a row of another.
            self.loose = True
        return total

    def _of_aggregate(self, plan: Aggregate) -> Changing:
        below = self.visit(plan.input)
        brings = _brings(plan.input)
        bests = {
            (_BESTS[call.function], call.arguments[0])
            for call in plan.aggregates
            if call.function in (AggregateFunction.MIN, AggregateFunction.MAX)
        }
        result = {i: below[p] for i, p in enumerate(plan.group) if p in below}
        if result and plan.aggregates:
            self.disturbed = True  # rows that come enter groups that are there
        compared: set[int] = set()
        for position, call in enumerate(plan.aggregates, start=len(plan.group)):
            how = _BESTS.get(call.function)
            result[position] = how or NewValue.ANY
            if how is None:
                # SUM and AVG come out the same from other rows.
                self.loose = self.loose or call.function not in _COUNTS
                self.disturbed = self.disturbed or brings
                continue
            chosen = call.arguments[-1]
            compared |= columns_of(chosen)
            self.loose = self.loose or (how, chosen) not in bests
            self.disturbed = self.disturbed or (brings and not _is_best(chosen, how, below))
        self.loose = self.loose or not below.keys() <= compared | set(plan.group)
        return result

    def _of_fixpoint(self, plan: Fixpoint) -> Changing:
        for branch in plan.base + plan.step:
            for leaf in _leaves(branch, plan.name):
                if _brings(leaf):
                    self.loose = True
                    self.disturbed = self.disturbed or plan.selection is not None
        if plan.selection is None:
            return {}
        return {
            best.value: NewValue.NOT_LESS if best.minimum else NewValue.NOT_GREATER
            for best in plan.selection.bests
        }


def unexplained(plan: Plan) -> UnsupportedError:
    """Return the error that rows of an operator have no supports."""
    rests = (
        "on every row before it"
        if isinstance(plan, OverWindow)
        else "on rows that have not arrived"
    )
    return UnsupportedError(
        f"rows of this operator cannot be explained: {describe(plan)}",
        hint=f"it depends {rests}; ask about its inputs",
    )


def _all_columns(plan: Plan) -> Changing:
    return dict.fromkeys(range(len(plan.schema)), NewValue.ANY)


def _brings(plan: Plan) -> bool:
    """Whether rows come into being in a plan when base rows go."""
    match plan:
        case TopN() | SessionWindow() | AsOfJoin() | SetOperation(kind=SetKind.EXCEPT):
            return True
        case Aggregate(aggregates=calls) if calls:
            return True
        case Join(kind=JoinKind.LEFT | JoinKind.FULL | JoinKind.ANTI):
            return True
        case Fixpoint(selection=AggregateSelection()):
            return True
        case _:
            return any(_brings(child) for child in plan.inputs)


def _is_best(chosen: Expression, how: NewValue, below: Changing) -> bool:
    """Whether rows that come never have a value as good as the best of now."""
    return isinstance(chosen, Column) and below.get(chosen.position) == how


def _leaves(branch: Plan, name: str) -> list[Plan]:
    """Return the maximal parts of a branch that do not read the recursive relation."""
    if isinstance(branch, RecursiveReference):
        return []
    if not refers_to(branch, name):
        return [branch]
    return [leaf for child in branch.inputs for leaf in _leaves(child, name)]
