"""FOR SYSTEM_TIME behind a relation: the past that it names, and who has one."""

from dataclasses import replace

import msgspec
from sqlglot import exp

from streamsql.algebra.expressions import Expression, Literal
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.algebra.past_times import History, HistoryKind, Moment
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.binder.expressions.coercion import time_value
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.keep_options import NO
from streamsql.catalog.system import is_system
from streamsql.catalog.table_options import TableSource
from streamsql.data.types import DataType, timestamp_text

_EXAMPLE = "write for example NOW - INTERVAL '1 day' or '2026-01-01T12:00:00Z'"
_STARTS = (0, 37_123_456_789_123)
"""Two moments at which a query might start: what moves with them counts from the start."""


def history_of(node: exp.Expr, environment: Environment) -> History:
    """Return the past that a FOR SYSTEM_TIME names.

    Raises:
        BindingError: A time is none, or the interval ends before it begins.
    """
    kind = str(node.args["kind"])
    if kind == "ALL":
        return History(HistoryKind.BETWEEN)
    first = _moment(node.this, environment)
    if kind == "AS OF":
        return History(HistoryKind.AS_OF, until=first)
    last = _moment(node.expression, environment)
    if first.from_start == last.from_start and first.micros > last.micros:
        raise environment.error(
            node,
            f"this interval ends before it begins: {first} is later than {last}",
            hint="write the earlier time first",
            code="bad_history",
        )
    return History(HistoryKind.BETWEEN, first, last, is_closed=kind == "BETWEEN")


def historic_scan(
    definition: SourceDefinition, history: History, node: exp.Expr, environment: Environment
) -> Scan:
    """Return the scan of a source's past.

    A stored table of which FOR SYSTEM_TIME is asked by a view around has its present rows.

    Raises:
        UnsupportedError: The lake does not keep the source.
    """
    scan = definition.scan()
    name = definition.name
    if is_system(definition):
        raise environment.unsupported(
            node,
            f"{name} is a system source, of which no past is kept",
            hint="remove FOR SYSTEM_TIME, or ask for the past of your own sources",
            code="no_history",
        )
    if not definition.is_table:
        if (definition.option("keep") or "").lower() == NO:
            environment.binding.warn(f"readings of {name} are not kept: its option keep is 'no'")
        return msgspec.structs.replace(scan, kind=SourceKind.TABLE, lateness=None, history=history)
    if is_managed(definition) and history.is_as_of:
        version = msgspec.structs.replace(history, kind=HistoryKind.VERSION)
        return msgspec.structs.replace(scan, history=version)
    if environment.expanding:
        environment.binding.warn(
            f"{name} is a stored table: its present rows are joined with the past of the others"
        )
        return scan
    raise environment.unsupported(
        node,
        f"{name} is a stored table, of which no past readings are kept"
        if not is_managed(definition)
        else f"{name} is a stored table: of its past each version can be asked, not an interval",
        hint=f"remove FOR SYSTEM_TIME behind {name}"
        if not is_managed(definition)
        else f"write {name} FOR SYSTEM_TIME AS OF a time",
        code="no_history",
    )


def is_managed(definition: SourceDefinition) -> bool:
    """Whether a stored table is kept in the lake, with its versions."""
    reads_elsewhere = (
        definition.option("source") not in (None, TableSource.LAKE)
        or definition.refresh is not None
    )
    return definition.is_table and not reads_elsewhere and not is_system(definition)


def _moment(node: exp.Expr, environment: Environment) -> Moment:
    early, late = (_value(node, start, environment) for start in _STARTS)
    if early == late:
        return Moment(early)
    if late - early == _STARTS[1] - _STARTS[0]:
        return Moment(early - _STARTS[0], from_start=True)
    raise environment.unsupported(
        node,
        "this time neither stands still nor moves with NOW",
        hint="add a duration to NOW or take one from it: NOW - INTERVAL '1 day'",
        code="bad_history",
    )


def _value(node: exp.Expr, start: int, environment: Environment) -> int:
    """Return a time of FOR SYSTEM_TIME for a query that starts then."""
    closed = replace(environment, tables={}, outer=None)
    bound = ExpressionBinder(closed, Scope()).bind(_with_now(node, start))
    if isinstance(bound, Literal) and isinstance(bound.value, str):
        return time_value(bound.value, DataType.TIMESTAMP, node, environment)
    value = _constant(bound)
    if bound.dtype != DataType.TIMESTAMP or not isinstance(value, int):
        raise environment.error(
            node,
            f"FOR SYSTEM_TIME needs a time here, not {bound.dtype}",
            hint=_EXAMPLE,
            code="bad_history",
        )
    return value


def _constant(bound: Expression) -> object:
    value: object = compile_expression(bound)(())
    return value


def _with_now(node: exp.Expr, start: int) -> exp.Expr:
    """Return a time as written with a constant in place of NOW, in any of its spellings."""

    def constant(part: exp.Expr) -> exp.Expr:
        is_call = isinstance(part, exp.Anonymous) and part.name.upper() == "NOW"
        is_name = isinstance(part, exp.Column) and part.sql().upper() == "NOW"
        if not (is_name or is_call or isinstance(part, exp.CurrentTimestamp)):
            return part
        made = exp.cast(exp.Literal.string(timestamp_text(start)), "TIMESTAMP")
        made.meta.update(part.meta)
        return made

    return node.copy().transform(constant)
