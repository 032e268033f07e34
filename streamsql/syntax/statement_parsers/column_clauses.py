"""Clauses behind a column's type in CREATE SOURCE: where its value comes from, what it means.

`temperature DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel'`. Any order, each at most once. The binder
checks the values.
"""

import math
from collections.abc import Sequence

from sqlglot.tokenizer_core import TokenType

from streamsql.data.types import Value
from streamsql.mapping.conversions import scalar_text
from streamsql.syntax.cursor import Cursor, nearest
from streamsql.syntax.statements import ColumnClause, ValueMeaning

EXAMPLES = {
    "FROM": "FROM 'ENERGY.Total'",
    "FORMAT": "FORMAT 'comma' of a number, FORMAT '%d.%m.%Y %H:%M' of a time",
    "ZONE": "ZONE 'Europe/Berlin'",
    "IN": "IN 'Wh' UNIT 'kWh'",
    "UNIT": "UNIT 'Cel'",
    "SCALE": "SCALE 0.1",
    "OFFSET": "OFFSET -40",
    "VALUES": "VALUES ('ON' = TRUE, 'OFF' = FALSE)",
}
"""The words that begin a clause, each with an example."""

_NUMBERS = ("SCALE", "OFFSET")
_WORDS: dict[str, Value] = {"TRUE": True, "FALSE": False, "NULL": None}
MAX_CLAUSE_TEXT = 1_000
MAX_MEANINGS = 256


def at_clause(cursor: Cursor) -> bool:
    """Whether a clause is next.

    Raises:
        QuerySyntaxError: A word is next that is none, but nearly.
    """
    word = cursor.word()
    if word in EXAMPLES:
        return True
    close = nearest(word, EXAMPLES, 0.7) if word.isalpha() else ""
    if close:
        cursor.fail("expected a clause of the column", hint=f"did you mean {EXAMPLES[close]}?")
    return False


def parse_clause(cursor: Cursor, given: Sequence[ColumnClause]) -> ColumnClause:
    """Step over one clause.

    Args:
        cursor: At its word.
        given: The clauses before it of the same column.

    Raises:
        QuerySyntaxError: It is malformed, too long, or given twice.
    """
    word, span = cursor.word(), cursor.here()
    if any(clause.word == word for clause in given):
        cursor.fail(
            f"expected {word} at most once in a column",
            hint=f"remove one {word}",
            code="duplicate_clause",
        )
    cursor.advance()
    value_span = cursor.here()
    value: str | float | tuple[ValueMeaning, ...]
    if word == "VALUES":
        value = _meanings(cursor)
    elif word in _NUMBERS:
        value = float(_number(cursor, word))
    else:
        value = _text(cursor, word)
    return ColumnClause(word, value, span, value_span)


def _text(cursor: Cursor, word: str) -> str:
    token = cursor.token
    if token is None or token.token_type != TokenType.STRING:
        cursor.fail(f"expected a text in single quotes after {word}", hint=EXAMPLES[word])
    if len(token.text) > MAX_CLAUSE_TEXT:
        message = f"expected at most {MAX_CLAUSE_TEXT} characters after {word}"
        cursor.fail(message, hint=EXAMPLES[word], code="limit_exceeded")
    cursor.advance()
    return token.text


def _number(cursor: Cursor, word: str) -> int | float:
    sign = -1 if cursor.accept("-") else 1
    token = cursor.token
    if token is None or token.token_type != TokenType.NUMBER:
        cursor.fail(f"expected a number after {word}", hint=EXAMPLES[word])
    whole = token.text.isdigit() and len(token.text) < 19
    number = int(token.text) if whole else _float(token.text)
    if not math.isfinite(number):
        cursor.fail(f"expected a finite number after {word}", hint=EXAMPLES[word])
    cursor.advance()
    return sign * number


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _meanings(cursor: Cursor) -> tuple[ValueMeaning, ...]:
    cursor.expect("(", hint=EXAMPLES["VALUES"])
    found: list[ValueMeaning] = []
    while True:
        if len(found) >= MAX_MEANINGS:
            cursor.fail(f"expected at most {MAX_MEANINGS} values", code="limit_exceeded")
        found.append(_meaning(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")", hint=EXAMPLES["VALUES"])
    return tuple(found)


def _meaning(cursor: Cursor) -> ValueMeaning:
    span = cursor.here()
    raw = _literal(cursor, "what the device sends")
    if raw is None:
        cursor.fail("expected what the device sends before", hint=EXAMPLES["VALUES"])
    cursor.expect("=", hint=EXAMPLES["VALUES"])
    value_span = cursor.here()
    value = _literal(cursor, "the column's value")
    return ValueMeaning(scalar_text(raw) or "", value, span, value_span)


def _literal(cursor: Cursor, what: str) -> Value:
    """Step over a text, a number, TRUE, FALSE or NULL."""
    token = cursor.token
    if token is not None and token.token_type == TokenType.STRING:
        return _text(cursor, "VALUES")
    if cursor.word() in _WORDS:
        return _WORDS[cursor.advance().text.upper()]
    if token is None or not (cursor.at("-") or token.token_type == TokenType.NUMBER):
        cursor.fail(f"expected {what}: a text, a number, TRUE or FALSE", hint=EXAMPLES["VALUES"])
    return _number(cursor, "VALUES")
