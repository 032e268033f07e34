"""Shorter windows from rows of longer ones over the same source.

| wanted                | rows that are delivered                                          |
|-----------------------|------------------------------------------------------------------|
| RANGE s               | RANGE l, l >= s; all rows of the source                          |
| RANGE s SLIDE p       | RANGE l, l >= s + p; all rows of the source                      |
| NOW                   | RANGE l, l >= 1 s; all rows of the source                        |

A window holds rows by their event time and the clock of the site that has the source. So the rows
have to show the event time, as a column of the source, and the sites that send them send the bounds
of the shorter window, too: `Younger` over rows and `WindowBounds`. The base asks no clock, so it
does not matter that clocks differ. Bounds change when a row crosses one by time, so there are no
more changes of them than rows that would have come into a window of its own, or left it.

Refused, in words (`why_not`): a source without a column for the event time; a longer window that
moves in steps, which may still lack rows that the shorter one has, or that is by count, as which
rows are last depends on all of them; rows of other sites.
"""

from federated_optimizer.sharing.forms.blocks import block_of
from federated_optimizer.sharing.refusals import NotSharedError
from streamsql.algebra.expressions import Column, conjunction
from streamsql.algebra.operators import (
    BOUNDS_COLUMNS,
    Filter,
    Plan,
    RemoteSource,
    Scan,
    Window,
    WindowBounds,
    WindowKind,
    Younger,
    transform_up,
    with_inputs,
)
from streamsql.data.types import MICROSECONDS


def window_of(plan: Plan) -> Window | None:
    """Return the window by time of which a plan selects rows; None: it does something else."""
    inputs = block_of(plan).inputs
    match inputs:
        case (Window(kind=WindowKind.RANGE | WindowKind.NOW) as window,):
            return window
        case _:
            return None


def why_not(shorter: Window, longer: Plan) -> str:
    """Return why the rows of a window cannot come from those of a plan; empty: they can."""
    scan = longer.input if isinstance(longer, Window) else longer
    if scan != shorter.input or not isinstance(scan, Scan):
        return "the rows are of another source"
    if scan.history is not None:
        return "the past has its own time"
    if scan.time_column is None:
        return f"no column of {scan.source} is the event time, so its rows do not say when they go"
    if not isinstance(longer, Window) or longer.kind == WindowKind.UNBOUNDED:
        return ""
    if longer.kind != WindowKind.RANGE:
        return "which rows the other window holds depends on more than how old they are"
    if longer.slide is not None:
        return "the other window moves in steps, so it may lack what has come since"
    if (longer.size or 0) < _reach(shorter):
        return "the other window does not reach back as far"
    return ""


def length_of(plan: Plan) -> float:
    """Return the length of a window in microseconds; of rows without one: infinite."""
    size = plan.size if isinstance(plan, Window) else None
    return float("inf") if size is None else size


def _reach(window: Window) -> int:
    """Return how far before now a window may hold rows, in microseconds."""
    if window.kind == WindowKind.NOW:
        return MICROSECONDS
    return (window.size or 0) + (window.slide or 0)


def over_longer(wanted: Plan, longer: Plan) -> Plan:
    """Return what is wanted, of a longer window in the place of its own.

    Raises:
        NotSharedError: The rows of the shorter window do not come from those of the longer one.
    """
    shorter = window_of(wanted)
    if shorter is None:
        raise NotSharedError("it selects no rows of a window by time")
    reason = why_not(shorter, longer)
    if reason:
        raise NotSharedError(reason)
    return transform_up(wanted, lambda node: longer if node == shorter else node)


def bounds_of(wanted: Plan) -> WindowBounds:
    """Return the bounds of the window of which a plan selects rows, for these rows.

    Raises:
        NotSharedError: It selects no rows of a window by time.
    """
    window = window_of(wanted)
    if window is None:
        raise NotSharedError("it selects no rows of a window by time")
    predicate = conjunction([*block_of(wanted).predicates])
    return WindowBounds(window.input, window.kind, window.size, window.slide, predicate)


def younger(over: Plan, offered: Plan, wanted: Plan, bounds: str) -> Plan:
    """Return the wanted rows of a leaf.

    Args:
        over: What is wanted of the longer window, over the leaf.
        offered: What the leaf gives.
        wanted: Over the source.
        bounds: The fragment that sends the bounds.

    Raises:
        NotSharedError: The leaf does not show the event time.
    """
    window = bounds_of(wanted)
    place = shown_place(offered, window.input.time_column)
    if place is None:
        raise NotSharedError("the rows do not show their event time")
    told = RemoteSource(bounds, BOUNDS_COLUMNS)

    def put(node: Plan) -> Plan:
        if _is_filtered_leaf(node):
            return Younger(node, told, place, window.kind, window.size, window.slide)
        return with_inputs(node, tuple(map(put, node.inputs)))

    return put(over)


def shown_place(plan: Plan, time: int | None) -> int | None:
    """Return where a selection of a source shows its event time; None: it does not."""
    shown = enumerate(block_of(plan).outputs)
    return next((n for n, e in shown if isinstance(e, Column) and e.position == time), None)


def _is_filtered_leaf(plan: Plan) -> bool:
    while isinstance(plan, Filter):
        plan = plan.input
    return isinstance(plan, RemoteSource)
