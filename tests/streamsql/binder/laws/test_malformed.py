"""Five hundred malformed statements: never a traceback, always a place inside the text.

A seeded generator breaks good statements in the ways in which people and editors do; a list holds
mistakes that are typical. `test_never_crashes.py` looks for more, at random.
"""

import random
import re
from collections.abc import Sequence

import pytest

from streamsql.binder import Creating, bind_query, define, key_positions, refreshed
from streamsql.errors import QueryError
from streamsql.syntax import Explain, Query, Subscribe, parse_script
from streamsql.syntax.statements import Refresh
from tests.docs.error_page import ERROR_CODES, SCHEMA, STATEMENT_CODES
from tests.streamsql.from_text import catalog_of

COUNT = 500
NEW_GRAMMAR = [
    "ALTER SITE gw-1 SET (scheduler = 'chain', slice_ms = 5, share_synopses = false)",
    "CREATE DISPLAY lobby WITH (floor = 1, x = 3.5, y = -8.0, title = 'Free', rows = 5)",
    "CREATE ALARM hot AS SELECT room, AVG(weight) AS w FROM seat [RANGE 1 MINUTE] GROUP BY room "
    "HAVING AVG(weight) > 90 SEVERITY 'critical' FOR '30 s'",
    "SUBSCRIBE TO (SELECT mid, level FROM machines) WITH (SNAPSHOT = false, PROGRESS) "
    "ENVELOPE UPSERT (KEY (mid))",
    "CREATE MATERIALIZED VIEW levels REFRESH AT ('14:00', '19:00', '24:00') "
    "COST WEIGHTS (0.25, 0.3, 1) AS SELECT level, COUNT(*) AS n FROM machines GROUP BY level",
    "REFRESH MATERIALIZED VIEW levels",
    "SELECT k, COUNT(*) AS n FROM (ISTREAM(SELECT room AS k, SUM(weight) AS w FROM seat "
    "[RANGE 5 SECONDS] GROUP BY room)) [RANGE 10 SECONDS] AS q GROUP BY k",
    "SELECT DSTREAM(desk) FROM seat [RANGE 5 SECONDS]",
    "SELECT desk FROM seat WHERE desk ~ '^m-[0-9]{1,3}$' AND room !~* '(a|b)+' OR desk SIMILAR TO "
    "'(m|M)-%' AND REGEXP_LIKE(desk, '\\d', 'i')",
    "SELECT room, desk, SUM(weight) AS w, GROUPING(room, desk) AS level FROM seat GROUP BY "
    "GROUPING SETS ((room, desk), ROLLUP (room), CUBE (desk), ())",
    "SELECT MODE(room) AS m, STRING_AGG(DISTINCT desk, ', ') AS d, PERCENTILE_DISC(0.5) WITHIN "
    "GROUP (ORDER BY weight DESC) AS p FROM seat",
    "CREATE FUNCTION dew(c DOUBLE) RETURNS DOUBLE CALLED ON NULL INPUT AS 'a.b:c'",
    "CREATE AGGREGATE mean(v DOUBLE, w DOUBLE) RETURNS DOUBLE AS (SUM(v * w) / COUNT(*) FILTER "
    "(WHERE w > 1))",
    "SELECT desk FROM seat ORDER BY desk OUTPUT TO DISPLAY lobby",
]
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
    *NEW_GRAMMAR,
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
ALTER SITE
ALTER SITE gw-1 SET scheduler = 'chain'
ALTER TABLE machines SET (a = 1)
CREATE DISPLAY lobby
CREATE DISPLAY lobby WITH (x = 1)
CREATE DISPLAY lobby WITH (x = 'left', y = 2)
CREATE DISPLAY lobby WITH (x = 1, y = 2, rows = 0)
CREATE ALARM hot AS SELECT room FROM seat
CREATE ALARM hot AS SELECT room FROM seat SEVERITY 'fatal'
CREATE ALARM hot AS SELECT room FROM seat SEVERITY 'info' FOR 'long'
CREATE ALARM hot SEVERITY 'info'
SUBSCRIBE TO (SELECT desk FROM seat) ENVELOPE UPSERT
SUBSCRIBE TO (SELECT desk FROM seat) ENVELOPE UPSERT (KEY (room))
SUBSCRIBE TO (SELECT desk FROM seat) WITH (SNAPSHOTS)
CREATE MATERIALIZED VIEW v REFRESH AT ('25:00') AS SELECT mid FROM machines
CREATE MATERIALIZED VIEW v REFRESH AT () AS SELECT mid FROM machines
CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') COST WEIGHTS (1, 2) AS SELECT mid FROM machines
CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') AS SELECT desk FROM seat
REFRESH VIEW v
REFRESH MATERIALIZED VIEW seat
SELECT * FROM ISTREAM(seat)
SELECT * FROM (ISTREAM(SELECT desk FROM seat) [RANGE 5 SECONDS]
ISTREAM(SELECT mid FROM machines)
ISTREAM(DSTREAM(SELECT desk FROM seat))
SELECT desk FROM seat WHERE desk ~ '('
SELECT desk FROM seat WHERE desk ~ room
SELECT desk FROM seat WHERE desk ~ '(a)\\1'
SELECT desk FROM seat WHERE weight ~ 'a'
SELECT room, COUNT(*) FROM seat GROUP BY GROUPING SETS (room, desk
SELECT desk, COUNT(*) FROM seat GROUP BY ROLLUP (room)
SELECT room, GROUPING(desk) FROM seat GROUP BY CUBE (room)
SELECT desk FROM seat OUTPUT DISPLAY lobby
SELECT desk FROM seat OUTPUT TO DISPLAY
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

CATALOG = catalog_of(SCHEMA, library=True)


def _broken(chance: random.Random, good: Sequence[str] = GOOD) -> str:
    tokens = re.findall(r"\s+|\w+|'[^']*'|[^\w\s]", chance.choice(good))
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
                bound = bind_query(inner, CATALOG)
                if isinstance(statement, Subscribe):
                    key_positions(statement.key, bound.schema)
            elif isinstance(inner, Refresh):
                refreshed(inner, CATALOG)
            elif isinstance(inner, Creating):
                define(inner, CATALOG)
    except QueryError as error:
        return error
    return None


@pytest.mark.parametrize("text", TYPICAL)
def test_typical_mistakes_are_refused_at_their_place(text: str) -> None:
    assert _check(text)


@pytest.mark.parametrize("text", NEW_GRAMMAR)
def test_what_is_broken_was_whole(text: str) -> None:
    parse_script(text)


def test_broken_statements_of_the_newest_grammar() -> None:
    chance = random.Random(20260102)
    refused = tried = 0
    while refused < COUNT // 2:
        refused += _check(_broken(chance, NEW_GRAMMAR))
        tried += 1
        assert tried < 4 * COUNT


def test_five_hundred_broken_statements_are_refused_at_their_place() -> None:
    chance = random.Random(20260101)
    refused = sum(_check(text) for text in _large(chance))
    assert refused >= 9
    tried = 0
    while refused < COUNT:
        refused += _check(_broken(chance))
        tried += 1
        assert tried < 4 * COUNT
