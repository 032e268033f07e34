"""EMIT ON WINDOW CLOSE: groups by a window's end, emitted once the watermark has passed it."""

import msgspec

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    OnClose,
    Plan,
    Project,
    Scan,
    ScanPart,
    SessionWindow,
    SourceKind,
    UnionAll,
    transform_up,
    walk_plan,
    with_inputs,
)
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.durations import parse_duration
from streamsql.data.types import MICROSECONDS
from streamsql.errors import BindingError, Span, UnsupportedError

TimeWindow = HopWindow | SessionWindow


DEFAULT_IDLE = 60 * MICROSECONDS


def with_close(plan: Plan, place: Span, catalog: Catalog) -> Plan:
    """Return a query's plan with its groups held back until their windows close."""
    match plan:
        case Filter(input=child) | Project(input=child):
            return with_inputs(plan, (with_close(child, place, catalog),))
        case Aggregate():
            return _closing(plan, place, catalog)
        case _ if any(isinstance(node, Aggregate) for node in walk_plan(plan)):
            raise BindingError(
                "EMIT ON WINDOW CLOSE does not allow subqueries in HAVING or the select "
                "list, nor DISTINCT, LIMIT, OVER or UNION above its groups",
                span=place,
                hint="remove them, or remove EMIT ON WINDOW CLOSE",
                code="emit_without_window",
            )
        case _:
            raise BindingError(
                "EMIT ON WINDOW CLOSE needs groups by a window",
                span=place,
                hint="SELECT window_end, COUNT(*) FROM TUMBLE(s, ts, INTERVAL '1 minute') "
                "GROUP BY window_start, window_end EMIT ON WINDOW CLOSE",
                code="emit_without_window",
            )


def _closing(plan: Aggregate, place: Span, catalog: Catalog) -> Plan:
    for position, column in enumerate(plan.group):
        found = _window_of(plan.input, column)
        if found is not None:
            scans = _streams(plan.input, found, place)
            logs = {scan: msgspec.structs.replace(scan, ttl=None) for scan in scans}

            def as_log(node: Plan, logs: dict[Scan, Scan] = logs) -> Plan:
                return logs.get(node, node) if isinstance(node, Scan) else node

            progress = [
                msgspec.structs.replace(
                    scan, part=ScanPart.PROGRESS, ttl=idle_time(catalog, scan.source)
                )
                for scan in logs.values()
            ]
            right: Plan = progress[0] if len(progress) == 1 else UnionAll(tuple(progress))
            return OnClose(transform_up(plan, as_log), right, position)
    raise BindingError(
        "EMIT ON WINDOW CLOSE needs the end of a window in GROUP BY",
        span=place,
        hint="add window_end of TUMBLE, HOP or SESSION to GROUP BY",
        code="emit_without_window",
    )


def idle_time(catalog: Catalog, source: str) -> int:
    """Return for how long a site may be without a reading of a source, in microseconds."""
    found = catalog.find(source)
    text = found.option("idle") if isinstance(found, SourceDefinition) else None
    return DEFAULT_IDLE if text is None else parse_duration(text) or DEFAULT_IDLE


def _window_of(plan: Plan, position: int) -> TimeWindow | None:
    """Return the window whose end a column is, or None."""
    match plan:
        case HopWindow(input=child) | SessionWindow(input=child):
            if position == len(child.schema) + 1:
                return plan
            return _window_of(child, position) if position < len(child.schema) else None
        case Filter(input=child) | Materialize(input=child):
            return _window_of(child, position)
        case Project(input=child, expressions=expressions):
            expression = expressions[position]
            if not isinstance(expression, Column):
                return None
            return _window_of(child, expression.position)
        case Join(left=left, right=right, kind=JoinKind.INNER | JoinKind.LEFT as kind):
            width = len(left.schema)
            if position < width:
                return _window_of(left, position)
            return _window_of(right, position - width) if kind == JoinKind.INNER else None
        case Join(left=left):
            return _window_of(left, position) if position < len(left.schema) else None
        case _:
            return None


def _streams(plan: Plan, window: TimeWindow, place: Span) -> list[Scan]:
    """Return the scans below a window; all else that the groups read must be stored tables."""
    inside = [node for node in walk_plan(window.input) if isinstance(node, Scan)]
    for node in walk_plan(plan):
        if isinstance(node, Scan) and node not in inside and node.kind != SourceKind.TABLE:
            raise UnsupportedError(
                f"EMIT ON WINDOW CLOSE cannot join {node.source!r}: it has no window that closes",
                span=place,
                hint="join stored tables only, or remove EMIT ON WINDOW CLOSE",
                code="emit_without_window",
            )
    for node in walk_plan(window.input):
        if not isinstance(node, Scan | Filter | Project | Materialize | UnionAll):
            raise UnsupportedError(
                "EMIT ON WINDOW CLOSE needs windows directly over a stream",
                span=place,
                hint="put TUMBLE, HOP or SESSION around the stream itself, and filter inside or "
                "after it",
                code="emit_without_window",
            )
    for scan in inside:
        _check(scan, place)
        _check_time(window, place)
    return list(dict.fromkeys(inside))


def _check(scan: Scan, place: Span) -> None:
    if scan.kind != SourceKind.STREAM or scan.key or scan.part != ScanPart.ROWS:
        raise UnsupportedError(
            f"a window over {scan.source!r} never closes: later rows replace its rows",
            span=place,
            hint="use a stream without KEY, or remove EMIT ON WINDOW CLOSE",
            code="never_late",
        )
    if scan.lateness is None:
        raise BindingError(
            f"a window over {scan.source!r} never closes: it has no watermark",
            span=place,
            hint=f"CREATE SOURCE {scan.source} (…, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
            code="no_watermark",
        )


def _check_time(window: TimeWindow, place: Span) -> None:
    if not _is_event_time(window.input, window.time):
        raise BindingError(
            "EMIT ON WINDOW CLOSE needs windows over the event time",
            span=place,
            hint="use the WATERMARK column as the time of TUMBLE, HOP or SESSION",
            code="no_watermark",
        )


def _is_event_time(plan: Plan, position: int) -> bool:
    match plan:
        case Scan(time_column=time):
            return time == position
        case Filter(input=child):
            return _is_event_time(child, position)
        case Project(input=child, expressions=expressions):
            expression = expressions[position]
            return isinstance(expression, Column) and _is_event_time(child, expression.position)
        case UnionAll(branches=branches):
            return all(_is_event_time(branch, position) for branch in branches)
        case _:
            return False
