"""Golden plans: every rule alone, and whole federated plans as EXPLAIN shows them."""

from typing import Any

import pytest

from federated_optimizer import explain_bundle, plan
from federated_optimizer.coordinator.explaining.alternatives_text import alternatives_text
from federated_optimizer.planning import alternatives
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from streamsql.algebra.explain import explain_plan

RULES = {rule.name: rule for rule in LOGICAL_RULES + WIDTH_RULES}


def test_each_rule_alone(golden: Any) -> None:
    def outputs(case: dict[str, Any]) -> dict[str, str]:
        bound = golden.bind(case["sql"]).plan
        given = run_rules(bound, [RULES[name] for name in case.get("after", "").split()])
        return {
            "before": explain_plan(given),
            "rewritten": explain_plan(RULES[case["rule"].strip()].apply(given)),
        }

    golden.check("rules.yaml", 12, outputs)


@pytest.mark.parametrize("bases", ["one", "two"])
def test_federated_plans(golden: Any, bases: str) -> None:
    topology = golden.one_base if bases == "one" else golden.two_bases

    def outputs(case: dict[str, Any]) -> dict[str, str]:
        bundle = plan(golden.bind(case["sql"]), topology, query="q1")
        return {"plan": explain_bundle(bundle)}

    golden.check(f"plans_{bases}_base.yaml", 5, outputs)


def test_plans_to_choose_from(golden: Any) -> None:
    """By counted rows and rates: a hundred rows, two changes a second."""
    names = (source.name.lower() for source in golden.catalog.sources)
    counted = Statistics(sources=dict.fromkeys(names, SourceFacts(100.0, 2.0)))

    def outputs(case: dict[str, Any]) -> dict[str, str]:
        found = alternatives(golden.bind(case["sql"]), golden.one_base, counted)
        return {"plans": alternatives_text(found)}

    golden.check("alternatives.yaml", 15, outputs)
