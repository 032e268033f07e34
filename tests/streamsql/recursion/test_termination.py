"""Recursions that are accepted end; those that would not are refused.

Steps are put together at random from harmless and harmful pieces. Whatever the binder accepts is
run on a cyclic graph and must reach its fixpoint: a wrongly accepted one hits the row limit.
"""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from streamsql.binder import NonTerminatingError, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.syntax import CreateSource, parse_script
from tests.streamsql.from_text import query_of

JOINED = "FROM r JOIN link l ON l.src = r.a"
ALL = "SELECT * FROM r"
NUMBERS = """
r.n | r.n | r.n + 1 | r.n + 1 | 1 + r.n | r.n - 1 | r.n + l.cost | r.n - l.cost | 1 | l.cost | r.m
r.m + 1 | r.n + r.m | LEAST(r.n, l.cost) | GREATEST(r.n, r.m) | r.n % 3 | -r.n | ABS(r.n) | r.n * 2
CASE WHEN r.n > 1 THEN r.n ELSE r.m END | COALESCE(r.n, r.m) | LENGTH(r.p)
CAST(r.n + 1 AS INTEGER)
"""
TEXTS = """
r.p | r.p | r.p || l.dst | r.p || l.dst | l.dst || r.p | l.dst | UPPER(r.p) | SUBSTRING(r.p, 1, 2)
r.p || r.a | REPLACE(r.p, 'a', 'bb') | r.p || r.p
"""
TESTS = """
r.n < 3 | r.n + 1 < 3 | r.n <= 2 | 3 > r.n | r.n > -3 | r.n - 1 >= -3 | r.m < 3 | r.n < r.m
r.n <> 2
POSITION(l.dst IN r.p) = 0 | r.p NOT LIKE '%' || l.dst || '%' | POSITION(l.src IN r.p) = 0
POSITION(r.p IN l.dst) = 0 | LENGTH(r.p) < 4 | r.a <> l.dst | TRUE
"""
ENDS = """
SELECT * FROM r | SELECT a, MIN(n) FROM r GROUP BY a | SELECT a, MAX(n) FROM r GROUP BY a
SELECT a, MIN(n), ARG_MIN(p, n) FROM r GROUP BY a | SELECT a, MIN(m) FROM r GROUP BY a
SELECT a, m, MIN(n) FROM r GROUP BY a, m | SELECT a, MIN(n) FROM r WHERE m = 1 GROUP BY a
"""
JOINS = """
x.n | y.n + 1 | x.n + y.n | x.n + y.n | x.n + 1 | 1 | LEAST(x.n, y.m) | x.n - y.n | x.m | x.n + 2
x.n + y.n + 1 | x.n + l.cost
"""
JOINED_TEXTS = "x.p | y.p | x.p || y.p | x.p || y.a | x.p || l.dst || y.p | l.dst | x.p || l.dst"
JOINED_TESTS = """
x.n < 4 | y.n < 4 | x.n + y.n < 4 | x.n + y.n <= 3 | x.n + y.m < 4 | x.m < 4 | TRUE | 4 > x.n + y.n
POSITION(y.a IN x.p) = 0 | POSITION(l.dst IN x.p) = 0 | POSITION(l.dst IN y.p) = 0
"""
LIMIT = 3_000


def pieces(text: str) -> list[str]:
    return [piece.strip() for line in text.strip().splitlines() for piece in line.split(" | ")]


def recursion(chance: random.Random) -> str:
    branches = []
    for _ in range(chance.choice([1, 1, 2])):
        numbers = f"{chance.choice(pieces(NUMBERS))}, {chance.choice(pieces(NUMBERS))}"
        tests = chance.sample(pieces(TESTS), chance.choice([0, 1, 1, 2]))
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        branches.append(
            f"SELECT l.dst, {numbers}, {chance.choice(pieces(TEXTS))} "
            f"FROM r JOIN link l ON l.src = r.a{where}"
        )
    steps = " UNION ".join(branches)
    return (
        f"WITH RECURSIVE (LIMIT {LIMIT}) r(a, n, m, p) AS "
        f"(SELECT src, 1, 1, src FROM link UNION {steps}) {chance.choice(pieces(ENDS))}"
    )


def non_linear(chance: random.Random) -> str:
    tests = chance.sample(pieces(JOINED_TESTS), chance.choice([1, 1, 2, 3]))
    numbers = f"{chance.choice(pieces(JOINS))}, {chance.choice(pieces(JOINS))}"
    branches = [
        f"SELECT y.a, {numbers}, {chance.choice(pieces(JOINED_TEXTS))} FROM r x "
        f"JOIN link l ON l.src = x.a JOIN r y ON y.a = l.dst WHERE {' AND '.join(tests)}"
    ]
    if chance.random() < 0.3:
        branches.append(
            f"SELECT l.dst, {chance.choice(['r.n', 'r.n + 1', '1'])}, r.m, r.p {JOINED} "
            f"WHERE {chance.choice(['r.n < 4', 'TRUE'])}"
        )
    end = chance.choice(
        [ALL, ALL, ALL, "SELECT a, MIN(n) FROM r GROUP BY a", "SELECT a, MAX(n) FROM r GROUP BY a"]
    )
    return (
        f"WITH RECURSIVE (LIMIT {LIMIT}) r(a, n, m, p) AS "
        f"(SELECT src, 1, {chance.choice(['1', 'cost'])}, src FROM link UNION "
        f"{' UNION '.join(branches)}) {end}"
    )


MUTUAL_TESTS = "r.n < 4 | r.m < 4 | TRUE | TRUE | r.n <> 2 | r.n > -3 | POSITION(l.dst IN r.p) = 0"


def mutual(chance: random.Random) -> str:
    """Return relations r0, r1, … where each is computed from the one before it."""
    count = chance.choice([2, 2, 3])
    tables = []
    for number in range(count):
        numbers = f"{chance.choice(pieces(NUMBERS))}, {chance.choice(['r.m', 'r.m', 'r.m + 1'])}"
        test = chance.choice(pieces(MUTUAL_TESTS))
        step = (
            f"SELECT l.dst, {numbers}, {chance.choice(['r.p', 'r.p', 'r.p || l.dst', 'l.dst'])} "
            f"FROM r{(number - 1) % count} r JOIN link l ON l.src = r.a WHERE {test}"
        )
        base = "SELECT src, 1, 1, src FROM link UNION " if number == 0 else ""
        tables.append(f"r{number}(a, n, m, p) AS ({base}{step})")
    return f"WITH RECURSIVE (LIMIT {LIMIT}) {', '.join(tables)} SELECT * FROM r0"


def catalog() -> Catalog:
    (statement,) = parse_script("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER)")
    assert isinstance(statement, CreateSource)
    return Catalog((define(statement, Catalog()),))


def cyclic_graph() -> Database:
    database = Database()
    links = [("a", "b", 1), ("b", "a", 2), ("b", "c", 1), ("c", "a", 1)]
    database.append("link", [SourceEvent(link, ts=0) for link in links])
    return database


def outcome(text: str) -> str:
    statement = query_of(text)
    try:
        plan = bind_query(statement, catalog()).plan
    except NonTerminatingError:
        return "refused"
    evaluate(plan, cyclic_graph(), now=0)
    return "ended"


@pytest.mark.parametrize(
    ("make", "count"),
    [(recursion, 300), (non_linear, 300), (mutual, 200)],
    ids=["linear", "non_linear", "mutual"],
)
def test_accepted_recursions_end(make: Callable[[random.Random], str], count: int) -> None:
    chance = random.Random(20)
    outcomes = Counter(outcome(make(chance)) for _ in range(count))
    assert outcomes["ended"] > count / 5
    assert outcomes["refused"] > count / 5


@pytest.mark.parametrize(
    "step",
    [
        "SELECT l.dst, r.n, r.m, r.p FROM r JOIN link l ON l.src = r.a",
        "SELECT l.dst, r.n + 1, r.m, r.p FROM r JOIN link l ON l.src = r.a WHERE r.n < 5",
        "SELECT l.dst, r.n + 1, r.m * 2, r.p FROM r JOIN link l ON l.src = r.a WHERE r.n < 5",
        "SELECT l.dst, r.n + 1, r.m, r.p FROM r JOIN link l ON l.src = r.a AND NOT r.n >= 5 "
        "WHERE r.n < 5",
        "SELECT l.dst, r.m, r.n, r.p FROM r JOIN link l ON l.src = r.a",
        "SELECT l.dst, r.m + 1, 1, r.p FROM r JOIN link l ON l.src = r.a",
        "SELECT l.dst, r.m + 1, r.n, r.p FROM r JOIN link l ON l.src = r.a WHERE r.n < 3",
        "SELECT l.dst, r.n, r.m, r.p || l.dst FROM r JOIN link l ON l.src = r.a "
        "WHERE POSITION(l.dst IN r.p) = 0",
        "SELECT l.dst, r.n + l.cost, r.m, r.p || ',' || l.dst FROM r JOIN link l ON l.src = r.a "
        "WHERE 0 = POSITION(l.dst IN r.p)",
        "SELECT l.dst, r.n, r.m, UPPER(SUBSTRING(r.p, 1, 1)) FROM r JOIN link l ON l.src = r.a",
        "SELECT l.dst, (r.n + 1) % 7, r.m, r.p FROM r JOIN link l ON l.src = r.a",
        "SELECT l.dst, CASE WHEN r.n > l.cost THEN r.n ELSE l.cost END, r.m, r.p "
        "FROM r JOIN link l ON l.src = r.a",
    ],
)
def test_accepted(step: str) -> None:
    base = "SELECT src, 1, 1, src FROM link"
    text = f"WITH RECURSIVE (LIMIT {LIMIT}) r(a, n, m, p) AS ({base} UNION {step}) SELECT * FROM r"
    assert outcome(text) == "ended"


REFUSED = {
    "another step moves the counter back": (
        f"SELECT l.dst, r.n + 1, r.m + l.cost, r.p {JOINED} WHERE r.n < 3 UNION "
        f"SELECT l.dst, r.n - 1, r.m, r.p {JOINED} WHERE r.n > -3",
        ALL,
    ),
    "another step sets the counter back": (
        f"SELECT l.dst, r.n + 1, r.m + l.cost, r.p {JOINED} WHERE r.n < 3 UNION "
        f"SELECT l.dst, 1, r.m, r.p {JOINED}",
        ALL,
    ),
    "the bound is on another column than the one that moves": (
        f"SELECT l.dst, r.n + 1, r.m, r.p {JOINED} WHERE r.m < 3",
        ALL,
    ),
    "a grouped column grows": (
        f"SELECT l.dst, r.n + l.cost, r.m + 1, r.p {JOINED}",
        "SELECT a, m, MIN(n) FROM r GROUP BY a, m",
    ),
    "the group comes from a column that is not grouped": (
        f"SELECT r.p, r.n + l.cost, r.m, l.dst {JOINED}",
        "SELECT a, MIN(n) FROM r GROUP BY a",
    ),
    "the loop check tests a value that grows": (
        f"SELECT l.dst || 'x' || r.a, r.n, r.m, r.p || r.a {JOINED} WHERE POSITION(r.a IN r.p) = 0",
        ALL,
    ),
    "a step without a check counts on": (
        f"SELECT l.dst, r.n, r.m, r.p || l.dst {JOINED} WHERE POSITION(l.dst IN r.p) = 0 UNION "
        f"SELECT l.dst, r.n + 1, r.m, l.src {JOINED}",
        ALL,
    ),
    "a step forgets the path that is checked": (
        f"SELECT l.dst, r.n + 1, r.m, r.p || l.dst {JOINED} WHERE POSITION(l.dst IN r.p) = 0 UNION "
        f"SELECT l.dst, r.n, r.m, l.dst {JOINED}",
        ALL,
    ),
}


@pytest.mark.parametrize(("steps", "end"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(steps: str, end: str) -> None:
    base = "SELECT src, 1, 1, src FROM link"
    text = f"WITH RECURSIVE (LIMIT {LIMIT}) r(a, n, m, p) AS ({base} UNION {steps}) {end}"
    assert outcome(text) == "refused"
