"""Golden choices: a statement, facts that are varied on purpose, and the plan that is taken.

Each file below `golden/choices` is a family of statements under facts of which, for most of them,
some turn the choice. Facts
are rows and changes a second of sources and tables, shares that pass a condition, values of columns
(at all gateways, at one, and the share of readings that keep theirs), what was counted of a
recursion while it ran (base rows, rows, changes a second, changes for one of a base row), the share
of links within a gateway (`local`), gateways (`sites`) and base sites. A plan is a line for each
fragment, its operators from the top down.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from federated_optimizer import Topology, colocation_of, normalize, plan
from federated_optimizer.costs.recursion_workload import recursion_key
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    Homes,
    Passing,
    RecursionFacts,
    SourceFacts,
    Statistics,
)
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import Fixpoint, Plan, RemoteSource, Scan, ScanPart, walk_plan
from streamsql.wire.fragments import Fragment, FragmentBundle
from tests.federated_optimizer.conftest import GOLDEN

FAMILIES = (
    "averages_and_sums",
    "bases",
    "counted_columns",
    "distinct",
    "extremes",
    "filters",
    "first_rows",
    "groups",
    "joins_apart",
    "joins_together",
    "recursions",
    "sets",
    "stored_tables",
    "views",
    "windows",
)


def test_many_different_plans_are_compared(golden: Any) -> None:
    files = sorted(path.stem for path in (GOLDEN / "choices").glob("*.yaml"))
    assert files == sorted(FAMILIES)
    plans = golden.plans_under_facts(f"choices/{family}.yaml" for family in FAMILIES)
    different = [len(each) for each in plans.values()]
    assert sum(different) >= 150  # pairs of statement and plan
    assert sum(number == 1 for number in different) <= 20  # turn under none of their facts


@pytest.mark.parametrize("family", FAMILIES)
def test_choices_under_facts(golden: Any, family: str) -> None:
    names = frozenset(definition.name for definition in golden.catalog.sources)
    colocation = colocation_of(golden.catalog)

    def planned(sql: str, facts: Mapping[str, Any]) -> str:
        gateways = [f"gw-{number}" for number in range(1, facts.get("sites", 3) + 1)]
        bases = tuple(f"base-{number}" for number in range(1, facts.get("bases", 1) + 1))
        topology = Topology(dict.fromkeys(gateways, names), bases=bases, colocation=colocation)
        bound = golden.bind(sql)
        keys = {
            node.name: recursion_key(node)
            for node in walk_plan(normalize(bound.plan, topology))
            if isinstance(node, Fixpoint)
        }
        return outline(plan(bound, topology, query="q1", statistics=known(facts, keys)))

    golden.check_facts(f"choices/{family}.yaml", planned)


def known(facts: Mapping[str, Any], keys: Mapping[str, str]) -> Statistics:
    """Return what a case says is known; `keys` are those of its recursions by name."""
    sources = {
        name: SourceFacts(float(rows), float(changes[0]) if changes else None)
        for name, (rows, *changes) in facts.get("facts", {}).items()
    }
    passing = {}
    for condition, share in facts.get("passing", {}).items():
        source, _, predicate = condition.partition(": ")
        passing[source, predicate] = Passing(share, share, share)
    counted = {
        keys[name]: RecursionFacts(*map(float, counts))
        for name, counts in facts.get("counted", {}).items()
    }
    columns = {
        (name.partition(".")[0], name.partition(".")[2]): ColumnFacts(distinct, local, same=same)
        for name, (distinct, local, same) in facts.get("columns", {}).items()
    }
    homes = Homes(local=facts.get("local", 0.0))
    return Statistics(
        sources=sources, passing=passing, recursions=counted, homes=homes, columns=columns
    )


def outline(bundle: FragmentBundle) -> str:
    """Return a line for each fragment, and for the way of each recursion."""
    lines = [f"{_place(each)}: {_nested(each.plan)}" for each in bundle.fragments]
    lines += [f"recursion {each.name}: {each.way}" for each in bundle.recursions]
    return "\n".join(lines)


def _place(fragment: Fragment) -> str:
    count = len(fragment.sites)
    where = fragment.engine.value.lower()
    return f"{fragment.id} at {count} x {where}" if count > 1 else f"{fragment.id} at {where}"


def _nested(node: Plan) -> str:
    if isinstance(node, Scan):
        is_rows = node.part == ScanPart.ROWS
        return node.source if is_rows else f"{node.part} of {node.source}"
    if isinstance(node, RemoteSource):
        return node.fragment
    inputs = [_nested(child) for child in node.inputs]
    below = inputs[0] if len(inputs) == 1 else f"({' | '.join(inputs)})"
    return f"{describe(node)} < {below}" if inputs else describe(node)
