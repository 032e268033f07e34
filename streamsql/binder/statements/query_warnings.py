"""Warnings about a plan: state without bound, and likely mistakes."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from streamsql.algebra.explain import describe
from streamsql.algebra.leaves import ScanPart
from streamsql.algebra.operators import (
    Aggregate,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    OnClose,
    OverWindow,
    Plan,
    Project,
    Scan,
    SessionWindow,
    SetOperation,
    SourceKind,
    StreamKind,
    StreamWindow,
    TopN,
    ToStream,
    Values,
    Window,
    WindowKind,
)
from streamsql.data.durations import duration_text
from streamsql.data.types import DataType

Stateful = (
    Join
    | AsOfJoin
    | Aggregate
    | Distinct
    | TopN
    | OverWindow
    | SessionWindow
    | SetOperation
    | Fixpoint
)
"""Operators that remember rows of their inputs."""

_Function = AggregateFunction
_OF_NUMBERS = frozenset((
    _Function.COUNT_ALL, _Function.COUNT, _Function.SUM, _Function.AVG, _Function.VAR_SAMP,
    _Function.VAR_POP, _Function.STDDEV_SAMP, _Function.STDDEV_POP, _Function.BOOL_AND,
    _Function.BOOL_OR,
))  # fmt: skip
"""Aggregates that keep some numbers per group, however many rows there are."""


def operator_word(node: Stateful) -> str:
    """Return what a user writes for a stateful operator."""
    match node:
        case Join(kind=JoinKind.SEMI):
            return "IN or EXISTS"
        case Join(kind=JoinKind.ANTI):
            return "NOT IN or NOT EXISTS"
        case Join():
            return "JOIN"
        case AsOfJoin():
            return "ASOF JOIN"
        case Aggregate():
            return "GROUP BY"
        case Distinct():
            return "DISTINCT"
        case TopN():
            return "ORDER BY … LIMIT"
        case OverWindow():
            return "OVER"
        case SessionWindow():
            return "SESSION"
        case SetOperation(kind=kind):
            return str(kind)
        case Fixpoint():
            return "RECURSIVE"


def streams(plan: Plan) -> Iterator[Scan | Window]:
    """Yield the sources whose rows reach a place without another stateful operator between."""
    match plan:
        case Scan() | Window():
            yield plan
        case OnClose() | ToStream() | StreamWindow():
            return
        case _ if isinstance(plan, Stateful):
            return
        case _:
            for child in plan.inputs:
                yield from streams(child)


def is_unbounded(leaf: Scan | Window) -> bool:
    """Whether a source's contents grow for ever."""
    if isinstance(leaf, Window):
        return leaf.kind == WindowKind.UNBOUNDED and is_unbounded(leaf.input)
    is_stream = leaf.kind != SourceKind.TABLE and leaf.part != ScanPart.PROGRESS
    return is_stream and leaf.ttl is None and not leaf.key


def scan_of(leaf: Scan | Window) -> Scan:
    """Return the source of a leaf."""
    return leaf.input if isinstance(leaf, Window) else leaf


def kept_values(node: Aggregate) -> str:
    """Return the aggregates that keep all values of a group, or "" where numbers are enough."""
    kept = [
        call.implementation or call.function.value
        for call in node.aggregates
        if call.distinct or call.function not in _OF_NUMBERS
    ]
    return ", ".join(dict.fromkeys(kept))


def kept_streams(node: Plan) -> Iterator[ToStream]:
    """Yield the streams of queries whose rows reach an operator with no window between."""
    for child in node.inputs:
        if isinstance(child, ToStream):
            yield child
        elif not isinstance(child, OnClose | StreamWindow | Stateful):
            yield from kept_streams(child)


class FindingKind(StrEnum):
    """The subject of a finding."""

    STATE = "unbounded state"
    JOIN = "unbounded join"
    GROUPS = "unbounded groups"
    OUTPUT = "unbounded output"
    OPEN_WINDOWS = "windows never close"
    CROSS_PRODUCT = "cross product"
    GAPS = "gaps between windows"
    BEYOND_TTL = "window beyond ttl"
    NO_ORDER = "LIMIT without ORDER BY"


@dataclass(frozen=True, slots=True)
class Finding:
    """A likely mistake: the operator as EXPLAIN shows it, the effect, and what to write instead."""

    kind: FindingKind
    operator: str
    message: str
    fix: str = ""

    @property
    def text(self) -> str:
        """The finding as one sentence."""
        return f"{self.kind}: {self.message}" + (f"; {self.fix}" if self.fix else "")


def findings(plan: Plan) -> tuple[Finding, ...]:
    """Return what the author of a plan should know, each once, in the order of the plan."""
    return tuple(dict.fromkeys(_visit(plan, closes=False)))


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
                FindingKind.GAPS,
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
                FindingKind.NO_ORDER,
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
        FindingKind.CROSS_PRODUCT,
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
            FindingKind.GAPS,
            describe(window),
            f"a window of {size} that slides every {duration_text(window.slide)} never "
            "contains the rows between two windows",
            "write a SLIDE of at most the RANGE",
        )
    if scan.ttl is not None and scan.ttl < window.size:
        yield Finding(
            FindingKind.BEYOND_TTL,
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
    elif isinstance(node, Aggregate):
        yield from _unbounded_groups(node, scans)
    elif isinstance(node, Join) and not node.kind.is_filter and all(sides):
        yield Finding(
            FindingKind.JOIN,
            describe(node),
            f"{operator_word(node)} keeps every row of {_named(scans)} for ever, and each new row "
            "joins all older rows",
            f"write {_windowed(scans)}, or ASOF JOIN for the row that was current",
        )
    else:
        what = "every distinct row" if isinstance(node, Distinct) else "every row"
        yield from _kept(node, what, scans)


def _unbounded_groups(node: Aggregate, scans: list[Scan]) -> Iterator[Finding]:
    operator, kept = describe(node), kept_values(node)
    if not kept and not node.group:
        return
    fields = [node.input.schema.fields[position] for position in node.group]
    times = [field.name for field in fields if field.dtype == DataType.TIMESTAMP]
    if windows := _time_windows(node):
        yield _never_closes(operator, windows[0], scans[0])
    elif times:
        yield Finding(
            FindingKind.GROUPS,
            operator,
            f"GROUP BY {', '.join(times)} keeps one group per distinct time of {_named(scans)} "
            "for ever",
            f"write {_windowed(scans)}, or group by window_end of TUMBLE({scans[0].source}, …)",
        )
    elif not kept:
        keys = ", ".join(field.name for field in fields)
        yield Finding(
            FindingKind.GROUPS,
            operator,
            f"GROUP BY keeps one group per distinct {keys} of {_named(scans)} for ever; it does "
            "not keep the rows",
            f"if new values keep arriving, write {_windowed(scans)}",
        )
    else:
        yield from _kept(node, f"every value of {kept}", scans)


def _kept(node: Stateful, what: str, scans: list[Scan]) -> Iterator[Finding]:
    for scan in scans:
        yield Finding(
            FindingKind.STATE,
            describe(node),
            f"{operator_word(node)} keeps {what} of {scan.source} for ever",
            f"write {_windowed([scan])}, or create the source WITH (ttl = '90 s')",
        )


def _named(scans: list[Scan]) -> str:
    return " and ".join(dict.fromkeys(scan.source for scan in scans))


def _unbounded_streams(node: Stateful) -> Iterator[Finding]:
    """Return what an operator keeps of the streams that queries give."""
    for stream in dict.fromkeys(kept_streams(node)):
        yield Finding(
            FindingKind.STATE,
            describe(node),
            f"{operator_word(node)} keeps every row of {stream.kind}(…) for ever",
            f"put a window after it: ({stream.kind}(…)) [RANGE 10 MINUTES]",
        )


def _repeated(stream: ToStream) -> Iterator[Finding]:
    """Warn of a relation that grows for ever and is given again whenever it grows."""
    names = [scan_of(leaf).source for leaf in streams(stream.query) if is_unbounded(leaf)]
    if stream.kind == StreamKind.RSTREAM and names:
        yield Finding(
            FindingKind.OUTPUT,
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
        FindingKind.OPEN_WINDOWS,
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
