"""Displays, alarms, and the clauses OUTPUT TO DISPLAY and ENVELOPE of a query."""

import math

from streamsql.algebra.operators import Scan, walk_plan
from streamsql.algebra.streams import Emit
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.binder.statements.options.source_options import listed_or_close
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition, Severity
from streamsql.catalog.system import SYS_ALARMS, TABLE_ALARM
from streamsql.data.schema import Schema
from streamsql.errors import BindingError
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.statements import CreateAlarm, CreateDisplay, Name, Option

DISPLAY_OPTIONS = ("floor", "x", "y", "title", "rows")
MOST_ROWS = 200
"""Most rows of an answer on a display."""
MOST_METRES = 100_000.0
_PLACE = "CREATE DISPLAY name WITH (floor = 1, x = 3.5, y = 8.0)"


def define_display(statement: CreateDisplay) -> DisplayDefinition:
    """Check CREATE DISPLAY."""
    given = {option.name: option for option in statement.options}
    for option in statement.options:
        if option.name not in DISPLAY_OPTIONS:
            raise BindingError(
                f"a display has no option {option.name!r:.40}",
                span=option.span,
                hint=listed_or_close(option.name, tuple(DISPLAY_OPTIONS)),
                code="unknown_option",
            )
    for needed in ("x", "y"):
        if needed not in given:
            raise BindingError(
                f"display {statement.name.text!r} needs {needed}: the map shows it at its place",
                span=statement.name.span,
                hint=_PLACE,
                code="missing_option",
            )
    return DisplayDefinition(
        name=statement.name.text,
        floor=_whole(given["floor"], -100, 1_000) if "floor" in given else 0,
        x=_metres(given["x"]),
        y=_metres(given["y"]),
        title=given["title"].value[:200] if "title" in given else "",
        rows=_whole(given["rows"], 1, MOST_ROWS) if "rows" in given else 12,
        text=statement.text,
    )


def define_alarm(statement: CreateAlarm, bound: BoundQuery) -> AlarmDefinition:
    """Check CREATE ALARM, whose query is bound already."""
    if statement.name.text == TABLE_ALARM.name:
        raise BindingError(
            f"{TABLE_ALARM.name} is an alarm of the system, for {TABLE_ALARM.query}",
            span=statement.name.span,
            hint="choose another name",
            code="duplicate_name",
        )
    if bound.emit == Emit.STREAM:
        raise BindingError(
            "an alarm lasts while its query has rows, but this query produces a stream",
            span=statement.query.span,
            hint="read a relation: remove ISTREAM, DSTREAM or RSTREAM",
            code="misplaced_emit",
        )
    if any(isinstance(n, Scan) and n.source == SYS_ALARMS.name for n in walk_plan(bound.plan)):
        raise BindingError(
            "an alarm about alarms would trigger itself",
            span=statement.query.span,
            hint="show sys_alarms on a display with OUTPUT TO DISPLAY",
            code="not_a_relation",
        )
    known = tuple(str(severity) for severity in Severity)
    severity = statement.severity.strip().lower()
    if severity not in known:
        raise BindingError(
            f"there is no severity {statement.severity!r:.40}",
            span=statement.place,
            hint=listed_or_close(severity, known),
            code="bad_severity",
        )
    return AlarmDefinition(
        name=statement.name.text,
        query=statement.query.text,
        severity=Severity(severity),
        hold=statement.hold,
        text=statement.text,
    )


def check_display(name: Name, catalog: Catalog) -> None:
    """Check that the display of OUTPUT TO is there."""
    if isinstance(catalog.find(name.text), DisplayDefinition):
        return
    raise BindingError(
        f"there is no display {name.text!r}",
        span=name.span,
        hint=did_you_mean(
            name.text,
            [display.name for display in catalog.displays],
            f"{_PLACE} first; SHOW DISPLAYS lists them",
        ),
        code="unknown_display",
    )


def key_positions(
    key: tuple[Name, ...], schema: Schema, emit: Emit = Emit.RELATION
) -> tuple[int, ...]:
    """Return the positions of the columns of ENVELOPE UPSERT (KEY (…)).

    Raises:
        BindingError: The answer has no such column, or more than one, or it is a stream.
    """
    if key and emit == Emit.STREAM:
        raise BindingError(
            "rows of a stream are never replaced, so a stream has no upserts",
            span=key[0].span,
            hint="remove ENVELOPE, or read a relation",
            code="misplaced_envelope",
        )
    positions = []
    for name in key:
        found = [p for p, column in enumerate(schema.names) if column == name.text]
        if len(found) == 1:
            positions.append(found[0])
            continue
        if found:
            raise BindingError(
                f"the result has {len(found)} columns {name.text!r}",
                span=name.span,
                hint="rename them with AS",
                code="ambiguous_column",
            )
        raise BindingError(
            f"the result has no column {name.text!r}",
            span=name.span,
            hint=did_you_mean(name.text, schema.names, f"columns: {', '.join(schema.names)}"),
            code="unknown_column",
        )
    return tuple(positions)


def _metres(option: Option) -> float:
    try:
        value = float(option.value)
    except ValueError:
        value = math.nan
    if not abs(value) <= MOST_METRES:
        _refuse(option, "a number of metres", f"{option.name} = 3.5")
    return value


def _whole(option: Option, least: int, most: int) -> int:
    try:
        value = int(option.value)
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        _refuse(option, f"a whole number from {least} to {most}", f"{option.name} = {least}")
    return value


def _refuse(option: Option, what: str, example: str) -> None:
    raise BindingError(
        f"{option.name}: {option.value!r:.40} is not {what}",
        span=option.value_span,
        hint=f"write for example {example}",
        code="bad_option",
    )
