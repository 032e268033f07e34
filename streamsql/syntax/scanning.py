"""From script text to the tokens of its statements, with bounds and errors in plain words."""

import re
from collections.abc import Sequence

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError
from streamsql.syntax.dialect import StreamSql
from streamsql.syntax.places import Script

MAX_TEXT = 1_000_000
MAX_NESTING = 100
_UNCLOSED = re.compile(r"Missing (\S+) from \d+:(\d+)")
_KINDS = {"'": "text", '"': "quoted name"}


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
