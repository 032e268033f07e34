"""Whatever the plan: rules, grouping and cutting do not change what it means."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.placement import Topology, group_joins, place
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, Rule, run_rules
from federated_optimizer.testing_bundles import (
    NOW,
    SPREAD_TOPOLOGY,
    TOPOLOGY,
    evaluate_bundle,
    readings,
)
from federated_optimizer.testing_plans import decisions, plans, recursions
from streamsql.reference import evaluate
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import FragmentBundle

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
