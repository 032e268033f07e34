"""Five hundred malformed statements: never a traceback, always a place inside the text.

A seeded generator breaks good statements in the ways in which people and editors do; a list holds
mistakes that are typical. `test_never_crashes.py` looks for more, at random.
"""

import random
import re

import pytest

from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.error_codes import ERROR_CODES, SCHEMA, STATEMENT_CODES
from streamsql.errors import QueryError
from streamsql.library import library_views
from streamsql.syntax import CreateSource, CreateView, Explain, Query, Subscribe, parse_script

COUNT = 500
GOOD = [entry.instead for entry in STATEMENT_CODES if entry.instead] + [
    "SELECT room, AVG(weight) AS mean FROM seat [RANGE 10 MINUTES SLIDE 1 MINUTE] GROUP BY room "
    "HAVING COUNT(*) > 2 ORDER BY mean DESC NULLS LAST LIMIT 3 OFFSET 1",
    "SELECT s.desk, m.mid FROM seat s FULL JOIN machines m USING (room) WHERE m.level IS NULL",
    "SELECT window_end, COUNT(*) FILTER (WHERE weight > 5) AS n FROM HOP(seat, ts, INTERVAL "
    "'10 s', INTERVAL '1 minute') GROUP BY window_end EMIT ON WINDOW CLOSE",
    "SELECT CASE WHEN weight BETWEEN 1 AND 2 THEN 'a' ELSE CAST(weight AS TEXT) END AS c FROM seat "
    "WHERE room LIKE 'a%' AND NOT desk IN ('x', 'y')",
    "SELECT desk FROM seat s WHERE EXISTS (SELECT 1 FROM machines m WHERE m.room = s.room) "
    "INTERSECT ALL SELECT mid FROM machines EXCEPT SELECT src FROM link",
    "SELECT room, tag FROM badge QUALIFY ROW_NUMBER() OVER (PARTITION BY room ORDER BY ts) <= 3",
]
TYPICAL = """
SELECT desk weight room FROM seat
SELECT * FORM seat
SELECT desk FROM seat WHERE room = "north"
SELECT desk FROM seat WHERE room == north
SELECT desk FROM seat WHERE weight = NULL AND
SELECT desk FROM seat GROUP BY
SELECT COUNT(*), desk FROM seat
SELECT desk FROM seat HAVING weight > 5
SELECT TOP 5 desk FROM seat
SELECT desk FROM seat LIMIT five
SELECT desk FROM seat WHERE desk LIKE %x%
SELECT desk FROM seat WHERE desk IN ()
SELECT desk FROM seat WHERE weight BETWEEN 5
SELECT desk FROM seat WHERE weight > '5 kg'
SELECT desk + 1 FROM seat
SELECT AVG(desk) FROM seat
SELECT SUM(weight FROM seat
SELECT desk FROM seat [RANGE 10]]
SELECT desk FROM seat [RANGE TEN MINUTES]
SELECT desk FROM machines [RANGE 10 MINUTES]
SELECT desk FROM seat, seat
SELECT s.desk FROM seat
SELECT desk FROM seat JOIN machines
SELECT desk FROM seat JOIN machines ON
SELECT desk FROM seat ORDER weight
SELECT desk FROM seat GROUP desk
SELECT desk FROM (SELECT desk FROM seat
SELECT desk FROM seat WHERE AVG(weight) > 5
SELECT MAX(AVG(weight)) FROM seat
SELECT desk AS FROM seat
SELECT FROM
SELECT desk,, room FROM seat
SELECT desk FROM seat; seat;
SELECT desk FROM seat WHERE (weight > 5
SELECT desk FROM seat WHERE weight > 5)
SELECT desk FROM seat UNION machines
SELECT desk, room FROM seat UNION SELECT mid FROM machines
SELECT DISTINCT COUNT(* FROM seat
INSERT INTO seat (desk) VALUES 'a'
CREATE SOURCE (a TEXT)
CREATE SOURCE s (a VARCHAR(20))
CREATE SOURCE s (a TEXT PRIMARY)
CREATE TABLE t AS SELECT 1
CREATE VIEW v SELECT desk FROM seat
DELETE * FROM seat
DROP seat
EXPLAIN
SHOW SOURCE
SELECT desk FROM seat EMIT ON CLOSE
SELECT \u201cdesk\u201d FROM seat
SELECT desk FROM seat WHERE room = \u2018north\u2019
SELECT desk\u00a0FROM\u00a0seatt
SELECT \u0000 FROM seat
\ufeff SELEC 1
""".strip().splitlines()
ODD = [
    "",
    "'",
    '"',
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    "--",
    "/*",
    "*/",
    "::",
    "$1",
    "?",
    "\x00",
    "é",
    "\U0001f600",
    "\u201c",
    "\t",
    "\\",
    "..",
    "1e",
    "0x",
    "@",
    "#",
    "{",
    "}",
    "`",
    "||",
    "= =",
]
NAMES = ["nowhere", "desk", "FROM", "seat", "NULL", "COUNT", "5", "'x'", "ts", "INTERVAL", "OVER"]

CATALOG = Catalog(library_views())
for _statement in parse_script(SCHEMA):
    assert isinstance(_statement, CreateSource | CreateView)
    CATALOG.define(define(_statement, CATALOG))


def _broken(chance: random.Random) -> str:
    tokens = re.findall(r"\s+|\w+|'[^']*'|[^\w\s]", chance.choice(GOOD))
    for _ in range(chance.randint(1, 3)):
        place, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(8):
            case 0:
                tokens[place] = ""
            case 1:
                tokens[place] *= 2
            case 2:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 3:
                tokens[place] = chance.choice(NAMES)
            case 4:
                tokens[place] += chance.choice(ODD)
            case 5:
                tokens = tokens[: place + 1]
            case 6:
                tokens[place] = tokens[place][::-1]
            case _:
                tokens[place] = f" {chance.choice(NAMES)} {chance.choice(ODD)} "
    return "".join(tokens)


def _large(chance: random.Random) -> list[str]:
    """Return texts that are very long, wide or deep."""
    n = chance.randint(200, 400)
    return [
        f"SELECT {'(' * n}1{')' * n}",
        f"SELECT {'-' * 2 * n}1 FROM seat WHERE",
        f"SELECT {' + '.join(['weight'] * 2 * n)} FROM seat",
        f"SELECT {', '.join(['desk'] * 3 * n)} FROM seat",
        f"SELECT desk FROM {', '.join(f'seat s{i}' for i in range(n))}",
        f"SELECT {'NOT ' * 5 * n} TRUE",
        f"SELECT {'a' * 50 * n} FROM seat",
        f"SELECT desk FROM {'(SELECT * FROM ' * n}seat{') AS q' * n}",
        f"SELECT {'CASE WHEN TRUE THEN ' * n}1",
        f"SELECT desk FROM seat WHERE {' OR '.join(['room = weight'] * n)}",
        "x" * 1_000_001,
    ]


def _check(text: str) -> bool:
    """Check what is said about a text; return whether it was refused."""
    error = _refusal(text)
    if error is None:
        return False
    span = error.span
    assert error.code in ERROR_CODES, (text, error.code)
    assert error.message, text
    assert span is not None, (text, error.message)
    lines = [*text.split("\n"), ""]
    assert 1 <= span.line <= len(lines), (text, span)
    assert 1 <= span.column <= len(lines[span.line - 1]) + 1, (text, span)
    assert not any(word in str(error) for word in ("Traceback", "sqlglot", "<class")), text
    return True


def _refusal(text: str) -> QueryError | None:
    try:
        for statement in parse_script(text):
            inner = statement
            while isinstance(inner, Explain | Subscribe):
                inner = inner.inner
            if isinstance(inner, Query):
                bind_query(inner, CATALOG)
            elif isinstance(inner, CreateSource | CreateView):
                define(inner, CATALOG)
    except QueryError as error:
        return error
    return None


@pytest.mark.parametrize("text", TYPICAL)
def test_typical_mistakes_are_refused_at_their_place(text: str) -> None:
    assert _check(text)


def test_five_hundred_broken_statements_are_refused_at_their_place() -> None:
    chance = random.Random(20260101)
    refused = sum(_check(text) for text in _large(chance))
    assert refused >= 9
    tried = 0
    while refused < COUNT:
        refused += _check(_broken(chance))
        tried += 1
        assert tried < 4 * COUNT
