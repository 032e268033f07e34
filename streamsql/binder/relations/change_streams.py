"""ISTREAM, DSTREAM and RSTREAM: a relation as the stream of its changes, instant by instant."""

import itertools

import msgspec
from sqlglot import exp

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    OnClose,
    Plan,
    Project,
    Scan,
    ScanPart,
    SourceKind,
    StreamKind,
    StreamWindow,
    ToStream,
    WindowKind,
    identity_columns,
    is_open,
    walk_relation,
)
from streamsql.algebra.streams import is_monotone, stream_time
from streamsql.binder.names.environment import Binding, Environment
from streamsql.binder.names.ranks import with_numbers
from streamsql.binder.relations.emit_on_close import idle_time
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import Span, UnsupportedError
from streamsql.recursion.termination import ended

KINDS = frozenset(str(kind) for kind in StreamKind)
_NAMES = ("ts", "instant")
"""Names for the column of the instant, by preference; the query must not have the name."""


def to_stream(plan: Plan, kind: StreamKind, place: Span | None, binding: Binding) -> ToStream:
    """Return the stream of a relation's changes."""
    query = ended(with_numbers(plan, binding), binding.places)
    scans = _scans(query, kind, place)
    feeds: list[Plan] = []
    progress: list[Plan] = []
    for scan in scans:
        if scan.kind == SourceKind.TABLE:
            feeds.append(scan)
            continue
        events = _events(scan, binding)
        feeds.append(events)
        idle = None
        if events.lateness is not None:
            idle = idle_time(binding.catalog, scan.source)
        progress.append(msgspec.structs.replace(events, part=ScanPart.PROGRESS, ttl=idle))
    return ToStream(kind, query, scans, tuple(feeds), tuple(progress), _name(query))


def _scans(query: Plan, kind: StreamKind, place: Span | None) -> tuple[Scan, ...]:
    nodes = list(walk_relation(query))
    scans = tuple(dict.fromkeys(node for node in nodes if isinstance(node, Scan)))
    if is_open(query):
        raise UnsupportedError(
            f"{kind} over the recursion being defined",
            span=place,
            hint=f"write {kind}(…) around the finished recursion",
            code="misplaced_emit",
        )
    for node in nodes:
        if isinstance(node, OnClose):
            raise UnsupportedError(
                f"{kind} over EMIT ON WINDOW CLOSE",
                span=place,
                hint="EMIT ON WINDOW CLOSE already produces a stream: remove one of the two",
                code="misplaced_emit",
            )
        if isinstance(node, Scan) and node.part == ScanPart.LATE:
            raise UnsupportedError(
                f"{kind} over LATE({node.source}): the instants of late readings are "
                "already complete",
                span=place,
                hint=f"read LATE({node.source}) itself",
                code="misplaced_emit",
            )
    if all(scan.kind == SourceKind.TABLE for scan in scans):
        raise UnsupportedError(
            f"{kind} needs a stream: stored tables have no instants",
            span=place,
            hint=f"remove {kind}, and subscribe to the changes of the relation",
            code="no_instants",
        )
    return scans


def _events(scan: Scan, binding: Binding) -> Scan:
    """Return the scan of a source's events; a watermark counts here even where there is a KEY."""
    definition = binding.catalog.find(scan.source)
    lateness = scan.lateness
    if isinstance(definition, SourceDefinition) and definition.lateness is not None:
        lateness = definition.lateness
    return msgspec.structs.replace(scan, key=(), ttl=None, lateness=lateness, part=ScanPart.EVENTS)


def _name(query: Plan) -> str:
    numbered = (f"{_NAMES[-1]}_{number}" for number in itertools.count(2))
    names = itertools.chain(_NAMES, numbered)
    return next(name for name in names if name not in query.schema.names)


def kind_of_call(node: exp.Expr) -> StreamKind | None:
    """Return what a call of ISTREAM, DSTREAM or RSTREAM asks for, or None."""
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() in KINDS
    return StreamKind(node.name.upper()) if is_call else None


def bind_stream(tree: exp.Expr, environment: Environment) -> Plan | None:
    """Return the plan of `ISTREAM(SELECT …)` or `SELECT ISTREAM(…) FROM …`; else None."""
    kind = kind_of_call(tree)
    if kind is not None:
        inner = tree.expressions
        if len(inner) != 1 or not isinstance(inner[0], exp.Query):
            raise environment.wrong_arguments(tree, f"{kind} takes one query", f"{kind}(SELECT …)")
        plan = environment.plan_of(inner[0])
        return to_stream(plan, kind, environment.place(tree), environment.binding)
    call = selected_stream(tree, environment)
    if call is None:
        return None
    kind = StreamKind(call.name.upper())
    plain = tree.copy()
    items = [item.copy() for item in call.expressions]
    if len(items) == 1 and isinstance(items[0], exp.Distinct):
        plain.set("distinct", exp.Distinct())
        items = items[0].expressions
    plain.set("expressions", items)
    plan = environment.plan_of(plain)
    return to_stream(plan, kind, environment.place(call), environment.binding)


def selected_stream(tree: exp.Expr, environment: Environment) -> exp.Expr | None:
    """Return the call in `SELECT ISTREAM(…)`, or None if the select list is an ordinary one."""
    items: list[exp.Expr] = tree.expressions if isinstance(tree, exp.Select) else []
    call = next((item for item in items if kind_of_call(item) is not None), None)
    if call is None:
        return None
    if len(items) > 1 or not call.expressions:
        kind = call.name.upper()
        raise environment.error(
            call,
            f"{kind}(…) must enclose the whole select list",
            hint=f"{kind}(…) must enclose the whole query",
            code="misplaced_emit",
        )
    return call


def windowed_stream(
    plan: Plan, window: exp.Expr, partition: tuple[int, ...], environment: Environment
) -> Plan | None:
    """Return a window over a relation that is a stream, or None if it is none.

    A relation to which rows are only added is taken as its ISTREAM, as in CQL.
    """
    kind = WindowKind(window.args["kind"])
    time, width = stream_time(plan), len(plan.schema)
    if time is None and is_monotone(plan):
        plan = to_stream(plan, StreamKind.ISTREAM, environment.place(window), environment.binding)
        time = width
    if time is None:
        return None
    if kind == WindowKind.UNBOUNDED:
        made: Plan = plan
    else:
        size, slide, within = (window.args.get(name) for name in ("size", "slide", "range"))
        made = StreamWindow(plan, time, kind, size, slide, partition, within)
    if time < width:
        return made
    columns = identity_columns(made.schema)[:width]
    return Project(made, columns, tuple(c.name for c in columns if isinstance(c, Column)))
