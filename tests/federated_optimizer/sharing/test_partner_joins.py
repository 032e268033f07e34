"""Semi joins become joins only where it does not matter how often a row is there."""

import pytest

from federated_optimizer.registering.registration_terms import Planning
from federated_optimizer.sharing.partner_joins import with_joins
from federated_optimizer.sharing.run_offers import joins_for_partners, offers_of
from federated_optimizer.testing_network import Network
from streamsql.algebra.operators import Join, JoinKind, Plan, walk_plan
from streamsql.reference import evaluate
from tests.federated_optimizer.sharing.readings_shop import (
    CATALOG,
    DATABASE,
    NOW,
    TOPOLOGY,
    normalized,
)
from tests.streamsql.from_text import bound_query

PAIRS = "FROM r, q WHERE r.a = q.a AND r.b <= q.b"
IN = "SELECT a, b FROM r WHERE a IN (SELECT q.a FROM q WHERE q.b > 1)"
NONE = "SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.a = r.a AND q.b = r.b)"
SOME = "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.a = r.a AND q.b >= r.b)"
JOINED = (
    f"SELECT DISTINCT r.a, r.s {PAIRS}",
    f"SELECT r.b {PAIRS} EXCEPT SELECT q.b {PAIRS} AND q.x > 0",
    f"SELECT q.b {PAIRS} INTERSECT SELECT b FROM r",
    f"SELECT r.b {PAIRS} UNION SELECT a FROM q",
    f"SELECT r.s, MAX(r.x) AS m, COUNT(DISTINCT r.b) AS n {PAIRS} GROUP BY r.s",
    f"{IN} EXCEPT SELECT a, b FROM q",
    f"SELECT DISTINCT a FROM ({SOME}) y",
    f"SELECT a FROM q EXCEPT SELECT y.a FROM ({IN} UNION ALL {SOME}) y",
)
STAY = (
    IN,
    f"{IN} AND b IN (SELECT q.b FROM q)",
    f"{IN} AND NOT EXISTS (SELECT 1 FROM q WHERE q.a = r.a AND q.b = r.b)",
    f"{IN} EXCEPT ALL SELECT a, b FROM q",
    f"SELECT a, b FROM q EXCEPT ALL {SOME}",
    f"SELECT a, b FROM q INTERSECT ALL {SOME}",
    f"SELECT a, COUNT(*) AS n FROM ({SOME}) y GROUP BY a",
    f"SELECT a, MAX(b) AS m, SUM(b) AS s FROM ({IN}) y GROUP BY a",
    f"{IN} UNION ALL {SOME}",
)


def kinds(plan: Plan) -> set[JoinKind]:
    return {node.kind for node in walk_plan(plan) if isinstance(node, Join)}


@pytest.mark.parametrize("text", JOINED)
def test_below_what_ignores_copies_they_are_joins_with_the_same_rows(text: str) -> None:
    plan = normalized(text)
    assert kinds(plan) == {JoinKind.SEMI}
    joined = with_joins(plan)
    assert kinds(joined) == {JoinKind.INNER}
    assert joined.schema == plan.schema
    rows = evaluate(plan, DATABASE, NOW)
    assert rows
    assert evaluate(joined, DATABASE, NOW) == rows


@pytest.mark.parametrize("text", STAY)
def test_where_copies_count_they_stay(text: str) -> None:
    plan = normalized(text)
    assert JoinKind.SEMI in kinds(plan)
    assert with_joins(plan) == plan
    assert not joins_for_partners(plan)


def test_partners_may_be_there_any_number_of_times() -> None:
    plan = normalized(
        f"SELECT b FROM q WHERE NOT EXISTS (SELECT 1 FROM ({SOME}) y WHERE y.a = q.a)"
    )
    assert kinds(plan) == {JoinKind.ANTI, JoinKind.SEMI}
    joined = with_joins(plan)
    assert kinds(joined) == {JoinKind.ANTI, JoinKind.INNER}
    assert evaluate(joined, DATABASE, NOW) == evaluate(plan, DATABASE, NOW)
    assert with_joins(normalized(NONE)) == normalized(NONE)


def test_a_plan_without_them_is_itself() -> None:
    plan = normalized(f"SELECT r.a, q.b {PAIRS}")
    assert with_joins(plan) == plan
    assert not joins_for_partners(plan)


def test_a_run_offers_the_joins_inside_as_those_that_it_only_asks_for_partners() -> None:
    network = Network(Planning(TOPOLOGY))
    network.register(bound_query(f"SELECT DISTINCT r.a, r.s {PAIRS}", CATALOG))
    (run,) = network.runs.values()
    (join,) = [offer for offer in offers_of(run.bundle, run.logical) if offer.for_partners]
    assert not join.is_readable
    assert join.own == 2
    assert join.columns.names[:2] == ("a", "s")
    assert kinds(join.plan) == {JoinKind.INNER}
