"""Whatever the plan: rules, grouping and cutting do not change what it means."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, Rule, run_rules
from federated_optimizer.search.joins.joins_by_place import group_joins
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.testing_bundles import (
    BOOLEAN,
    MACHINES,
    NOW,
    SEAT,
    SOFTWARE,
    SPREAD_TOPOLOGY,
    TABLES,
    TEXT,
    TOPOLOGY,
    evaluate_bundle,
    readings,
)
from federated_optimizer.testing_plans import decisions, plans, recursions
from streamsql.algebra.expressions import Call, Column
from streamsql.algebra.operators import Distinct, Join, JoinKind, Plan
from streamsql.reference import evaluate
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import Engine, FragmentBundle

ALL_RULES = tuple(dict.fromkeys(LOGICAL_RULES + WIDTH_RULES))


@pytest.mark.parametrize("rule", ALL_RULES, ids=[rule.name for rule in ALL_RULES])
@given(data=st.data())
def test_a_rule_keeps_rows_and_schema_and_is_idempotent(rule: Rule, data: st.DataObject) -> None:
    plan = data.draw(plans(3))
    world = data.draw(readings(TOPOLOGY))
    rewritten = rule.apply(plan)
    assert rewritten.schema == plan.schema
    assert rule.apply(rewritten) == rewritten
    assert evaluate(rewritten, world.whole, NOW) == evaluate(plan, world.whole, NOW)


@given(data=st.data())
def test_the_logical_rules_come_to_rest(data: st.DataObject) -> None:
    plan = data.draw(plans())
    world = data.draw(readings(TOPOLOGY))
    logical = run_rules(plan, LOGICAL_RULES)
    assert run_rules(logical, LOGICAL_RULES) == logical
    assert evaluate(logical, world.whole, NOW) == evaluate(plan, world.whole, NOW)


@given(data=st.data())
def test_grouping_joins_keeps_rows_and_schema_and_is_idempotent(data: st.DataObject) -> None:
    plan = run_rules(data.draw(plans()), LOGICAL_RULES)
    world = data.draw(readings(TOPOLOGY))
    grouped = group_joins(plan, TOPOLOGY)
    assert grouped.schema == plan.schema
    assert group_joins(grouped, TOPOLOGY) == grouped
    assert evaluate(grouped, world.whole, NOW) == evaluate(plan, world.whole, NOW)


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@pytest.mark.parametrize("normalized", [True, False], ids=["normalized", "as bound"])
@given(data=st.data())
def test_the_fragments_together_compute_the_plan(
    topology: Topology, normalized: bool, data: st.DataObject
) -> None:
    plan = data.draw(plans())
    world = data.draw(readings(topology))
    ready = normalize(plan, topology) if normalized else plan
    bundle = place(ready, topology, query="q1")
    assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
    assert bundle.result_sites == topology.bases[:1]
    assert evaluate_bundle(bundle, world, NOW) == evaluate(plan, world.whole, NOW)


LARGE_TABLES = Statistics(sources={t.source: SourceFacts(rows=1e7) for t in TABLES})


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@given(data=st.data())
def test_a_plan_over_large_tables_is_the_same_by_keys(
    topology: Topology, data: st.DataObject
) -> None:
    plan = data.draw(plans())
    world = data.draw(readings(topology))
    bundle = place(normalize(plan, topology), topology, query="q1", statistics=LARGE_TABLES)
    assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
    assert evaluate_bundle(bundle, world, NOW) == evaluate(plan, world.whole, NOW)


@pytest.mark.parametrize("kind", JoinKind)
@pytest.mark.parametrize("table_first", [False, True])
@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@settings(max_examples=25)
@given(data=st.data())
def test_a_join_with_a_large_table_is_the_same_by_keys(
    topology: Topology, table_first: bool, kind: JoinKind, data: st.DataObject
) -> None:
    streams: list[Plan] = [SEAT, Distinct(SEAT), SOFTWARE_SEATS]
    stream = data.draw(st.sampled_from(streams))
    left: Plan = MACHINES if table_first else stream
    right: Plan = stream if table_first else MACHINES
    keys = data.draw(st.sampled_from([((0, 0),), ((1, 1),), ((0, 0), (1, 1))]))
    differ = Call("<", (Column(1, "rid", TEXT), Column(len(left.schema), "mid", TEXT)), BOOLEAN)
    plan = Join(left, right, kind, keys, data.draw(st.sampled_from([None, differ])))
    world = data.draw(readings(topology))
    bundle = place(plan, topology, query="q1", statistics=LARGE_TABLES)
    by_keys = any(fragment.notes for fragment in bundle.fragments)
    assert by_keys == _may_be_by_keys(plan, table_first=table_first)
    assert evaluate_bundle(bundle, world, NOW) == evaluate(plan, world.whole, NOW)


@pytest.mark.parametrize(
    ("local_rows", "told"),
    [
        (None, ()),
        (1_500, ("evaluated in the static engine's process: about 1,500 rows are read",)),
        (1_499, ("evaluated by Spark: about 1,500 rows are read",)),
    ],
)
def test_who_evaluates_stored_tables_is_told(local_rows: int | None, told: tuple[str, ...]) -> None:
    sizes = {"machines": SourceFacts(rows=1_000), "software": SourceFacts(rows=500)}
    plan = Join(MACHINES, SOFTWARE, JoinKind.INNER, ((0, 0),))
    known = Statistics(sources=sizes, local_rows=local_rows)
    bundle = place(plan, TOPOLOGY, query="q1", statistics=known)
    (notes,) = [f.notes for f in bundle.fragments if f.engine == Engine.STATIC]
    assert tuple(note.split(";")[0] for note in notes) == told
    assert bundle.runs_as(place(plan, TOPOLOGY, query="q1"))


SOFTWARE_SEATS = Join(SEAT, SOFTWARE, JoinKind.INNER, ((0, 0),))


def _may_be_by_keys(plan: Join, *, table_first: bool) -> bool:
    below = SOFTWARE_SEATS in (plan.left, plan.right)
    if table_first:
        return below or plan.kind in (JoinKind.INNER, JoinKind.SEMI)
    return (
        below
        or plan.kind in (JoinKind.INNER, JoinKind.SEMI)
        or (plan.kind in (JoinKind.LEFT, JoinKind.ANTI) and plan.residual is None)
    )


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@settings(max_examples=200)
@given(data=st.data())
def test_what_gateways_do_by_themselves_is_right(topology: Topology, data: st.DataObject) -> None:
    plan = data.draw(decisions())
    world = data.draw(readings(topology, least=5))
    bundle = place(plan, topology, query="q1")
    assert evaluate_bundle(bundle, world, NOW) == evaluate(plan, world.whole, NOW)


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@given(data=st.data())
def test_a_recursion_is_the_same_whatever_way_it_goes(
    topology: Topology, data: st.DataObject
) -> None:
    plan = data.draw(recursions())
    world = data.draw(readings(topology))
    bundle = place(plan, topology, query="q1")
    assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
    assert bundle.result_sites == topology.bases[:1]
    assert evaluate_bundle(bundle, world, NOW) == evaluate(plan, world.whole, NOW)
