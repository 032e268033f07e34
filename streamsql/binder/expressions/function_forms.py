"""Functions that are written in several ways, or stand for others."""

import math
from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar_functions.scalar_time import (
    DOUBLE_PARTS,
    INTERVAL_PARTS,
    TIMESTAMP_PARTS,
    TRUNCATIONS,
)
from streamsql.binder.expressions.coercion import as_text
from streamsql.binder.expressions.function_calls import bind_call
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.data.types import DataType
from streamsql.syntax.cursor import did_you_mean

_EMPTY = Literal("", DataType.TEXT)
_PART_SPELLINGS = {
    "MICROSECOND": "MICROSECONDS",
    "MILLISECOND": "MILLISECONDS",
    "MSEC": "MILLISECONDS",
    "USEC": "MICROSECONDS",
    "SEC": "SECOND",
    "MIN": "MINUTE",
    "DAYOFWEEK": "DOW",
    "DAYOFYEAR": "DOY",
    **{f"{part}S": part for part in TIMESTAMP_PARTS if not part.endswith("S")},
    "CENTURIES": "CENTURY",
    "MILLENNIA": "MILLENNIUM",
}


def bind_trim(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind TRIM([LEADING | TRAILING | BOTH] [characters FROM] text), LTRIM and RTRIM."""
    side = str(node.args.get("position") or "BOTH").upper()
    characters = node.args.get("expression")
    arguments = [node.this] if characters is None else [node.this, characters]
    if side == "BOTH":
        name = "TRIM" if characters is None else "BTRIM"
    else:
        name = "LTRIM" if side == "LEADING" else "RTRIM"
    return bind_call(binder, name, arguments, node)


def bind_concat(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind CONCAT, which skips NULLs and writes every type as text."""
    texts = [as_text(binder.bind(part)) for part in node.expressions]
    return _joined([Call("COALESCE", (text, _EMPTY), DataType.TEXT) for text in texts])


def bind_concat_ws(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind CONCAT_WS(separator, …): the texts that are not NULL, with separators between."""
    separator, *parts = [as_text(binder.bind(part)) for part in node.expressions]
    if not parts:
        raise binder.environment.wrong_arguments(
            node, "CONCAT_WS has no values to join", "CONCAT_WS(separator, text, …)"
        )
    tails: list[Expression] = [
        Call(
            "CASE",
            (
                Call("IS NULL", (part,), DataType.BOOLEAN),
                _EMPTY,
                Call("||", (separator, part), DataType.TEXT),
            ),
            DataType.TEXT,
        )
        for part in parts
    ]
    length = Call("LENGTH", (separator,), DataType.INTEGER)
    start = Call("+", (length, Literal(1, DataType.INTEGER)), DataType.INTEGER)
    return Call("SUBSTRING", (_joined(tails), start), DataType.TEXT)


def _joined(parts: list[Expression]) -> Expression:
    return reduce(lambda left, right: Call("||", (left, right), DataType.TEXT), parts)


def bind_pad(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind LPAD and RPAD."""
    name = "LPAD" if node.args.get("is_left") else "RPAD"
    fill = node.args.get("fill_pattern")
    arguments = [node.this, node.expression, *([] if fill is None else [fill])]
    return bind_call(binder, name, arguments, node)


def bind_initcap(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind INITCAP; sqlglot adds delimiters of its own."""
    return bind_call(binder, "INITCAP", [node.this], node)


def bind_chr(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind CHR(code)."""
    return bind_call(binder, "CHR", list(node.expressions), node)


def bind_pi(_binder: NodeBinder, _node: exp.Expr) -> Expression:
    """Bind PI()."""
    return Literal(math.pi, DataType.DOUBLE)


def bind_extract(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind EXTRACT(part FROM time)."""
    return _part_of(binder, node.this.name, node.expression, node)


def bind_date_part(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind DATE_PART('part', time)."""
    arguments = list(node.expressions)
    if len(arguments) != 2 or not arguments[0].args.get("is_string"):
        raise binder.environment.wrong_arguments(
            node, "DATE_PART takes a part and a time", "DATE_PART('hour', ts)"
        )
    return _part_of(binder, arguments[0].name, arguments[1], node)


def bind_epoch(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind EPOCH(time), the seconds since 1970 or of an interval."""
    arguments = list(node.expressions)
    if len(arguments) != 1:
        raise binder.environment.wrong_arguments(node, "EPOCH takes a time", "EPOCH(ts)")
    return _part_of(binder, "EPOCH", arguments[0], node)


def _part_of(binder: NodeBinder, written: str, of: exp.Expr, node: exp.Expr) -> Expression:
    time = binder.bind(of)
    if time.dtype not in (DataType.TIMESTAMP, DataType.INTERVAL, DataType.NULL):
        raise binder.environment.wrong_arguments(
            of,
            f"EXTRACT takes a TIMESTAMP or an INTERVAL, but this has type {time.dtype}",
            "CAST(… AS TIMESTAMP), or TO_TIMESTAMP(seconds)",
        )
    is_interval = time.dtype == DataType.INTERVAL
    part = _part(binder, written, INTERVAL_PARTS if is_interval else TIMESTAMP_PARTS, node)
    dtype = DataType.DOUBLE if part in DOUBLE_PARTS else DataType.INTEGER
    name = "EXTRACT INTERVAL" if is_interval else "EXTRACT"
    return Call(name, (Literal(part, DataType.TEXT), time), dtype)


def bind_date_trunc(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind DATE_TRUNC('part', timestamp)."""
    unit = node.args["unit"]
    if not isinstance(unit, exp.Literal | exp.Var | exp.WeekStart) or node.args.get("zone"):
        raise binder.environment.unsupported(
            node,
            "DATE_TRUNC takes a constant part; times are UTC",
            hint="DATE_TRUNC('hour', ts)",
            code="wrong_arguments",
        )
    return _truncated(binder, unit.name, node.this, node)


def bind_date(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind DATE(timestamp), the beginning of its day."""
    if node.this is None or node.args.get("zone") or node.expressions:
        raise binder.environment.wrong_arguments(node, "DATE takes a time", "DATE_TRUNC('day', ts)")
    return _truncated(binder, "DAY", node.this, node)


def _truncated(binder: NodeBinder, written: str, of: exp.Expr, node: exp.Expr) -> Expression:
    time = binder.bind(of)
    if time.dtype not in (DataType.TIMESTAMP, DataType.NULL):
        raise binder.environment.wrong_arguments(
            of,
            f"DATE_TRUNC takes a TIMESTAMP, but this has type {time.dtype}",
            "DATE_TRUNC('hour', ts)",
        )
    part = _part(binder, written, TRUNCATIONS, node)
    return Call("DATE_TRUNC", (Literal(part, DataType.TEXT), time), DataType.TIMESTAMP)


def _part(binder: NodeBinder, written: str, known: tuple[str, ...], node: exp.Expr) -> str:
    word = written.upper()
    part = _PART_SPELLINGS.get(word, word)
    if part in known:
        return part
    listed = ", ".join(known)
    raise binder.environment.error(
        node,
        f"there is no part {written!r:.40} here",
        hint=did_you_mean(part, known, f"parts are {listed}"),
        code="unknown_part",
    )


Form = Callable[[NodeBinder, exp.Expr], Expression]

FORMS: dict[type[exp.Expr], Form] = {
    exp.Trim: bind_trim,
    exp.Concat: bind_concat,
    exp.ConcatWs: bind_concat_ws,
    exp.Pad: bind_pad,
    exp.Initcap: bind_initcap,
    exp.Chr: bind_chr,
    exp.Pi: bind_pi,
    exp.Extract: bind_extract,
    exp.DateTrunc: bind_date_trunc,
    exp.TimestampTrunc: bind_date_trunc,
    exp.Date: bind_date,
}
"""By sqlglot's class."""

NAMED: dict[str, Form] = {"DATE_PART": bind_date_part, "EPOCH": bind_epoch}
"""By the name of a function that sqlglot does not know."""
