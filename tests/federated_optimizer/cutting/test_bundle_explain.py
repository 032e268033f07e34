"""EXPLAIN says "pushed" of groups only where the table's database computes them."""

import pytest

from federated_optimizer.cutting.bundle_explain import explain_bundle
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query

T = SourceDefinition(
    "t",
    SourceKind.TABLE,
    Schema.of(("kind", DataType.INTEGER), ("size", DataType.INTEGER), ("x", DataType.DOUBLE)),
    options=(("source", "sql"), ("url", "secret:inventory"), ("table", "t")),
)
BY_KIND = "SELECT kind, SUM(size) AS total FROM t WHERE size > 2 GROUP BY kind"


def bundle(text: str, *compared: str) -> FragmentBundle:
    catalog = Catalog()
    catalog.define(T)
    plan = run_rules(run_rules(bound_query(text, catalog).plan, LOGICAL_RULES), WIDTH_RULES)
    facts = SourceFacts(rows=1_000_000, compared=frozenset(compared))
    topology = Topology(gateways={}, bases=("base",), static="static", coordinator="host")
    known = Statistics(sources={"t": facts}, local_rows=50_000)
    return place(plan, topology, query="q1", statistics=known)


def told(text: str, *compared: str) -> dict[str, str]:
    """Return what EXPLAIN says is done where."""
    lines = explain_bundle(bundle(text, *compared)).splitlines()
    words = ("pushed to the database", "computed by the static engine", "evaluated")
    pairs = [line.strip().partition(": ") for line in lines]
    return {before: after for before, _, after in pairs if before.startswith(words)}


def test_groups_and_all_below_are_pushed() -> None:
    assert told(BY_KIND, "kind", "size") == {
        "pushed to the database": "Aggregate [kind] SUM(size) AS sum_1, [size > 2]"
    }


@pytest.mark.parametrize("compared", [(), ("kind",), ("size",), ("x",)])
def test_nothing_is_pushed_if_a_column_is_compared_in_another_way(compared: tuple[str]) -> None:
    found = told(BY_KIND, *compared)
    assert found.keys() == {"computed by the static engine", "evaluated by Spark"}


def test_what_stands_above_groups_is_computed_by_the_static_engine() -> None:
    text = f"SELECT * FROM ({BY_KIND}) AS q WHERE total > 9"
    found = told(text, "kind", "size")
    assert found["computed by the static engine"] == "[sum_1 > 9]"
    assert "SUM(size)" in found["pushed to the database"]


def test_groups_of_rows_that_may_differ_are_not_pushed() -> None:
    found = told("SELECT kind, SUM(size) AS s FROM t WHERE x > 0.5 GROUP BY kind", "kind", "size")
    assert "pushed to the database" not in found


def test_sites_run_the_same_whatever_is_told() -> None:
    assert bundle(BY_KIND, "kind", "size").runs_as(bundle(BY_KIND))
