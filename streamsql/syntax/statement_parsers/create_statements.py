"""CREATE: sources, link sources, tables, views and functions."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

from streamsql.algebra.operators import SourceKind
from streamsql.data.durations import parse_duration
from streamsql.errors import InternalError, QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.statement_parsers.column_clauses import at_clause, parse_clause
from streamsql.syntax.statement_parsers.create_functions import parse_function
from streamsql.syntax.statement_parsers.deliveries import (
    parse_alarm,
    parse_display,
    parse_sink,
    refresh_times,
)
from streamsql.syntax.statement_parsers.query_clauses import (
    parse_options,
    query_statement,
    without_output,
)
from streamsql.syntax.statement_parsers.type_names import parse_type
from streamsql.syntax.statements import (
    ColumnClause,
    ColumnDefinition,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Name,
    Watermark,
)

_CREATABLE = (
    "SOURCE", "LINK", "STREAM", "TABLE", "RECURSIVE", "MATERIALIZED", "VIEW", "FUNCTION",
    "AGGREGATE", "DISPLAY", "ALARM", "SINK",
)  # fmt: skip
_REPLACED = ("SOURCE", "LINK", "STREAM")
_PLANNED = {"INDEX": "Pando creates the indexes that it needs"}
MAX_COLUMNS = 256


def parse_create(
    cursor: Cursor, common: dict[str, Any]
) -> CreateSource | CreateView | CreateFunction | CreateDisplay | CreateAlarm | CreateSink:
    """Parse what follows CREATE.

    Args:
        cursor: Behind the word CREATE.
        common: Text, span and script of the statement.

    Raises:
        QuerySyntaxError: It is malformed.
        UnsupportedError: Another kind of thing is to be created.
    """
    replace = _or_replace(cursor)
    if replace:
        common = {**common, "text": _text_without_or_replace(cursor, common["text"])}
    if cursor.word() in _PLANNED:
        cursor.refuse(
            f"CREATE {cursor.word()} is refused: {_PLANNED[cursor.word()]}",
            code="unsupported_statement",
        )
    word = cursor.choice(_CREATABLE, "SOURCE, TABLE, VIEW or another kind of thing after CREATE")
    if word in ("FUNCTION", "AGGREGATE"):
        return parse_function(cursor, common, aggregate=word == "AGGREGATE")
    if word in ("RECURSIVE", "MATERIALIZED", "VIEW"):
        return _view(cursor, common, word)
    _without_if(cursor)
    if word == "DISPLAY":
        return parse_display(cursor, common)
    if word == "ALARM":
        return parse_alarm(cursor, common)
    if word == "SINK":
        return parse_sink(cursor, common)
    if word == "LINK":
        cursor.expect("SOURCE", hint="CREATE LINK SOURCE name (…)")
    _without_if(cursor)
    kind = {"LINK": SourceKind.LINK, "TABLE": SourceKind.TABLE}.get(word, SourceKind.STREAM)
    return _source(cursor, common, kind, replace=replace)


def _or_replace(cursor: Cursor) -> bool:
    if not cursor.accept("OR", "REPLACE"):
        return False
    if cursor.word() not in _REPLACED:
        cursor.refuse(
            "OR REPLACE is supported only for sources",
            hint="DROP the old definition first",
            code="unsupported_statement",
        )
    return True


def _text_without_or_replace(cursor: Cursor, text: str) -> str:
    """Return the text of a definition, which is the same whether it replaced another or not.

    Args:
        cursor: Behind CREATE OR REPLACE.
        text: Of the whole statement.
    """
    create, replace = cursor.ahead(-3), cursor.ahead(-1)
    if create is None or replace is None:
        raise InternalError("CREATE OR REPLACE is not three words")
    start = create.start
    return text[: create.end + 1 - start] + text[replace.end + 1 - start :]


def _without_if(cursor: Cursor) -> None:
    """Refuse IF NOT EXISTS before it is taken for a name."""
    if cursor.at("IF", "NOT", "EXISTS"):
        cursor.refuse(
            "IF NOT EXISTS is not supported", hint="leave it out", code="unsupported_statement"
        )


def _source(
    cursor: Cursor, common: dict[str, Any], kind: SourceKind, *, replace: bool
) -> CreateSource:
    name = cursor.name("a name")
    parts = _Parts(kind)
    cursor.expect("(", hint=f"CREATE … {name.text} (column TYPE, …)")
    cursor.listed(lambda: _element(cursor, parts))
    cursor.expect(")", hint="separate columns with commas")
    options = parse_options(cursor) if cursor.accept("WITH") else ()
    cursor.end(hint="put options into WITH (name = 'value', …)")
    return CreateSource(
        **common,
        name=name,
        kind=kind,
        columns=tuple(parts.columns),
        key=parts.key,
        watermark=parts.watermark,
        options=options,
        replace=replace,
    )


@dataclass(slots=True)
class _Parts:
    """Columns, key and watermark read so far of a source or table."""

    kind: SourceKind
    columns: list[ColumnDefinition] = field(default_factory=list)
    key: tuple[Name, ...] = ()
    watermark: Watermark | None = None


def _element(cursor: Cursor, parts: _Parts) -> None:
    if len(parts.columns) > MAX_COLUMNS:
        cursor.fail(f"more than {MAX_COLUMNS} columns", code="limit_exceeded")
    if cursor.at("WATERMARK", "FOR"):
        if parts.watermark is not None:
            cursor.fail("expected one WATERMARK only", code="duplicate_clause")
        cursor.accept("WATERMARK", "FOR")
        parts.watermark = _watermark(cursor)
    elif cursor.at("KEY", "(") or cursor.at("PRIMARY KEY") or cursor.at("PRIMARY", "KEY"):
        if parts.key:
            cursor.fail("expected one KEY only", code="duplicate_clause")
        if not cursor.accept("PRIMARY", "KEY"):
            cursor.advance()
        parts.key = cursor.names("a column of the key")
    else:
        column = parse_column(cursor, parts.kind)
        if column.primary_key:
            if parts.key:
                cursor.fail(
                    "expected one KEY only",
                    hint="PRIMARY KEY (a, b) for two columns",
                    code="duplicate_clause",
                )
            parts.key = (column.name,)
        parts.columns.append(column)


def parse_column(cursor: Cursor, kind: SourceKind) -> ColumnDefinition:
    """Parse a column of a source or table: name, type and what stands behind it.

    Raises:
        QuerySyntaxError: It is malformed.
        UnsupportedError: It has a constraint, or a table's column a clause of devices.
    """
    name = cursor.name("a column name")
    dtype = parse_type(cursor)
    primary = False
    clauses: list[ColumnClause] = []
    while True:
        if cursor.accept("PRIMARY KEY") or cursor.accept("PRIMARY", "KEY"):
            primary = True
        elif at_clause(cursor):
            if kind == SourceKind.TABLE:
                _refuse_clause(cursor)
            clauses.append(parse_clause(cursor, clauses))
        else:
            _refuse_constraint(cursor)
            return ColumnDefinition(name, dtype, primary, tuple(clauses))


def _refuse_clause(cursor: Cursor) -> NoReturn:
    cursor.refuse(
        f"{cursor.word()} says how a device's value is read, but this is a table",
        hint="leave it out, or use CREATE SOURCE",
        code="unsupported_constraint",
    )


def _refuse_constraint(cursor: Cursor) -> None:
    """Refuse constraints of other SQL dialects, if one is next."""
    if cursor.at("NOT", "NULL"):
        cursor.refuse(
            "NOT NULL is not supported: Pando does not check sensor data",
            hint="remove it and filter with WHERE column IS NOT NULL",
            code="unsupported_constraint",
        )
    if cursor.word() in ("DEFAULT", "REFERENCES", "UNIQUE", "CHECK"):
        cursor.refuse(
            f"{cursor.word()} is not supported in a column",
            hint="leave it out",
            code="unsupported_constraint",
        )


def _watermark(cursor: Cursor) -> Watermark:
    column = cursor.name("the event-time column")
    hint = f"WATERMARK FOR {column.text} AS {column.text} - INTERVAL '5 s'"
    cursor.expect("AS", hint=hint)
    same = cursor.name("the same column")
    if same.text != column.text:
        raise QuerySyntaxError(
            f"the watermark of {column.text} must be computed from {column.text}",
            span=same.span,
            hint=hint,
            code="bad_watermark",
        )
    if not cursor.accept("-"):
        return Watermark(column, 0)
    cursor.expect("INTERVAL", hint=hint)
    return Watermark(column, _lateness(cursor))


def _lateness(cursor: Cursor) -> int:
    """Step over a duration, whose unit may stand behind the quotes."""
    span = cursor.here()
    text, _ = cursor.string("an allowed lateness")
    try:
        micros = parse_duration(text)
        if cursor.word() and not cursor.at(",") and not cursor.at(")"):
            micros = parse_duration(f"{text} {cursor.word()}")
            cursor.advance()
    except ValueError as error:
        raise QuerySyntaxError(
            str(error),
            span=span,
            hint="write for example '5 s', '10 min' or '1 h'",
            code="bad_duration",
        ) from None
    return micros


def _view(cursor: Cursor, common: dict[str, Any], word: str) -> CreateView:
    recursive = word == "RECURSIVE"
    materialized = word == "MATERIALIZED"
    while word != "VIEW":
        word = cursor.choice(("RECURSIVE", "MATERIALIZED", "VIEW"), "VIEW")
        recursive = recursive or word == "RECURSIVE"
        materialized = materialized or word == "MATERIALIZED"
    _without_if(cursor)
    name = cursor.name("a name for the view")
    columns = cursor.names("a column name") if cursor.at("(") else ()
    refresh = refresh_times(cursor) if materialized and cursor.at("REFRESH") else None
    if cursor.at("REFRESH"):
        hint = f"CREATE MATERIALIZED VIEW {name.text} REFRESH AT ('14:00') AS …"
        cursor.fail("only a materialized view can be refreshed", hint=hint)
    cursor.expect("AS", hint=f"CREATE VIEW {name.text} AS SELECT …")
    query = without_output(query_statement(cursor), "a view")
    return CreateView(
        **common,
        name=name,
        columns=columns,
        recursive=recursive,
        materialized=materialized,
        query=query,
        refresh=refresh,
    )
