"""Offers of a run: what it has at the base itself."""

from federated_optimizer.registering.registration_terms import Planning
from federated_optimizer.sharing.run_offers import offers_of
from federated_optimizer.testing_network import Network
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
