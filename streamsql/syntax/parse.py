"""Text to the tokens of its statements, and those to statements; bounded, errors in plain words."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.algebra.operators import StreamKind
from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.dialect import StreamSql
from streamsql.syntax.explain_options import ExplainFormat
from streamsql.syntax.row_question_statements import ExplainConfidence, ExplainWhatIf, ExplainWhy
from streamsql.syntax.script_places import Script
from streamsql.syntax.statement_parsers import commands
from streamsql.syntax.statement_parsers.alter_statements import ALTERED, parse_alter
from streamsql.syntax.statement_parsers.change_statements import parse_merge, parse_update
from streamsql.syntax.statement_parsers.create_statements import parse_create
from streamsql.syntax.statement_parsers.deliveries import parse_refresh, parse_subscribe
from streamsql.syntax.statement_parsers.explain_questions import question_parser
from streamsql.syntax.statement_parsers.grant_statements import parse_grant, parse_revoke
from streamsql.syntax.statement_parsers.query_clauses import query_statement
from streamsql.syntax.statement_parsers.run_statements import parse_run
from streamsql.syntax.statements import Explain, Statement

MAX_TEXT = 1_000_000
MAX_NESTING = 100
_UNCLOSED = re.compile(r"Missing (\S+) from \d+:(\d+)")
_KINDS = {"'": "text", '"': "quoted name"}
_QUERY_WORDS = ("SELECT", "WITH", *StreamKind)
_ELSEWHERE = {
    "ALTER": "DROP the definition and CREATE it again",
    "TRUNCATE": "DELETE FROM source",
    "USE": "there is only one catalog",
    "SET": "there are no session settings",
    "BEGIN": "transactions are not supported: each statement takes effect at once",
    "COMMIT": "transactions are not supported: each statement takes effect at once",
}


def scan(text: str) -> tuple[Script, list[Token]]:
    """Return the script and its tokens.

    Raises:
        QuerySyntaxError: The text is too long, nested too deeply, or has an unclosed quote.
    """
    script = Script(text)
    if len(text) > MAX_TEXT:
        raise QuerySyntaxError(
            f"the text has {len(text)} characters; the max is {MAX_TEXT}",
            span=script.span(0, -1),
            hint="load long lists of rows from a table instead",
            code="limit_exceeded",
        )
    try:
        tokens = StreamSql().tokenize(text)
    except SqlglotError as error:
        raise _scan_error(script, error) from None
    except (RecursionError, IndexError, ValueError):
        raise QuerySyntaxError("this text cannot be read", span=script.span(0, 40)) from None
    _check_nesting(script, tokens)
    return script, tokens


def split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at semicolons; empty statements vanish."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _check_nesting(script: Script, tokens: Sequence[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET):
            depth += 1
        elif token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET):
            depth -= 1
        elif token.token_type == TokenType.SEMICOLON:
            depth = 0
        if depth > MAX_NESTING:
            raise QuerySyntaxError(
                f"more than {MAX_NESTING} brackets are nested",
                span=script.span(token.start, token.end),
                hint="name inner parts in a WITH clause",
                code="limit_exceeded",
            )


def _scan_error(script: Script, error: SqlglotError) -> QuerySyntaxError:
    cause: BaseException | None = error
    while cause is not None:
        found = _UNCLOSED.search(str(cause))
        if found:
            offset, mark = int(found.group(2)), found.group(1)
            kind = _KINDS.get(mark, "part")
            return QuerySyntaxError(
                f"this {kind} has no closing {mark}",
                span=script.span(offset, offset + 20),
                hint=f"close it with {mark}; inside, write {mark}{mark} for the character itself",
                code="unclosed_quote",
            )
        cause = cause.__cause__
    # The tokenizer runs off the end of the text inside a comment or behind a last quote.
    opening = script.text.rfind("/*")
    if opening > script.text.rfind("*/"):
        return QuerySyntaxError(
            "this comment has no closing */",
            span=script.span(opening, opening + 20),
            hint="close it with */, or start each of its lines with --",
            code="unclosed_quote",
        )
    return QuerySyntaxError(
        "the text ends inside a quote or a comment",
        span=script.end(),
        hint="close it",
        code="unclosed_quote",
    )


def parse_script(text: str) -> tuple[Statement, ...]:
    """Return the statements of a script, in order; comments and empty statements are skipped.

    Raises:
        QuerySyntaxError: The text is not StreamSQL; says where and what to write instead.
        UnsupportedError: It is understood but refused.
    """
    script, tokens = scan(text)
    return tuple(_statement(script, part) for part in split(tokens))


def parse_statement(text: str) -> Statement:
    """Return the only statement of a text.

    Raises:
        QuerySyntaxError: There is none, or more than one, or it is malformed.
        UnsupportedError: It is understood but refused.
    """
    script, tokens = scan(text)
    parts = split(tokens)
    if not parts:
        raise QuerySyntaxError(
            "there is no statement",
            span=Script(text).end(),
            hint="write for example SHOW SOURCES",
            code="empty_statement",
        )
    if len(parts) > 1:
        extra = parts[1][0]
        raise QuerySyntaxError(
            "write one statement at a time",
            span=script.span(extra.start, extra.end),
            hint="run a file of statements as a script",
            code="several_statements",
        )
    return _statement(script, parts[0])


def _statement(script: Script, tokens: Sequence[Token]) -> Statement:
    first, last = tokens[0], tokens[-1]
    common = {
        "text": script.text[first.start : last.end + 1],
        "span": script.span(first.start, first.end),
        "script": script,
    }
    cursor = Cursor(script, tokens)
    if cursor.at("("):
        return query_statement(cursor)
    word = cursor.word()
    if word in _ELSEWHERE and not (word == "ALTER" and cursor.word(1) in ALTERED):
        cursor.refuse(
            f"{word} is not a StreamSQL statement",
            hint=_ELSEWHERE[word],
            code="unsupported_statement",
        )
    cursor_word = "DESCRIBE" if word == "DESC" else word
    known = (*_QUERY_WORDS, *_PARSERS, "EXPLAIN", "RUN")
    if cursor_word not in known:
        cursor.choice(known, "a statement")
    if cursor_word in _QUERY_WORDS:
        return query_statement(cursor)
    cursor.advance()
    if cursor_word == "EXPLAIN":
        return _explain(cursor, common)
    if cursor_word == "RUN":
        return parse_run(cursor, common, _statement)
    return _PARSERS[cursor_word](cursor, common)


def _explain(cursor: Cursor, common: dict[str, Any]) -> Statement:
    analyze, kind, fmt = commands.parse_explain_options(cursor)
    question = question_parser(cursor)
    if question is not None:
        if fmt == ExplainFormat.DOT:
            raise QuerySyntaxError(
                "an explanation of rows has no graph",
                span=common["span"],
                hint="FORMAT TEXT or FORMAT JSON",
                code="misplaced_explain",
            )
        if analyze:
            raise QuerySyntaxError(
                "ANALYZE explains plans, not rows",
                span=common["span"],
                hint="leave it out",
                code="misplaced_explain",
            )
        return question(cursor, common, fmt)
    if cursor.token is None:
        cursor.fail("expected a statement to explain")
    inner = _statement(cursor.script, cursor.rest())
    if isinstance(inner, Explain | ExplainWhy | ExplainWhatIf | ExplainConfidence):
        raise QuerySyntaxError(
            "EXPLAIN cannot explain itself",
            span=inner.span,
            hint="write EXPLAIN once",
            code="misplaced_explain",
        )
    return Explain(**common, analyze=analyze, type=kind, format=fmt, inner=inner)


_PARSERS: dict[str, Callable[[Cursor, dict[str, Any]], Statement]] = {
    "CREATE": parse_create,
    "DROP": commands.parse_drop,
    "INSERT": commands.parse_insert,
    "DELETE": commands.parse_delete,
    "UPDATE": parse_update,
    "MERGE": parse_merge,
    "SUBSCRIBE": parse_subscribe,
    "GRANT": parse_grant,
    "REVOKE": parse_revoke,
    "SHOW": commands.parse_show,
    "DESCRIBE": commands.parse_describe,
    "ALTER": parse_alter,
    "REFRESH": parse_refresh,
    "ADVANCE": commands.parse_advance,
}
