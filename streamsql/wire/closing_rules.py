"""Rules for rows of a channel that belong to closed windows, and need not be kept.

Both ends of a channel derive the same rules from the same bundle. A rule speaks of the only place
at which a port is read: below EMIT ON WINDOW CLOSE. Where the rows are read elsewhere too, nothing
is discarded.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    OnClose,
    Plan,
    Project,
    RemoteSource,
    SessionWindow,
    UnionAll,
    walk_plan,
)
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class ClosingRule:
    """A condition on a column: no window of the row is open any more.

    Attributes:
        column: A time: of the event, or the end of a window.
        size: From the start of a window to its end; 0 for a column that is an end.
        hop: Between two starts.
        offset: Start of one of them.
        session: The windows are sessions: the watermark does not determine which of them are open.
        keeps_rows: An operator between here and the groups keeps the rows until they are retracted.
    """

    column: int
    size: int = 0
    hop: int = 1
    offset: int = 0
    session: bool = False
    keeps_rows: bool = False

    def bound(self, closed: int, oldest_open: int | None = None) -> int:
        """Return the value of the column below which all windows have ended by a watermark.

        Args:
            closed: The watermark.
            oldest_open: Where the oldest open session starts; None: none is open.

        Examples:
            >>> ClosingRule(0, size=10, hop=5).bound(22)  # of 14 the last window is [10, 20)
            15
            >>> ClosingRule(0).bound(22)
            23
        """
        if self.session:
            ended = closed - self.size + 1
            return ended if oldest_open is None else min(ended, oldest_open)
        last = (closed - self.size - self.offset) // self.hop
        return last * self.hop + self.hop + self.offset


def closing_rules(bundle: FragmentBundle) -> dict[str, ClosingRule]:
    """Return the rules by port, of every port whose rows all end in windows that close."""
    read = Counter[str]()
    found: dict[str, ClosingRule] = {}
    for fragment in bundle.fragments:
        for node in walk_plan(fragment.plan):
            if isinstance(node, RemoteSource):
                read[node.fragment] += 1
            if isinstance(node, OnClose) and isinstance(node.left, Aggregate):
                end = node.left.group[node.end]
                found.update(_rules(node.left.input, end, keeps_rows=False))
    return {port: rule for port, rule in found.items() if read[port] == 1}


def _rules(plan: Plan, position: int, *, keeps_rows: bool) -> Iterator[tuple[str, ClosingRule]]:
    """Yield the ports from which the end of a window comes."""
    match plan:
        case RemoteSource(fragment=port):
            yield port, ClosingRule(position, keeps_rows=keeps_rows)
        case Filter(input=child):
            yield from _rules(child, position, keeps_rows=keeps_rows)
        case Project(input=child, expressions=expressions):
            expression = expressions[position]
            if isinstance(expression, Column):
                yield from _rules(child, expression.position, keeps_rows=keeps_rows)
        case Join(left=left, right=right, kind=kind):
            width = len(left.schema)
            if position < width:
                yield from _rules(left, position, keeps_rows=True)
            elif kind == JoinKind.INNER:
                yield from _rules(right, position - width, keeps_rows=True)
        case HopWindow(input=child, time=time, size=size, hop=hop, offset=offset):
            if position == len(child.schema) + 1:
                for port, column in _columns(child, time):
                    yield port, ClosingRule(column, size, hop, offset, keeps_rows=keeps_rows)
        case SessionWindow(input=child, time=time, gap=gap):
            if position == len(child.schema) + 1:
                for port, column in _columns(child, time):  # the operator discards by itself
                    yield port, ClosingRule(column, gap, session=True)
        case _:
            return


def _columns(plan: Plan, position: int) -> Iterator[tuple[str, int]]:
    """Yield the ports and columns from which the time of a window comes."""
    match plan:
        case RemoteSource(fragment=port):
            yield port, position
        case Filter(input=child):
            yield from _columns(child, position)
        case Project(input=child, expressions=expressions):
            expression = expressions[position]
            if isinstance(expression, Column):
                yield from _columns(child, expression.position)
        case UnionAll(branches=branches):
            for branch in branches:
                yield from _columns(branch, position)
        case _:
            return
