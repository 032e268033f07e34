"""Processor time and kept rows of operators."""

import pytest

from federated_optimizer.costs.cost import NOTHING
from federated_optimizer.costs.estimates import Estimating
from federated_optimizer.costs.work import Work
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.statistics.speeds import Micros
from streamsql.algebra.operators import Plan, Scan, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE a (k INTEGER, v INTEGER);
    CREATE SOURCE b (k INTEGER, w INTEGER, PRIMARY KEY (k));
    CREATE SOURCE e (src INTEGER, dst INTEGER, PRIMARY KEY (src, dst));"""
)
STATISTICS = Statistics(
    sources={
        "a": SourceFacts(rows=100.0, changes=20.0),
        "b": SourceFacts(rows=50.0, changes=0.0),
        "e": SourceFacts(rows=30.0, changes=4.0),
    }
)
MICROS = Micros(filter=1_000.0, join=10_000.0, group=100_000.0, recursion=1_000_000.0)
"""Each unlike the others, so that a sum tells what is in it."""


def work_of(text: str) -> tuple[Plan, Work]:
    bound = bound_query(text, CATALOG)
    plan = normalize(bound.plan, Topology({"gw-1": frozenset("abe")}))
    return plan, Work(Estimating(STATISTICS), MICROS)


@pytest.mark.parametrize(
    ("text", "cpu", "state"),
    [
        ("SELECT k, v FROM a [RANGE 10 SECONDS] WHERE v = 3", 20 + 20, 100),
        ("SELECT DISTINCT k, v FROM a [RANGE 10 SECONDS]", 20 + 20 * 100, 100 + 100),
    ],
)
def test_each_operator_takes_its_time_of_each_changed_row(
    text: str, cpu: float, state: float
) -> None:
    plan, work = work_of(text)
    found = work.of(plan)
    assert found.cpu == pytest.approx(cpu)
    assert found.state == pytest.approx(state)
    assert found.bytes == 0


def test_a_sum_keeps_groups_and_a_maximum_rows() -> None:
    for call, kept in (("SUM(w)", 1.0), ("MAX(w)", 50.0)):
        plan, work = work_of(f"SELECT {call} AS x FROM b")
        assert work.of(plan).state == pytest.approx(kept), call


def test_a_join_keeps_both_sides() -> None:
    plan, work = work_of("SELECT a.v, b.w FROM a [RANGE 10 SECONDS] a JOIN b ON a.v = b.w")
    windowed = 100.0
    assert work.of(plan).state == pytest.approx(windowed + windowed + 50)


def test_a_recursion_works_on_what_changes_below_it() -> None:
    plan, work = work_of(
        "WITH RECURSIVE r AS (SELECT src, dst FROM e UNION "
        "SELECT e.src, r.dst FROM e JOIN r ON e.dst = r.src) SELECT src, dst FROM r"
    )
    found = work.of(plan)
    assert found.cpu >= 4 * 1_000
    assert found.state > 30


def test_leaves_cost_nothing() -> None:
    plan, work = work_of("SELECT k, w FROM b WHERE w = 1")
    scans = [node for node in walk_plan(plan) if isinstance(node, Scan)]
    assert [work.of(scan) for scan in scans] == [NOTHING]
