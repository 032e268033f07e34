"""What the author of a query should know before it runs: state without bound, and likely mistakes.

Every finding names the operator, the source, and what to write instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from streamsql.algebra.explain import describe, duration_text
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    OnClose,
    Plan,
    Project,
    Scan,
    SessionWindow,
    StreamKind,
    TopN,
    ToStream,
    Values,
    Window,
    WindowKind,
)
from streamsql.binder.names.environment import Binding
from streamsql.binder.statements.kept_state import (
    Stateful,
    is_unbounded,
    kept_streams,
    kept_values,
    operator_word,
    scan_of,
    streams,
)
from streamsql.data.types import DataType


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is probably not meant.

    Attributes:
        kind: "unbounded state", "unbounded join", "unbounded groups", "unbounded output",
            "windows never close", "cross product", "rows between windows", "window beyond ttl" or
            "first rows of no order".
        operator: The operator as EXPLAIN shows it.
        message: What happens.
        fix: What to write instead; empty where that depends on what is meant.
    """

    kind: str
    operator: str
    message: str
    fix: str = ""

    @property
    def text(self) -> str:
        """The finding as one sentence."""
        return f"{self.kind}: {self.message}" + (f"; {self.fix}" if self.fix else "")


def add_plan_warnings(plan: Plan, binding: Binding) -> None:
    """Add the findings about a plan to the warnings of its statement."""
    for finding in findings(plan):
        binding.warn(finding.text)


def findings(plan: Plan) -> tuple[Finding, ...]:
    """Return what the author of a plan should know, each once, in the order of the plan."""
    found = dict.fromkeys(_visit(plan, closes=False))
    return tuple(found)


def _visit(plan: Plan, *, closes: bool) -> Iterator[Finding]:
    match plan:
        case OnClose(left=left):
            # The right side is one row per site.
            yield from _visit(left, closes=True)
            return
        case ToStream(query=query):
            yield from _repeated(plan)
            yield from _visit(query, closes=False)
            return
        case Join():
            yield from _cross_product(plan)
        case HopWindow(size=size, hop=hop) if hop > size:
            yield Finding(
                "gaps between windows",
                describe(plan),
                f"windows of {duration_text(size)} start every {duration_text(hop)}, so "
                "rows between two windows are in none",
                "HOP takes first the hop, then the size",
            )
        case Window():
            yield from _window(plan)
            return
        case TopN(order=(), limit=int() | None) if not _is_single(plan.input):
            yield Finding(
                "LIMIT without ORDER BY",
                describe(plan),
                "LIMIT or OFFSET without ORDER BY orders rows by all their columns, from "
                "left to right",
                "add ORDER BY to choose the first rows",
            )
        case _:
            pass
    if isinstance(plan, Stateful) and not closes:
        yield from _unbounded(plan)
    for child in plan.inputs:
        # Below a query that emits when windows close, whatever stands is forgotten with them.
        yield from _visit(child, closes=closes)


def _cross_product(join: Join) -> Iterator[Finding]:
    if join.keys or join.residual is not None or join.kind.is_filter:
        return
    if _is_single(join.left) or _is_single(join.right):
        return
    yield Finding(
        "cross product",
        describe(join),
        f"no condition connects {_relations(join.left)} and {_relations(join.right)}, so "
        "every row joins every row",
    )


def _window(window: Window) -> Iterator[Finding]:
    scan = window.input
    if window.kind != WindowKind.RANGE or window.size is None:
        return
    size = duration_text(window.size)
    if window.slide is not None and window.slide > window.size:
        yield Finding(
            "gaps between windows",
            describe(window),
            f"a window of {size} that slides every {duration_text(window.slide)} never "
            "contains the rows between two windows",
            "write a SLIDE of at most the RANGE",
        )
    if scan.ttl is not None and scan.ttl < window.size:
        yield Finding(
            "window beyond ttl",
            describe(window),
            f"rows of {scan.source} expire after {duration_text(scan.ttl)}, so [RANGE "
            f"{size}] never contains older rows",
            f"create {scan.source} with a longer ttl",
        )


def _unbounded(node: Stateful) -> Iterator[Finding]:
    sides = [
        [scan_of(leaf) for leaf in streams(child) if is_unbounded(leaf)] for child in node.inputs
    ]
    scans = list(dict.fromkeys(scan for side in sides for scan in side))
    if not scans:
        yield from _unbounded_streams(node)
        return
    names = " and ".join(dict.fromkeys(scan.source for scan in scans))
    word = operator_word(node)
    operator = describe(node)
    windows = _time_windows(node)
    if isinstance(node, Aggregate) and not kept_values(node) and not node.group:
        return
    if isinstance(node, Aggregate) and windows:
        yield _never_closes(operator, windows[0], scans[0])
    elif isinstance(node, Join) and not node.kind.is_filter and all(sides):
        yield Finding(
            "unbounded join",
            operator,
            f"{word} keeps every row of {names} for ever, and each new row joins all older rows",
            f"write {_windowed(scans)}, or ASOF JOIN for the row that was current",
        )
    elif isinstance(node, Aggregate) and (times := _grouped_times(node)):
        yield Finding(
            "unbounded groups",
            operator,
            f"{word} {', '.join(times)} keeps one group per distinct time of {names} for ever",
            f"write {_windowed(scans)}, or group by window_end of TUMBLE({scans[0].source}, …)",
        )
    elif isinstance(node, Aggregate) and not kept_values(node):
        keys = ", ".join(node.input.schema.names[g] for g in node.group)
        yield Finding(
            "unbounded groups",
            operator,
            f"GROUP BY keeps one group per distinct {keys} of {names} for ever; it does "
            "not keep the rows",
            f"if new values keep arriving, write {_windowed(scans)}",
        )
    else:
        kept = kept_values(node) if isinstance(node, Aggregate) else ""
        what = f"every value of {kept}" if kept else _rows_kept(node)
        for scan in scans:
            yield Finding(
                "unbounded state",
                operator,
                f"{word} keeps {what} of {scan.source} for ever",
                f"write {_windowed([scan])}, or create the source WITH (ttl = '90 s')",
            )


def _rows_kept(node: Stateful) -> str:
    return "every distinct row" if isinstance(node, Distinct) else "every row"


def _unbounded_streams(node: Stateful) -> Iterator[Finding]:
    """Return what an operator keeps of the streams that queries give."""
    for stream in dict.fromkeys(kept_streams(node)):
        yield Finding(
            "unbounded state",
            describe(node),
            f"{operator_word(node)} keeps every row of {stream.kind}(…) for ever",
            f"put a window after it: ({stream.kind}(…)) [RANGE 10 MINUTES]",
        )


def _repeated(stream: ToStream) -> Iterator[Finding]:
    """Warn of a relation that grows for ever and is given again whenever it grows."""
    names = [scan_of(leaf).source for leaf in streams(stream.query) if is_unbounded(leaf)]
    if stream.kind == StreamKind.RSTREAM and names:
        yield Finding(
            "unbounded output",
            describe(stream),
            f"RSTREAM emits every row of {names[0]} again at each change, and the number "
            "of rows grows for ever",
            f"write {names[0]} [RANGE 10 MINUTES], or ISTREAM for the new rows only",
        )


def _never_closes(operator: str, window: HopWindow | SessionWindow, scan: Scan) -> Finding:
    if isinstance(window, SessionWindow):
        word = "SESSION"
    else:
        word = "TUMBLE" if window.hop == window.size else "HOP"
    time = window.input.schema.names[window.time]
    close = "end the query with EMIT ON WINDOW CLOSE"
    if scan.lateness is None:
        close = (
            f"create {scan.source} with WATERMARK FOR {time} AS {time} - INTERVAL '5 s' and {close}"
        )
    return Finding(
        "windows never close",
        operator,
        f"GROUP BY keeps every window of {word} over {scan.source} for ever",
        f"{close}, or write {_windowed([scan])} inside the parentheses",
    )


def _time_windows(node: Plan) -> list[HopWindow | SessionWindow]:
    """Return the windows in FROM that an operator's rows come from directly."""
    found = []
    for child in node.inputs:
        if isinstance(child, HopWindow | SessionWindow):
            found.append(child)
        elif isinstance(child, Filter | Project):
            found += _time_windows(child)
    return found


def _grouped_times(node: Aggregate) -> list[str]:
    fields = node.input.schema.fields
    return [fields[g].name for g in node.group if fields[g].dtype == DataType.TIMESTAMP]


def _windowed(scans: list[Scan]) -> str:
    names = dict.fromkeys(scan.source for scan in scans)
    return " and ".join(f"{name} [RANGE 10 MINUTES]" for name in names)


def _is_single(plan: Plan) -> bool:
    """Whether a relation has one row at most, so that a product with it stays small."""
    match plan:
        case Values(rows=rows):
            return len(rows) <= 1
        case Aggregate(group=()):
            return True
        case TopN(limit=limit, partition=()):
            return limit is not None and limit <= 1
        case Project(input=child) | Filter(input=child):
            return _is_single(child)
        case _:
            return False


def _relations(plan: Plan) -> str:
    match plan:
        case Scan(source=source) | Window(input=Scan(source=source)):
            return source
        case Fixpoint(name=name):
            return name
        case _ if len(plan.inputs) == 1:
            return _relations(plan.inputs[0])
        case Join(left=left, right=right):
            return f"{_relations(left)} with {_relations(right)}"
        case _:
            return describe(plan)
