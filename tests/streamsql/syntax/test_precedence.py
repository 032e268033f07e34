"""Operators without parentheses bind as in PostgreSQL: the same rows, or refused by both.

Every pair of operators is tried with operands of every type, and many longer chains. What
PostgreSQL calls a syntax error must be refused; what it answers must be answered alike, or be
refused for its types alone.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import FederationError, QuerySyntaxError
from streamsql.reference import Database, evaluate
from tests.conformance.duckdb_peer import rounded
from tests.conformance.postgres_peer import PostgresPeer, postgres_peer
from tests.streamsql.from_text import bound_query, catalog_of

pytestmark = pytest.mark.postgres

TABLE = "CREATE TABLE t (n INTEGER, p BOOLEAN, q BOOLEAN, i INTEGER, j INTEGER, s TEXT, u TEXT)"
TRUTH = (True, False, None)
ROWS: list[Row] = [
    (n, p, q, i, j, s, u)
    for n, ((p, q), (i, j), (s, u)) in enumerate(
        zip(
            itertools.product(TRUTH, TRUTH),
            ((1, 2), (2, 1), (3, 3), (None, 1), (7, -2), (5, None), (-1, 4), (1, 1), (None, None)),
            (("a", "a"), ("a", "b"), ("b", "a%"), (None, "a"), ("true", "t"), ("ab", None),
             ("false", "f%"), ("1", "1"), (None, None)),
            strict=True,
        )
    )
]  # fmt: skip
ATOMS = {"boolean": ("p", "q", "TRUE"), "integer": ("i", "j", "2"), "text": ("s", "u", "'a'")}
INFIX = (
    "OR", "AND", "=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "LIKE",
    "NOT LIKE", "ILIKE", "SIMILAR TO", "~", "!~", "||", "+", "-", "*", "/", "%",
)  # fmt: skip
BETWEEN = ("BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC")
POSTFIX = (
    "IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN", "ISNULL",
    "NOTNULL", "IN (LIST)", "NOT IN (LIST)", "= ANY (QUERY)", "< ALL (QUERY)",
)  # fmt: skip
SIGNS = {"boolean": "NOT ", "integer": "- ", "text": ""}
LISTS = {"boolean": "TRUE, NULL", "integer": "1, 3", "text": "'a', 'b'"}
OPERATORS = (*INFIX, *BETWEEN, *POSTFIX)
CHAINS = 1500
TRIES = 30
WEIGHTS = [5 if op in ("OR", "AND", "=", "IS DISTINCT FROM") else 1 for op in OPERATORS]
RUN_TIME = ("22",)
"""Class of errors while PostgreSQL computes, as a division by zero, which is NULL here."""


@pytest.fixture(scope="module")
def peer() -> Iterator[PostgresPeer]:
    with postgres_peer("precedence") as running:
        running.run(TABLE)
        running.fill("t", ROWS)
        yield running


@pytest.fixture(scope="module")
def tables() -> tuple[Catalog, Database]:
    catalog, database = catalog_of(TABLE), Database()
    database.append("t", [SourceEvent(row, ts=0) for row in ROWS])
    return catalog, database


def ours(text: str, tables: tuple[Catalog, Database]) -> Counter[Row]:
    catalog, database = tables
    found = evaluate(bound_query(text, catalog).plan, database, now=0)
    return Counter({rounded(row): weight for row, weight in found.items()})


def chain(operators: tuple[str, ...], kinds: tuple[str, ...], random: Random) -> str:
    """Return operands of these types, one more than infix operators need, between operators."""
    operands = iter(kinds)

    def atom() -> str:
        kind = next(operands)
        sign = SIGNS[kind] if random.random() < 0.2 else ""
        return sign + random.choice(ATOMS[kind])

    text = atom()
    for operator in operators:
        if operator in BETWEEN:
            text += f" {operator} {atom()} AND {atom()}"
        elif operator in POSTFIX:
            kind = random.choice(list(ATOMS))
            value = random.choice(ATOMS[kind])
            listed = operator.replace("LIST", LISTS[kind])
            text += " " + listed.replace("QUERY", f"SELECT {value} FROM t AS r")
        else:
            text += f" {operator} {atom()}"
    return text


def compared(text: str, peer: PostgresPeer, tables: tuple[Catalog, Database]) -> str:
    """Compare one expression; return what PostgreSQL said: answered, syntax, types or computing."""
    query = f"SELECT n, {text} AS x FROM t"
    try:
        expected = peer.answer(query)
    except psycopg.errors.SyntaxError:
        with pytest.raises(QuerySyntaxError) as caught:
            ours(query, tables)
        assert caught.value.span is not None, query
        return "syntax"
    except psycopg.Error as error:
        return "computing" if (error.sqlstate or "")[:2] in RUN_TIME else "types"
    try:
        found = ours(query, tables)
    except QuerySyntaxError as error:
        raise AssertionError(f"{query} is refused: {error}") from None
    except FederationError:
        return "refused"
    assert found == expected, query
    return "answered"


def test_pairs_bind_as_in_postgres(peer: PostgresPeer, tables: tuple[Catalog, Database]) -> None:
    random, answered = Random(1), set()
    for pair in itertools.product(OPERATORS, OPERATORS):
        needed = 1 + sum(1 + (op in BETWEEN) for op in pair if op not in POSTFIX)
        choices = list(itertools.product(ATOMS, repeat=needed))
        random.shuffle(choices)
        for kinds in choices[:TRIES]:
            said = compared(chain(pair, kinds, random), peer, tables)
            if said in ("answered", "syntax"):
                answered.add(pair)
                break
    # The others have no types at all: `s ~ i + j` is none in either order.
    assert len(answered) >= len(OPERATORS) ** 2 / 2


def test_longer_chains_bind_as_in_postgres(
    peer: PostgresPeer, tables: tuple[Catalog, Database]
) -> None:
    said: Counter[str] = Counter()
    for seed in range(CHAINS):
        random = Random(seed)
        operators = tuple(random.choices(OPERATORS, WEIGHTS, k=random.randint(3, 5)))
        kinds = tuple(random.choices(list(ATOMS), (4, 2, 1), k=11))
        said[compared(chain(operators, kinds, random), peer, tables)] += 1
    assert said["answered"] >= CHAINS / 40, said
    assert said["refused"] <= said["answered"] / 4, said
