"""Bundles that read rows of other runs: they say the whole computation, and run the rest of it."""

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import plan
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.testing_bundles import Readings, evaluate_bundle
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
    RemoteSource,
    Scan,
    walk_plan,
)
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.data.types import DataType
from streamsql.reference import Database
from streamsql.wire.fragments import Engine, Feed, FragmentBundle
from tests.federated_optimizer.sharing.small_shop import (
    CATALOG,
    DATABASE,
    NOW,
    TOPOLOGY,
    bag,
    normalized,
)
from tests.streamsql.from_text import bound_query

READINGS = Readings(DATABASE, {"gw-1": DATABASE, "gw-2": Database(), "base": DATABASE})
SEVERAL = Topology(
    {"gw-1": frozenset({"t", "u"}), "gw-2": frozenset({"t", "u"})}, bases=("base", "base-2")
)
NODE = "SELECT a.x, a.y, b.s FROM t a, u b WHERE a.x = b.x"
COUNT = AggregateFunction.COUNT_ALL


def bundle_of(
    made: Plan | str, query: str, *offers: Offer, sites: Topology = TOPOLOGY
) -> FragmentBundle:
    if isinstance(made, str):
        bound = bound_query(made, CATALOG)
    else:
        whole = bound_query("SELECT x FROM t", CATALOG)
        bound = BoundQuery(made, made.schema, whole.emit, ())
    found = {offer.name: offer for offer in offers}
    return plan(bound, sites, query=query, offers=found)


def offer_of(text: str, run: str, fragment: str = "f0", sites: Topology = TOPOLOGY) -> Offer:
    bundle = bundle_of(text, run, sites=sites)
    logical = normalized(text) if fragment == "f0" else bundle.fragment(fragment).plan
    return Offer(run, fragment, bundle, logical)


def counted(leaf: Plan) -> Aggregate:
    return Aggregate(leaf, (0,), (AggregateCall(COUNT, (), "n"),))


@pytest.mark.parametrize("sites", [TOPOLOGY, SEVERAL])
def test_a_result_is_read_with_all_that_it_is_computed_from(sites: Topology) -> None:
    offer = offer_of(NODE, "q1", sites=sites)
    bundle = bundle_of(counted(offer.leaf), "q2", offer, sites=sites)
    (feed,) = bundle.feeds
    assert (feed.run, feed.version, feed.source) == ("q1", 1, "f0")
    fed = bundle.fragment(feed.fragment)
    assert (fed.engine, fed.sites, fed.destinations) == (Engine.BASE, ("base",), ("base",))
    assert len(bundle.fragments) >= 1 + len(offer.bundle.fragments)
    if sites is TOPOLOGY:
        assert evaluate_bundle(bundle, READINGS, NOW) == bag(counted(normalized(NODE)))


def test_rows_of_gateways_are_read_where_they_are() -> None:
    offer = offer_of("SELECT x, y, s FROM t WHERE y > 1", "q1", "f1")
    bundle = bundle_of(counted(offer.leaf), "q2", offer)
    assert bundle.feeds == (Feed("f1", "q1", 1, "f1"),)
    assert bundle.fragment("f1").engine == Engine.GATEWAY
    assert evaluate_bundle(bundle, READINGS, NOW) == bag(counted(offer.plan))


def test_a_join_with_what_is_there_ships_the_other_side_alone() -> None:
    offer = offer_of(NODE, "q1")
    scan = next(n for n in walk_plan(normalized("SELECT * FROM u")) if isinstance(n, Scan))
    joined = Join(offer.leaf, scan, JoinKind.INNER, ((0, 0),))
    bundle = bundle_of(joined, "q2", offer)
    whole = Join(offer.plan, scan, JoinKind.INNER, ((0, 0),))
    assert evaluate_bundle(bundle, READINGS, NOW) == bag(whole)
    below = {n.fragment for n in walk_plan(bundle.fragments[0].plan) if isinstance(n, RemoteSource)}
    assert len(below) == 2
    assert below > {bundle.feeds[0].fragment}


def test_two_readings_of_a_node_are_one_feed() -> None:
    offer = offer_of(NODE, "q1")
    bundle = bundle_of(Join(offer.leaf, offer.leaf, JoinKind.INNER, ((0, 1),)), "q2", offer)
    assert len(bundle.feeds) == 1
    whole = Join(offer.plan, offer.plan, JoinKind.INNER, ((0, 1),))
    assert evaluate_bundle(bundle, READINGS, NOW) == bag(whole)


def test_what_a_node_reads_of_others_is_below_it() -> None:
    first = offer_of(NODE, "q1")
    over = counted(first.leaf)
    second = Offer("q2", "f0", bundle_of(over, "q2", first), counted(normalized(NODE)))
    bundle = bundle_of(counted(second.leaf), "q3", second)
    assert [feed.run for feed in bundle.feeds] == ["q2"]
    assert evaluate_bundle(bundle, READINGS, NOW) == bag(counted(second.plan))


def test_columns_keep_their_types() -> None:
    offer = offer_of(NODE, "q1")
    assert offer.columns.dtypes == (DataType.INTEGER, DataType.INTEGER, DataType.TEXT)
    assert bundle_of(offer.leaf, "q2", offer).schema == offer.columns
