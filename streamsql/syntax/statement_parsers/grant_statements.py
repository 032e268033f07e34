"""GRANT, REVOKE, SHOW GRANTS and ALTER USER: who may read what, and how much they may use."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlglot.tokenizer_core import TokenType

from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.statement_parsers.query_clauses import parse_options
from streamsql.syntax.statements import Name, Option, Statement

T = TypeVar("T")
MAX_NAMES = 200
"""Relations or grantees in one statement."""
MAX_ACCOUNT = 64
_KINDS = ("SOURCE", "TABLE", "VIEW")
_GRANTEES = ("USER", "ROLE", "EVERYBODY")
_TO = "TO USER name, TO ROLE analyst, or TO EVERYBODY"
_GRANT = f"GRANT SELECT ON SOURCE name {_TO}"
_REVOKE = "REVOKE SELECT ON SOURCE name FROM USER name, FROM ROLE analyst, or FROM EVERYBODY"
_SHOW = "SHOW GRANTS FOR USER name, or SHOW GRANTS ON SOURCE name"
_ALTER = "ALTER USER name SET (max_queries = 5)"


class GranteeKind(enum.StrEnum):
    """Grantee of a right."""

    USER = "user"
    ROLE = "role"
    EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class WrittenGrantee:
    """`USER ann`, `ROLE analyst` or `EVERYBODY`; the name is that word, too, in the last case."""

    kind: GranteeKind
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnRelations(Statement):
    """The common part of GRANT and REVOKE.

    Attributes:
        kind: Of all the relations: source, table or view.
    """

    kind: str
    relations: tuple[Name, ...]
    grantees: tuple[WrittenGrantee, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(_OnRelations):
    """GRANT SELECT ON SOURCE | TABLE | VIEW name, … TO USER name | ROLE name | EVERYBODY, …."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoke(_OnRelations):
    """REVOKE SELECT ON SOURCE | TABLE | VIEW name, … FROM USER name | ROLE name | EVERYBODY, …."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowGrants(Statement):
    """SHOW GRANTS [FOR USER name | ROLE name | EVERYBODY] [ON SOURCE | TABLE | VIEW name].

    Attributes:
        relation: What is granted, or None for all.
        kind: Of the relation, or empty.
    """

    grantee: WrittenGrantee | None = None
    relation: Name | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUser(Statement):
    """ALTER USER name SET (max_queries = 5, …): quotas of an account."""

    user: Name
    options: tuple[Option, ...]


def parse_grant(cursor: Cursor, common: dict[str, Any]) -> Grant:
    """Parse what follows GRANT."""
    kind, relations = _right(cursor, _GRANT)
    cursor.expect("TO", hint=_TO)
    grantees = _listed(cursor, lambda: _grantee(cursor))
    cursor.end(hint=_GRANT)
    return Grant(**common, kind=kind, relations=relations, grantees=grantees)


def parse_revoke(cursor: Cursor, common: dict[str, Any]) -> Revoke:
    """Parse what follows REVOKE."""
    kind, relations = _right(cursor, _REVOKE)
    cursor.expect("FROM", hint=_REVOKE)
    grantees = _listed(cursor, lambda: _grantee(cursor))
    cursor.end(hint=_REVOKE)
    return Revoke(**common, kind=kind, relations=relations, grantees=grantees)


def parse_show_grants(cursor: Cursor, common: dict[str, Any]) -> ShowGrants:
    """Parse what follows SHOW GRANTS."""
    grantee = relation = None
    kind = ""
    if cursor.accept("FOR"):
        grantee = _grantee(cursor)
    if cursor.accept("ON"):
        kind = cursor.choice(_KINDS, "SOURCE, TABLE or VIEW").lower()
        relation = cursor.name(f"the name of a {kind}")
    cursor.end(hint=_SHOW)
    return ShowGrants(**common, grantee=grantee, relation=relation, kind=kind)


def parse_alter_user(cursor: Cursor, common: dict[str, Any]) -> AlterUser:
    """Parse what follows ALTER USER."""
    user = _account(cursor)
    cursor.expect("SET", hint=_ALTER)
    options = parse_options(cursor)
    cursor.end(hint=_ALTER)
    return AlterUser(**common, user=user, options=options)


def _right(cursor: Cursor, hint: str) -> tuple[str, tuple[Name, ...]]:
    if cursor.word() in ("INSERT", "UPDATE", "DELETE", "ALL"):
        cursor.refuse(
            f"{cursor.word()} cannot be granted: operators change tables, nobody else does",
            hint=hint,
            code="unsupported_statement",
        )
    cursor.expect("SELECT", hint=hint)
    cursor.expect("ON", hint=hint)
    kind = cursor.choice(_KINDS, "SOURCE, TABLE or VIEW").lower()
    names = _listed(cursor, lambda: cursor.name(f"the name of a {kind}"))
    return kind, names


def _listed(cursor: Cursor, element: Callable[[], T]) -> tuple[T, ...]:
    found = cursor.listed(element)
    if len(found) > MAX_NAMES:
        cursor.refuse(
            f"{len(found)} names in one statement; the max is {MAX_NAMES}",
            hint="split it",
            code="limit_exceeded",
        )
    return tuple(found)


def _grantee(cursor: Cursor) -> WrittenGrantee:
    place = cursor.here()
    kind = GranteeKind(cursor.choice(_GRANTEES, "USER, ROLE or EVERYBODY").lower())
    match kind:
        case GranteeKind.EVERYBODY:
            return WrittenGrantee(kind, Name(kind, place))
        case GranteeKind.ROLE:
            return WrittenGrantee(kind, cursor.name("a role"))
        case GranteeKind.USER:
            return WrittenGrantee(kind, _account(cursor))


def _account(cursor: Cursor) -> Name:
    """Step over the name of an account, which may hold `. _ @ + -` without quotes."""
    token = cursor.token
    if token is None:
        cursor.fail("expected the name of an account", hint="USER ann")
    if token.token_type == TokenType.STRING:
        text, span = cursor.string("the name of an account")
        return _checked(text, Name(text.lower(), span))
    if token.token_type == TokenType.IDENTIFIER:
        name = cursor.name("the name of an account")
        return _checked(name.text, Name(name.text.lower(), name.span))
    first = last = cursor.advance()
    while (following := cursor.token) is not None and following.start == last.end + 1:
        if following.token_type in (TokenType.COMMA, TokenType.L_PAREN):
            break
        last = cursor.advance()
    text = cursor.script.text[first.start : last.end + 1]
    return _checked(text, Name(text.lower(), cursor.script.span(first.start, last.end)))


def _checked(text: str, name: Name) -> Name:
    good = text and text[0].isalnum() and all(c.isalnum() or c in "._@+-" for c in text)
    if not good or len(text) > MAX_ACCOUNT:
        raise QuerySyntaxError(
            f"{text!r:.80} is not the name of an account",
            span=name.span,
            hint="letters, digits, and . _ @ + - after the first, at most 64",
            code="unexpected_token",
        )
    return name
