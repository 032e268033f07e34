"""Processor time and memory of operators."""

from dataclasses import replace

import pytest

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.recursion_prices import SUPPORT
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.work import Work
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.statistics.default_facts import DEGREE
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.statistics.speeds import Kept, Micros
from streamsql.algebra.operators import Plan, RemoteSource, Scan, transform_up, walk_plan
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
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
MICROS = Micros(
    step=10.0,
    filter=1_000.0,
    window=3_000.0,
    join=10_000.0,
    group=100_000.0,
    recursion=1_000_000.0,
)
KEPT = Kept(window=1.0, join=1_000.0, group=1e6, order=1e9, recursion=1e12)
"""Each unlike the others, so that a sum tells what is in it."""
ESTIMATING = Estimating(STATISTICS)
READ = 20 * 0.010
"""Milliseconds of the steps that read the stream."""


def scans_of(plan: Plan) -> list[Scan]:
    return [node for node in walk_plan(plan) if isinstance(node, Scan)]


def work_of(text: str) -> tuple[Plan, Work]:
    bound = bound_query(text, CATALOG)
    plan = normalize(bound.plan, Topology({"gw-1": frozenset("abe")}))
    return plan, Work(ESTIMATING, MICROS, KEPT)


@pytest.mark.parametrize(
    ("text", "cpu", "state"),
    [
        ("SELECT k, v FROM a [RANGE 10 SECONDS] WHERE v = 3", READ + 20 + 20 * 3, 100),
        ("SELECT DISTINCT k, v FROM a [RANGE 10 SECONDS]", READ + 20 * 3 + 20 * 100, 100 + 100e9),
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
    for call, kept in (("SUM(w)", 1e6), ("COUNT(*)", 1e6), ("MAX(w)", 50e9)):
        plan, work = work_of(f"SELECT {call} AS x FROM b")
        assert work.of(plan).state == pytest.approx(kept), call


def test_a_join_keeps_both_sides() -> None:
    plan, work = work_of("SELECT a.v, b.w FROM a [RANGE 10 SECONDS] a JOIN b ON a.v = b.w")
    windowed = 100.0
    assert work.of(plan).state == pytest.approx(windowed + 1_000 * (windowed + 50))


CLOSURE = (
    "WITH RECURSIVE r AS (SELECT src, dst FROM e UNION "
    "SELECT r.src, e.dst FROM r JOIN e ON e.src = r.dst) SELECT src, dst FROM r"
)
NODES = 30 / DEGREE.value + 1
"""Ends of the links."""


def test_a_recursion_works_on_what_changes_below_it_and_on_what_it_derives() -> None:
    plan, work = work_of(CLOSURE)
    found = work.of(plan)
    leaves = [ESTIMATING.of(scan) for scan in scans_of(plan)]
    read = sum(leaf.events for leaf in leaves)
    supported = NODES**2 * SUPPORT / 30
    moved = read / len(leaves) * supported * (1 - 2 / DEGREE.value)
    assert min(moved, read) > 0
    assert found.cpu == pytest.approx(read * 0.010 + (read + moved) * 1_000)
    assert found.derived == pytest.approx((read + moved) * 1_000)
    assert found.state == pytest.approx((30 * len(leaves) + NODES**2) * 1e12)


def test_a_recursion_that_is_bounded_keeps_and_derives_the_share_that_is_asked_for() -> None:
    plan, work = work_of(f"{CLOSURE} WHERE src = 1")
    found, whole = work.of(plan), work.of(work_of(CLOSURE)[0])
    assert 0 < found.derived < whole.derived / 3
    assert 0 < found.state < whole.state / 2


def test_a_leaf_costs_the_steps_that_read_it_and_what_others_compute_nothing() -> None:
    for text, cpu in (("SELECT k, w FROM b WHERE w = 1", 0.0), ("SELECT k, v FROM a", READ)):
        plan, work = work_of(text)
        (scan,) = scans_of(plan)
        assert work.of(scan) == Cost(cpu=work.of(scan).cpu), text
        assert work.of(scan).cpu == pytest.approx(cpu), text
        elsewhere = Work(ESTIMATING, MICROS, KEPT, (scan,))
        assert elsewhere.of(scan) == NOTHING


FURTHER = replace(MICROS, step=0.0, filter_row=10.0, join_row=20.0, group_row=30.0)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("SELECT * FROM r WHERE v > 3", 2 * 1_000 + 18 * 10),
        ("SELECT DISTINCT k, v FROM r", 2 * 100_000 + 18 * 30),
        ("SELECT k, MAX(v) AS m FROM r GROUP BY k", 2 * 100_000 + 18 * 30),
        ("SELECT v, COUNT(*) AS n FROM r GROUP BY v", 2 * 100_000 + 2 * 3 * 30 + 2 * 6 * 10),
    ],
)
def test_of_rows_that_change_at_once_further_ones_cost_less(text: str, micros: float) -> None:
    """20 changes a second, ten at once; v has four values, so four groups change at once."""
    leaf = RemoteSource("r", Schema.of(("k", DataType.INTEGER), ("v", DataType.INTEGER)))
    catalog = catalog_of("CREATE SOURCE r (k INTEGER, v INTEGER)")
    plan = transform_up(
        bound_query(text, catalog).plan, lambda node: leaf if isinstance(node, Scan) else node
    )
    rows = 16.0  # as long as nobody has counted, a column has the root of that many values
    leaves = {"r": Estimate(rows, 10.0, 10.0, bunched=10.0)}
    work = Work(Estimating(STATISTICS, leaves=leaves), FURTHER, KEPT)
    operator = next(node for node in walk_plan(plan) if node.inputs == (leaf,))
    assert work.here(operator).cpu == pytest.approx(micros / 1_000)
