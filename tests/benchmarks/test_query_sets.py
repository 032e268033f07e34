"""Queries of the thesis' protocol bind, plan, and mean what DuckDB means."""

from collections import Counter
from itertools import groupby

import pytest

from benchmarks._argus.arriving_rows import Sizes
from benchmarks._argus.asked import Asked
from benchmarks._argus.bank_transfers import USUAL_TYPE, transfers
from benchmarks._argus.duckdb_answers import differing, duckdb_over
from benchmarks._argus.live_network import source_of
from benchmarks._argus.query_sets import SETS
from federated_optimizer import Topology, plan
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.syntax import Query, parse_statement

SMALL = Sizes(history=1_800, batch=50, batches=2)
COUNTS = {
    "fed": (768, 768, 16),
    "med": (565, 565, 8),
    "fed-sums": (350, 350, 21),
    "med-sums": (450, 414, 3),
    "uniform": (1_000, 1_000, 16),
    "normal": (1_000, 1_000, 9),
    "mixture": (1_000, 1_000, 16),
}
"""Queries, different texts, categories. All normal numbers lie near the middle."""


@pytest.mark.parametrize("name", COUNTS)
def test_a_set_has_its_queries(name: str) -> None:
    asked = SETS[name].queries()
    found = (len(asked), len({each.text for each in asked}), len({each.category for each in asked}))
    assert found == COUNTS[name]


def of_each_category(name: str) -> list[Asked]:
    """Return the first query of each category, which asks for most, the last, and some between."""
    asked = sorted(SETS[name].queries(), key=lambda each: each.category)
    groups = [list(group) for _, group in groupby(asked, key=lambda each: each.category)]
    return [
        *(each for group in groups for each in (group[0], group[-1])),
        *asked[:: len(asked) // 9],
    ]


@pytest.mark.parametrize("name", SETS)
def test_queries_plan_and_have_the_rows_of_duckdb(name: str) -> None:
    stream = SETS[name].stream(SMALL, 1)
    source = source_of(stream)
    catalog = Catalog()
    catalog.define(source)
    topology = Topology({"gateway": frozenset({source.name})})
    database = Database()
    database.append(source.name, [SourceEvent(row, 1) for row in stream.rows])
    answers = []
    for each in of_each_category(name):
        bound = bound_over(each.text, catalog)
        assert plan(bound, topology, query="q").result_sites == ("base",)
        answers.append((each.text, evaluate(bound.plan, database, 2)))
    assert any(rows for _, rows in answers)
    with duckdb_over(source, stream.rows) as duck:
        assert differing(duck, answers) == []
        text, rows = next(each for each in answers if each[1])
        assert differing(duck, [(text, {**rows, (): 1})]) == [text]


def bound_over(text: str, catalog: Catalog) -> BoundQuery:
    """Return a bound query."""
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return bind_query(statement, catalog)


def test_transfers_have_the_known_shares() -> None:
    stream = transfers(Sizes(100_000, 1_000, 10), 1)
    rows = stream.rows
    assert len(rows) == 110_000
    assert len(stream.batches) == 10
    kinds = Counter(row[1] for row in rows)
    assert 0.9 < kinds[USUAL_TYPE] / len(rows) < 0.95
    above = sum(isinstance(row[3], int) and row[3] > 500_000 for row in rows)
    assert 0.0005 < above / len(rows) < 0.0015
    days = [row[2] for row in rows]
    assert days == sorted(days, key=lambda day: (day is None, day))
    assert len(set(days)) == 30
