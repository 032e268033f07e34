"""UPDATE and MERGE: rows of a stored table that change, in one statement."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import Span
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.query_parser import parse_expression
from streamsql.syntax.statement_parsers.query_clauses import query_of
from streamsql.syntax.statements import Name, Query, Statement

MAX_ACTIONS = 20
_UPDATE = "UPDATE table SET column = value WHERE …"
_MERGE = (
    "MERGE INTO table USING (VALUES (…)) AS s (columns) ON table.key = s.key "
    "WHEN MATCHED THEN UPDATE SET column = s.column WHEN NOT MATCHED THEN INSERT VALUES (s.key, …)"
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = value`."""

    column: Name
    value: exp.Expr = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Statement):
    """UPDATE t SET column = value, … [WHERE predicate]."""

    source: Name
    assignments: tuple[Assignment, ...]
    predicate: exp.Expr | None = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAction:
    """`WHEN [NOT] MATCHED [AND condition] THEN …`.

    Attributes:
        matched: Whether it is for rows of the table that a row of the source meets; else for rows
            of the source that meet none.
        condition: After AND, or None.
        verb: UPDATE, DELETE, INSERT or NOTHING.
        assignments: Of UPDATE.
        columns: That INSERT names.
        values: Of INSERT.
    """

    matched: bool
    verb: str
    span: Span
    condition: exp.Expr | None = field(default=None, compare=False)
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[Name, ...] = ()
    values: tuple[exp.Expr, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Statement):
    """MERGE INTO t USING rows AS s ON condition WHEN … THEN ….

    Attributes:
        alias: Of the table; its own name if none is given.
        rows: `SELECT * FROM` what USING names.
        row_name: Alias of these rows.
        on: When a row of the table and one of these meet.
        actions: The first that fits a row is taken.
    """

    source: Name
    alias: Name
    rows: Query
    row_name: Name
    on: exp.Expr = field(compare=False)
    actions: tuple[MergeAction, ...]


def parse_update(cursor: Cursor, common: dict[str, Any]) -> Update:
    """Parse what follows UPDATE."""
    source = cursor.name("the name of a table")
    cursor.expect("SET", hint=_UPDATE)
    assignments = _assignments(cursor, ("WHERE",))
    predicate = _expression(cursor, ()) if cursor.accept("WHERE") else None
    cursor.end(hint=_UPDATE)
    return Update(**common, source=source, assignments=assignments, predicate=predicate)


def parse_merge(cursor: Cursor, common: dict[str, Any]) -> Merge:
    """Parse what follows MERGE."""
    cursor.expect("INTO", hint=_MERGE)
    source = cursor.name("the name of a table")
    alias = source
    if cursor.accept("AS") or not cursor.at("USING"):
        alias = cursor.name("another name of the table, or USING")
    cursor.expect("USING", hint=_MERGE)
    rows, row_name = _rows(cursor)
    cursor.expect("ON", hint=_MERGE)
    on = _expression(cursor, ("WHEN",))
    actions: list[MergeAction] = []
    while cursor.at("WHEN"):
        if len(actions) >= MAX_ACTIONS:
            cursor.refuse(f"more than {MAX_ACTIONS} WHEN in one MERGE", code="limit_exceeded")
        _refuse_after_all(cursor, actions)
        actions.append(_action(cursor))
    if not actions:
        cursor.fail("expected WHEN MATCHED or WHEN NOT MATCHED", hint=_MERGE)
    cursor.end(hint=_MERGE)
    return Merge(
        **common,
        source=source,
        alias=alias,
        rows=rows,
        row_name=row_name,
        on=on,
        actions=tuple(actions),
    )


def _refuse_after_all(cursor: Cursor, actions: Sequence[MergeAction]) -> None:
    """Refuse a WHEN that no row would reach."""
    matched = not cursor.at("WHEN", "NOT")
    if any(each.matched == matched and each.condition is None for each in actions):
        cursor.refuse(
            f"an earlier WHEN {'' if matched else 'NOT '}MATCHED takes all rows before this one",
            hint="give the earlier one a condition: WHEN … AND condition THEN …",
            code="unsupported_statement",
        )


def _rows(cursor: Cursor) -> tuple[Query, Name]:
    """Parse what follows USING, up to ON; return a query of it, and its alias."""
    begin = cursor.token
    tokens = cursor.until(("ON",))
    if begin is None or not tokens:
        cursor.fail("expected rows after USING", hint=_MERGE)
    inner = Cursor(cursor.script, tokens)
    if inner.at("("):
        inner.inside()
        inner.accept("AS")
        name = inner.name("a name of the rows, after AS")
    else:
        name = inner.name("the name of a table or view, or rows in parentheses")
        if inner.accept("AS") or inner.token is not None:
            name = inner.name("a name of the rows")
    if inner.at("("):
        inner.names("a column name")
    inner.end(hint=_MERGE)
    first = tokens[0]
    words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    # They stand for nothing that was written: errors point at what follows.
    added = [
        Token(kind, text, first.line, first.col, first.start, first.start) for kind, text in words
    ]
    return query_of(cursor.script, [*added, *tokens]), name


def _action(cursor: Cursor) -> MergeAction:
    span = cursor.here()
    cursor.expect("WHEN")
    matched = not cursor.accept("NOT")
    cursor.expect("MATCHED", hint=_MERGE)
    condition = _expression(cursor, ("THEN",)) if cursor.accept("AND") else None
    cursor.expect("THEN", hint=_MERGE)
    if cursor.accept("DO"):
        cursor.expect("NOTHING")
        return MergeAction(matched=matched, verb="NOTHING", span=span, condition=condition)
    verb = cursor.choice(("UPDATE", "DELETE") if matched else ("INSERT",), "what to do")
    if verb == "DELETE":
        return MergeAction(matched=matched, verb=verb, span=span, condition=condition)
    if verb == "UPDATE":
        cursor.expect("SET", hint=_MERGE)
        assigned = _assignments(cursor, ("WHEN",))
        return MergeAction(
            matched=matched, verb=verb, span=span, condition=condition, assignments=assigned
        )
    columns = cursor.names("a column name") if cursor.at("(") else ()
    cursor.expect("VALUES", "(", hint=_MERGE)
    runs = cursor.until_closing()
    if any(not run for run in runs):
        cursor.fail("a value is missing before this", hint="NULL is a value")
    values = tuple(parse_expression(cursor.script, run) for run in runs)
    return MergeAction(
        matched=matched, verb=verb, span=span, condition=condition, columns=columns, values=values
    )


def _assignments(cursor: Cursor, ends: tuple[str, ...]) -> tuple[Assignment, ...]:
    def one() -> Assignment:
        column = cursor.name("the name of a column")
        cursor.expect("=", hint="SET column = value")
        return Assignment(column, _expression(cursor, (",", *ends)))

    return tuple(cursor.listed(one))


def _expression(cursor: Cursor, ends: Sequence[str]) -> exp.Expr:
    """Parse an expression that ends at one of these words, or with the statement."""
    depth = 0
    tokens: list[Token] = []
    while cursor.token is not None and (depth > 0 or cursor.word() not in ends):
        word = cursor.word()
        # A CASE has a WHEN and a THEN of its own.
        depth += (word in ("(", "CASE")) - (word in (")", "END"))
        tokens.append(cursor.advance())
    if not tokens:
        cursor.fail("expected a value or a condition")
    return parse_expression(cursor.script, tokens)
