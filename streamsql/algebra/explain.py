"""Stable EXPLAIN text of plans: one operator a line, inputs below, as a tree."""

from streamsql.algebra.choices import Copies
from streamsql.algebra.expressions import expression_text
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursionChoice,
    RecursiveReference,
    RemoteSource,
    Scan,
    ScanPart,
    SessionWindow,
    SetOperation,
    SortKey,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    WindowCall,
    WindowFunction,
    WindowKind,
    Younger,
)
from streamsql.algebra.over_windows import NUMBERING, SHIFTING
from streamsql.data.durations import duration_text


def explain_plan(plan: Plan) -> str:
    """Return the plan as text; equal plans give equal text.

    Examples:
        >>> from streamsql.algebra.operators import SourceKind
        >>> from streamsql.data.schema import Schema
        >>> print(explain_plan(Distinct(Scan("rooms", SourceKind.TABLE, Schema.of()))))
        Distinct
        └─ Scan table rooms
    """
    return "\n".join(plan_lines(plan))


def plan_lines(plan: Plan) -> list[str]:
    """Return the lines of `explain_plan`."""
    lines = [describe(plan)]
    inputs = shown_inputs(plan)
    for number, (role, child) in enumerate(inputs):
        last = number == len(inputs) - 1
        head, rest = ("└─ ", "   ") if last else ("├─ ", "│  ")
        first, *more = plan_lines(child)
        lines.append(head + (f"{role}: " if role else "") + first)
        lines.extend(rest + line for line in more)
    return lines


def shown_inputs(plan: Plan) -> list[tuple[str, Plan]]:
    """Return what is shown below an operator, each with its role there or an empty text."""
    match plan:
        case Fixpoint(base=base, step=step):
            return [*(("base", branch) for branch in base), *(("step", branch) for branch in step)]
        case ToStream(query=query, feeds=feeds, progress=progress):
            parts = [("from", feed) for feed in feeds] + [("until", part) for part in progress]
            return [("at each instant", query), *parts]
        case _:
            return [("", child) for child in plan.inputs]


def describe(plan: Plan) -> str:
    """Return the line of one operator without its inputs."""
    match plan:
        case Scan() | RemoteSource() | RecursiveReference() | Values() | Window() | WindowBounds():
            return _leaf_text(plan)
        case Filter(predicate=predicate):
            return f"Filter {expression_text(predicate)}"
        case Project(expressions=expressions, names=names):
            columns = []
            for expression, name in zip(expressions, names, strict=True):
                text = expression_text(expression)
                columns.append(text if text == name else f"{text} AS {name}")
            return f"Project {', '.join(columns)}"
        case Join():
            return _join_text(plan)
        case Aggregate(input=child, group=group, aggregates=aggregates):
            keys = ", ".join(child.schema.names[g] for g in group)
            calls = ", ".join(map(aggregate_text, aggregates))
            return f"Aggregate [{keys}] {calls}".rstrip()
        case AsOfJoin():
            return _as_of_text(plan)
        case Distinct() | UnionAll():
            return type(plan).__name__
        case Materialize(name=name):
            return f"Materialize {name}"
        case TopN() | OverWindow():
            return _top_text(plan) if isinstance(plan, TopN) else _over_text(plan)
        case HopWindow() | SessionWindow():
            return _time_window_text(plan)
        case OnClose() | ToStream() | StreamWindow() | Younger():
            return _final_text(plan)
        case SetOperation(kind=kind, all=every):
            return f"{kind.capitalize()}{' all' if every else ''}"
        case Fixpoint():
            return _fixpoint_text(plan)


def _leaf_text(
    plan: Scan | RemoteSource | RecursiveReference | Values | Window | WindowBounds,
) -> str:
    match plan:
        case Scan():
            return _scan_text(plan)
        case RemoteSource(fragment=fragment):
            return f"RemoteSource[{fragment}]"
        case RecursiveReference(name=name):
            return f"Recursive {name}"
        case Values(rows=rows):
            return f"Values {len(rows)} rows"
        case Window():
            return f"Window [{window_text(plan)}]"
        case WindowBounds(predicate=predicate):
            only = "" if predicate is None else f" of rows WHERE {expression_text(predicate)}"
            return f"Bounds of [{window_text(plan)}]{only}"


def _final_text(plan: OnClose | ToStream | StreamWindow | Younger) -> str:
    match plan:
        case OnClose(end=end):
            return f"OnClose {plan.schema.names[end]}"
        case ToStream(kind=kind, name=name):
            return f"{kind.capitalize()} AS {name}"
        case StreamWindow(input=child, time=time):
            return f"StreamWindow {child.schema.names[time]} [{window_text(plan)}]"
        case Younger():
            return _younger_text(plan)


def _younger_text(plan: Younger) -> str:
    time = plan.schema.names[plan.time]
    if plan.kind == WindowKind.RANGE and plan.size is not None and plan.slide is None:
        return f"Rows younger than {duration_text(plan.size)} by {time}"
    return f"Rows of [{window_text(plan)}] by {time}"


def _time_window_text(plan: HopWindow | SessionWindow) -> str:
    match plan:
        case HopWindow(input=child, time=time, size=size, hop=hop, offset=offset):
            moved = f" offset {duration_text(offset)}" if offset else ""
            length = f"size {duration_text(size)} hop {duration_text(hop)}{moved}"
            return f"HopWindow {child.schema.names[time]} {length}"
        case SessionWindow(input=child, time=time, gap=gap, partition=partition):
            keys = ", ".join(child.schema.names[p] for p in partition)
            return f"SessionWindow [{keys}] {child.schema.names[time]} gap {duration_text(gap)}"


def aggregate_text(call: AggregateCall) -> str:
    """Return `SUM(x) AS total`."""
    if call.arguments:
        distinct = "DISTINCT " if call.distinct else ""
        inner = ", ".join(map(expression_text, call.arguments))
        if call.parameter is not None:
            inner += f", {call.parameter!r}{' DESC' if call.descending else ''}"
        if call.separator:
            inner += f", {call.separator!r}"
        text = f"{call.implementation or call.function}({distinct}{inner})"
    else:
        text = str(call.function)
    return f"{text} AS {call.name}"


def window_text(window: Window | StreamWindow | WindowBounds | Younger) -> str:
    """Return a window as written between brackets."""
    head = ""
    if isinstance(window, Window | StreamWindow) and window.partition:
        names = window.input.schema.names
        head = f"PARTITION BY {', '.join(names[p] for p in window.partition)} "
    if window.kind == WindowKind.RANGE and window.size is not None:
        slide = f" SLIDE {duration_text(window.slide)}" if window.slide else ""
        return f"{head}RANGE {duration_text(window.size)}{slide}"
    if isinstance(window, Window | StreamWindow) and window.kind == WindowKind.ROWS:
        within = f" RANGE {duration_text(window.range)}" if window.range is not None else ""
        return f"{head}ROWS {window.size}{within}"
    return head + window.kind


def _scan_text(scan: Scan) -> str:
    names = scan.schema.names
    key = f" key=({', '.join(names[k] for k in scan.key)})" if scan.key else ""
    ttl = f" ttl={duration_text(scan.ttl)}" if scan.ttl is not None else ""
    late = f" lateness={duration_text(scan.lateness)}" if scan.lateness is not None else ""
    part = "" if scan.part == ScanPart.ROWS else f" {scan.part} of"
    past = f" FOR SYSTEM_TIME {scan.history}" if scan.history is not None else ""
    kind = scan.kind if scan.history is None else "history"
    return f"Scan{part} {kind} {scan.source}{past}{key}{ttl}{late}"


def _join_text(join: Join) -> str:
    left, right = join.left.schema.names, join.right.schema.names
    keys = " AND ".join(f"{left[a]} = {right[b]}" for a, b in join.keys)
    residual = f" where {expression_text(join.residual)}" if join.residual is not None else ""
    kind = join.kind.capitalize()
    return f"{kind}Join [{keys}]{residual}" if keys else f"{kind}Join [theta]{residual}"


def _as_of_text(join: AsOfJoin) -> str:
    left, right = join.left.schema.names, join.right.schema.names
    parts = [f"{left[a]} = {right[b]}" for a, b in join.keys]
    order = ">" if join.strict else ">="
    parts.append(f"{left[join.left_time]} {order} {right[join.right_time]}")
    return f"AsOf{join.kind.capitalize()}Join [{' AND '.join(parts)}]"


def _top_text(top: TopN) -> str:
    names = top.schema.names
    parts = [f"limit {top.limit}"] if top.limit is not None else []
    if top.offset:
        parts.append(f"offset {top.offset}")
    if top.order:
        parts.append(f"by {', '.join(_order_text(key, names) for key in top.order)}")
    if top.partition:
        parts.append(f"per ({', '.join(names[p] for p in top.partition)})")
    return " ".join(["TopN", *parts])


def _over_text(plan: OverWindow) -> str:
    names = plan.input.schema.names
    parts = []
    if plan.partition:
        parts.append(f"per ({', '.join(names[p] for p in plan.partition)})")
    if plan.order:
        parts.append(f"by {', '.join(_order_text(key, names) for key in plan.order)}")
    calls = ", ".join(map(window_call_text, plan.calls))
    return f"OverWindow [{' '.join(parts)}] {calls}"


def window_call_text(call: WindowCall) -> str:
    """Return `SUM(x) ROWS 2 PRECEDING TO CURRENT ROW AS total`."""
    inner = [expression_text(argument) for argument in call.arguments]
    if call.function in SHIFTING:
        inner.insert(1, str(call.distance))
    if call.function in (WindowFunction.NTILE, WindowFunction.NTH_VALUE):
        inner.append(str(call.number))
    name = call.function if call.aggregate is None else call.aggregate
    text = name if name == AggregateFunction.COUNT_ALL else f"{name}({', '.join(inner)})"
    framed = call.function not in (*NUMBERING, *SHIFTING)
    return f"{text} {call.frame} AS {call.name}" if framed else f"{text} AS {call.name}"


def _order_text(key: SortKey, names: tuple[str, ...]) -> str:
    text = names[key.position] + (" DESC" if key.descending else "")
    return text + (" NULLS FIRST" if key.nulls_first else "")


def _fixpoint_text(fixpoint: Fixpoint) -> str:
    text = f"Fixpoint {fixpoint.name}{fixpoint.schema} limit={fixpoint.limit}"
    if fixpoint.selection is not None:
        names = fixpoint.schema.names
        chosen = fixpoint.selection
        keys = ", ".join(names[g] for g in chosen.group)
        bests = " and ".join(
            f"{'MIN' if best.minimum else 'MAX'}({names[best.value]})" for best in chosen.bests
        )
        text += f" keep {bests} per ({keys})"
    if fixpoint.copies != Copies.ONE:
        text += f" copies={fixpoint.copies}"
    if fixpoint.rounds is not None:
        text += f" rounds={fixpoint.rounds.rounds} {fixpoint.rounds.on_more}"
    return text + choice_text(fixpoint.choice)


def choice_text(choice: RecursionChoice) -> str:
    """Return ` with strategy=ranked ship=lazy`: what differs from the default.

    Examples:
        >>> from streamsql.algebra.choices import Strategy
        >>> choice_text(RecursionChoice(strategy=Strategy.RANKED, ship="250000"))
        ' with strategy=ranked ship=250 ms'
        >>> choice_text(RecursionChoice())
        ''
    """
    default = RecursionChoice()
    parts = []
    for name in RecursionChoice.__struct_fields__:
        value = getattr(choice, name)
        if value != getattr(default, name):
            is_interval = name == "ship" and value.isdecimal()
            parts.append(f"{name}={duration_text(int(value)) if is_interval else value}")
    return f" with {' '.join(parts)}" if parts else ""
