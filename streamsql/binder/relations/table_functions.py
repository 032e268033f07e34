"""Functions in FROM: windows over a time column of any relation, and late events of a stream.

    TUMBLE(r, ts, size [, offset])
    HOP(r, ts, hop, size [, offset])
    SESSION(r, ts, gap [, key, ...])
    LATE(s): the events of s that came after its watermark had passed them

`r` is a source, with or without a window, a view, a common table or a query in parentheses.
"""

import msgspec
from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import (
    WINDOW_COLUMNS,
    HopWindow,
    Plan,
    ScanPart,
    SessionWindow,
    is_open,
)
from streamsql.binder.expressions.coercion import time_value
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope, identifier_text
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType

MAX_COPIES = 10_000
"""Max windows that one row may be in: HOP emits the row once for each."""

_USAGE = {
    "TUMBLE": "TUMBLE(s, ts, INTERVAL '1 minute')",
    "HOP": "HOP(s, ts, INTERVAL '1 minute', INTERVAL '10 minutes'): hop, then size",
    "SESSION": "SESSION(s, ts, INTERVAL '5 minutes', key)",
}
_DURATIONS = {"TUMBLE": (1, 2), "HOP": (2, 3), "SESSION": (1, 1)}
"""Least and most durations behind the time column."""


def bind_time_window(
    node: exp.Expr, relation: Plan, scope: Scope, environment: Environment
) -> Plan:
    """Return the window operator over a relation."""
    kind = str(node.args["kind"])
    _check_relation(kind, node, relation, environment)
    time, *rest = _arguments(kind, node, environment)
    binder = ExpressionBinder(environment, scope)
    position = _time(kind, binder.bind(time), time, environment)
    least, most = _DURATIONS[kind]
    if kind == "SESSION":
        (gap,) = _durations(kind, rest[:1], binder)
        keys = [_key(binder.bind(part), part, environment) for part in rest[1:]]
        return SessionWindow(relation, position, gap, tuple(dict.fromkeys(keys)))
    if not least <= len(rest) <= most:
        raise _usage(kind, node, environment)
    durations = _durations(kind, rest[:least], binder)
    (offset,) = _durations(kind, rest[least:], binder, zero=True) or (0,)
    hop, size = (durations[0], durations[-1])
    if size > hop * MAX_COPIES:
        raise environment.error(
            node,
            f"every row would be in {-(-size // hop)} windows; the max is {MAX_COPIES}",
            hint="HOP takes first the hop, then the size",
            code="bad_window",
        )
    return HopWindow(relation, position, size, hop, offset % hop)


def _check_relation(kind: str, node: exp.Expr, relation: Plan, environment: Environment) -> None:
    if is_open(relation):
        raise environment.unsupported(
            node,
            f"{kind} cannot read the recursion being defined: only base relations have windows",
            hint="put it around the stream that the recursion reads, or around its result",
            code="misplaced_window",
        )
    taken = next((name for name in WINDOW_COLUMNS if name in relation.schema.names), None)
    if taken is not None:
        raise environment.error(
            node,
            f"{kind} adds a column {taken!r}, but the relation already has a column of that name",
            hint=f"rename it in a query inside the parentheses: {taken} AS earlier",
            code="duplicate_name",
        )


def _arguments(kind: str, node: exp.Expr, environment: Environment) -> list[exp.Expr]:
    arguments = [part for part in node.expressions if part is not None]
    if len(arguments) < 1 + _DURATIONS[kind][0]:
        raise _usage(kind, node, environment)
    return arguments


def _usage(kind: str, node: exp.Expr, environment: Environment) -> Exception:
    return environment.wrong_arguments(
        node, f"{kind} does not take these arguments", f"write {_USAGE[kind]}"
    )


def _time(kind: str, bound: Expression, node: exp.Expr, environment: Environment) -> int:
    if isinstance(bound, Column) and bound.dtype == DataType.TIMESTAMP:
        return bound.position
    what = f"{bound.dtype}" if isinstance(bound, Column) else "no column"
    raise environment.error(
        node,
        f"{kind} needs a TIMESTAMP column here, but this is {what}",
        hint=f"write {_USAGE[kind]}; to use a computed time, put a query in place of s",
        code="bad_window",
    )


def _durations(
    kind: str, nodes: list[exp.Expr], binder: ExpressionBinder, *, zero: bool = False
) -> tuple[int, ...]:
    return tuple(_duration(kind, node, binder, zero=zero) for node in nodes)


def _duration(kind: str, node: exp.Expr, binder: ExpressionBinder, *, zero: bool) -> int:
    bound = binder.bind(node)
    value = bound.value if isinstance(bound, Literal) else None
    if isinstance(value, str):
        value = time_value(value, DataType.INTERVAL, node, binder.environment)
    elif bound.dtype != DataType.INTERVAL:
        value = None
    if not isinstance(value, int):
        raise binder.environment.error(
            node,
            f"{kind} needs a constant duration here",
            hint=f"write {_USAGE[kind]}",
            code="bad_window",
        )
    if value < 0 or (value == 0 and not zero):
        raise binder.environment.error(
            node,
            f"{kind} needs a duration longer than 0",
            hint=f"write {_USAGE[kind]}",
            code="bad_window",
        )
    return value


def _key(bound: Expression, node: exp.Expr, environment: Environment) -> int:
    if isinstance(bound, Column):
        return bound.position
    raise environment.error(
        node,
        "the keys of SESSION must be columns",
        hint="SESSION(s, ts, gap, key): name a column of s",
        code="bad_window",
    )


def is_late(node: exp.Expr) -> bool:
    """Whether a relation in FROM is written LATE(…)."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "LATE"


def bind_late(node: exp.Expr, environment: Environment) -> tuple[str, Plan]:
    """Return the name of the stream and the scan of its late events."""
    (argument, *more) = node.expressions or (None,)
    if more or not isinstance(argument, exp.Column) or argument.table:
        raise environment.wrong_arguments(
            node, "LATE takes the name of a stream", "FROM LATE(seat)"
        )
    name = identifier_text(argument.this)
    definition = environment.definition(name, argument)
    if not isinstance(definition, SourceDefinition):
        raise environment.error(
            argument,
            f"there is no stream {name!r}",
            hint="LATE takes the name of a stream",
            code="unknown_relation",
        )
    if environment.history is not None:
        raise environment.unsupported(
            argument,
            f"of the past all readings of {name!r} are kept alike, the late ones too",
            hint=f"read {name} itself",
            code="no_history",
        )
    scan = definition.scan()
    if scan.lateness is None and definition.lateness is not None:
        raise environment.unsupported(
            argument,
            f"rows of {name!r} are never late: the newest row of each key counts, whenever "
            "it arrives",
            hint=f"read {name} itself",
            code="never_late",
        )
    if scan.lateness is None:
        raise environment.error(
            argument,
            f"rows of {name!r} are never late: it has no watermark",
            hint=f"CREATE SOURCE {name} (…, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
            code="no_watermark",
        )
    return name, msgspec.structs.replace(scan, part=ScanPart.LATE)
