"""A window after a view or query that only selects rows and columns of streams."""

import enum
from collections.abc import Callable

import msgspec

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Filter,
    Plan,
    Project,
    Scan,
    SourceKind,
    UnionAll,
    Window,
    WindowKind,
)
from streamsql.algebra.past_times import History, HistoryKind


class NoWindow(enum.Enum):
    """Why a window cannot follow a relation: reason, and a hint where {} is the relation."""

    DERIVED = (
        "a derived row expires with the rows it is derived from",
        "put the window inside {}, after the stream, or write ISTREAM(SELECT …)",
    )
    WINDOWED = (
        "it has a window inside, and a row can leave only one",
        "remove the window inside {}, or this one",
    )
    STORED = ("rows of a stored table do not expire", "remove the window")
    PAST = (
        "an interval of the past has no clock that a window could follow",
        "write a condition on the time column, or FOR SYSTEM_TIME AS OF a time",
    )
    COUNTED = (
        "ROWS counts the rows of a stream as they are",
        "write a window by time (RANGE), or put ROWS inside {}, after the stream",
    )

    def explained(self, inside: str) -> tuple[str, str]:
        """Return reason and hint; `inside` says which definition to change."""
        reason, hint = self.value
        return reason, hint.format(inside)


def pushed(plan: Plan, kind: WindowKind, window: Callable[[Scan], Window]) -> Plan | NoWindow:
    """Return the plan with the window on its streams, or why that is not the same.

    A row of the relation has the event time of the row it is made from, so windows by time are the
    same on both sides of a filter, a projection and UNION ALL. ROWS takes the last rows, those
    whose values sort higher among equal times: it passes a projection that only renames.
    """
    match plan:
        case Scan(history=History(kind=HistoryKind.AS_OF)):
            return window(plan)
        case Scan(history=History(kind=HistoryKind.BETWEEN)):
            return NoWindow.PAST
        case Scan(kind=SourceKind.TABLE):
            return NoWindow.STORED
        case Scan() | Window(kind=WindowKind.UNBOUNDED):
            return window(plan if isinstance(plan, Scan) else plan.input)
        case Window():
            return NoWindow.WINDOWED
        case UnionAll(branches=branches):
            if kind == WindowKind.ROWS:
                return NoWindow.COUNTED
            made: list[Plan] = []
            for branch in branches:
                below = pushed(branch, kind, window)
                if isinstance(below, NoWindow):
                    return below
                made.append(below)
            return UnionAll(tuple(made))
        case Filter(input=child) | Project(input=child):
            if kind == WindowKind.ROWS and not _renames(plan):
                return NoWindow.COUNTED
            below = pushed(child, kind, window)
            if isinstance(below, NoWindow):
                return below
            return msgspec.structs.replace(plan, input=below)
        case _:
            return NoWindow.DERIVED


def _renames(plan: Plan) -> bool:
    """Whether a plan has the same rows as its input."""
    return (
        isinstance(plan, Project)
        and len(plan.expressions) == len(plan.input.schema)
        and all(
            isinstance(expression, Column) and expression.position == position
            for position, expression in enumerate(plan.expressions)
        )
    )
