"""Offers of a run: what it has at the base itself."""

import pytest

from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.registering.registration_terms import Planning
from federated_optimizer.sharing import run_offers
from federated_optimizer.sharing.forms import canonical_plan
from federated_optimizer.sharing.forms.block_names import BlockNames
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.run_offers import inner_plans, offers_of
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN
from federated_optimizer.testing_network import Network
from streamsql.algebra.operators import Plan
from tests.federated_optimizer.laws.test_shared_queries import CATALOG, ONE_BASE
from tests.streamsql.from_text import bound_query


def test_what_a_run_is_fed_it_does_not_offer() -> None:
    """A site hands on what it receives for the run that receives it: others read that one."""
    network = Network(Planning(ONE_BASE))
    for text in (
        "SELECT t.x, u.y FROM t, u WHERE t.x = u.x",
        "SELECT x, COUNT(*) AS n FROM t GROUP BY x",
    ):
        network.register(bound_query(text, CATALOG))
    network.register(bound_query("SELECT a.x, b.y FROM t a, u b WHERE a.y = b.y", CATALOG))
    offered = 0
    for run in network.runs.values():
        fed = {feed.fragment for feed in run.bundle.feeds}
        offers = {offer.fragment for offer in offers_of(run.bundle, run.logical)}
        assert not offers & fed
        offered += len(offers - {""})
        for feed in run.bundle.feeds:
            owner = network.runs[feed.run].bundle
            assert feed.source not in {each.fragment for each in owner.feeds}
    assert any(run.bundle.feeds for run in network.runs.values())
    assert offered


def test_rows_are_estimated_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most offers are never compared with others."""
    network = Network(Planning(ONE_BASE))
    network.register(bound_query("SELECT t.x, u.y FROM t, u WHERE t.x = u.x", CATALOG))
    (run,) = network.runs.values()
    estimated: list[Plan] = []

    def counting(plan: Plan, _known: object) -> Estimate:
        estimated.append(plan)
        return Estimate(7.0, 0.0, 0.0)

    monkeypatch.setattr(run_offers, "estimate", counting)
    result = offers_of(run.bundle, run.logical, rows=3.0, statistics=NOTHING_KNOWN)
    assert 3.0 in [offer.told for offer in result if offer.rows is not None]
    offers = offers_of(run.bundle, run.logical, statistics=NOTHING_KNOWN)
    estimated.clear()
    readable = [offer for offer in offers if offer.is_readable]
    assert readable
    assert not estimated
    assert [offer.told for offer in readable * 2] == [7.0] * 2 * len(readable)
    assert len(estimated) == len(readable)
    assert {offer.told for offer in offers if not offer.is_readable} == {None}


def test_a_part_inside_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all columns its predicates stand in another order, which says nothing of its rows."""
    made: list[BlockNames] = []

    class Counted(BlockNames):
        def __init__(self, *said: object) -> None:
            super().__init__(*said)  # type: ignore[arg-type]
            made.append(self)

    network = Network(Planning(ONE_BASE))
    text = (
        "SELECT a.x FROM t a, t b, t c, t d WHERE a.x = b.x AND a.y < b.y - 123 AND b.x = c.x "
        "AND b.y < c.y AND c.x = d.x AND c.y < d.y AND d.y > 321"
    )
    network.register(bound_query(text, CATALOG))
    (run,) = network.runs.values()
    plans = [plan for plan, _ in inner_plans(run.logical)]
    names = [canonical_plan.canonical_plan(plan) for plan in plans]
    assert len({each.form for each in names}) == len(plans) == 3
    monkeypatch.setattr(canonical_plan, "BlockNames", Counted)
    for plan in plans:
        block = block_of(plan)
        turned = Block(block.inputs, block.predicates[::-1], block.outputs[::-1], block.names[::-1])
        assert (
            canonical_plan.canonical_block(turned).columns
            == (canonical_plan.canonical_plan(plan).columns[::-1])
        )
    assert not made
