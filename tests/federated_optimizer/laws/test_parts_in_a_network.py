"""Queries that ask for parts of amounts, one after the other in one network: rows are their own.

Amounts are NULL, negative, zero, at the ends of 64 bits, NaN and infinite.
"""

import math
from itertools import product
from random import Random
from typing import Any

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize
from federated_optimizer.testing_bundles import Readings
from federated_optimizer.testing_network import Network, answers
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE t (k INTEGER, g INTEGER, n INTEGER, d DOUBLE, KEY (k)) WITH (ttl = '1 h');"
)
PLANNING = Planning(Topology({"gw": frozenset({"t"})}))
NOW = 1_000
NUMBERS = (None, -(2**63), -12, -1, 0, 1, 3, 7, 11, 25, 120, 2**63 - 1)
DOUBLES = (None, -math.inf, -6.5, -0.0, 0.0, 5e-324, 0.3, 2.5, 10.0, 31.0, 1.7e308, math.nan)
PARTS = {
    "n": ("a.n / 10", "a.n / 5", "a.n / 2", "a.n", "0.2 * a.n", "a.n / 2.0"),
    "d": ("a.d / 10", "0.2 * a.d", "a.d / 5", "a.d * 0.5", "a.d", "2.0 * a.d"),
}


def text_of(random: Random, column: str) -> str:
    part, least = random.choice(PARTS[column]), random.choice((0, 0, 2))
    sign = random.choice((f"a.{column} > {least}", f"a.{column} >= {least}", f"a.{column} <= 0"))
    name = random.choice((">=", ">=", ">", "<="))
    spelled = random.choice((f"b.{column} {name} {part}", f"{part} {_turned(name)} b.{column}"))
    return f"SELECT a.k AS x, b.k AS y FROM t a, t b WHERE a.g = b.g AND {sign} AND {spelled}"


def _turned(name: str) -> str:
    return name.translate(str.maketrans("<>", "><"))


def rows_of(random: Random, column: str) -> list[Row]:
    values: list[Any] = list(NUMBERS if column == "n" else DOUBLES)
    pairs = random.sample(list(product(values, values)), 24)
    made = [value for pair in pairs for value in pair]
    return [
        (k, k // 2, value, None) if column == "n" else (k, k // 2, None, value)
        for k, value in enumerate(made)
    ]


@pytest.mark.parametrize("materialize", Materialize)
@pytest.mark.parametrize("column", PARTS)
def test_rows_are_those_of_each_query_alone(column: str, materialize: Materialize) -> None:
    random = Random(11)
    network = Network(PLANNING, Sharing(ComputationIndex(), materialize=materialize))
    texts = {}
    for _ in range(30):
        text = text_of(random, column)
        texts[network.register(bound_query(text, CATALOG), text).query] = text
    read = sum(bool(run.bundle.feeds) for run in network.runs.values())
    assert read > 10
    for _ in range(6):
        events = [SourceEvent(row, NOW) for row in rows_of(random, column)]
        database = Database()
        database.append("t", events)
        found = answers(network, Readings(database, {"gw": database}), NOW)
        for query, text in texts.items():
            expected = evaluate(bound_query(text, CATALOG).plan, database, now=NOW)
            assert found[query] == expected, text


@pytest.mark.parametrize("materialize", Materialize)
def test_all_parts_read_the_join_of_the_smallest(materialize: Materialize) -> None:
    network = Network(PLANNING, Sharing(ComputationIndex(), materialize=materialize))
    for part in (10, 5, 2, 1):
        text = (
            "SELECT a.k AS x, b.k AS y FROM t a, t b WHERE a.g = b.g AND a.n > 50000"
            f" AND b.n >= a.n / {part}"
        )
        network.register(bound_query(text, CATALOG), text)
    plans = [f.plan for run in network.runs.values() for f in run.bundle.own]
    joins = sum("Join" in repr(type(node)) for plan in plans for node in _nodes(plan))
    assert joins == (1 if materialize == Materialize.EAGER else 2)


def _nodes(plan: Any) -> list[Any]:
    return [plan, *(node for child in plan.inputs for node in _nodes(child))]
