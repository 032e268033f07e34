"""Prices of the ways of a recursion against the bytes that simulated gateways send."""

import pytest

from federated_optimizer.costs.recursion_prices import TRUST, WAYS, rounded
from streamsql.binder import BoundQuery
from streamsql.catalog.definitions import SourceDefinition
from tests.federated_optimizer.price_networks import NETWORKS, Measured, measured, priced
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst))", library=True
)

VIEWS = {"reachable": "src, dst", "cheapest_path": "src, dst, cost"}


def bound(view: str, way: str) -> BoundQuery:
    return bound_query(f"SELECT {VIEWS[view]} FROM {view} WITH (way = '{way}')", CATALOG)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("network", NETWORKS)
def test_prices_are_within_what_explain_says_of_them(view: str, network: str) -> None:
    link = CATALOG.find("link")
    assert isinstance(link, SourceDefinition)
    links = NETWORKS[network]()
    spent: dict[str, float] = {}
    said: dict[str, float] = {}
    for way in WAYS:
        found: Measured
        found, recursion = measured(bound(view, way), link.scan(), links)
        assert recursion.way == way
        spent[way] = found.bytes
        said[way] = priced(bound(view, way), link.scan(), found.facts, recursion.key)[way]
        assert 1 / TRUST <= said[way] / found.bytes <= TRUST, (way, said[way], found)
    # Annotations that are shipped lazily cost what witnesses cost, and are priced so.
    assert spent["annotations"] == pytest.approx(spent["witness"], rel=0.05)
    assert said["annotations"] == said["witness"]
    order = sorted(WAYS[:3], key=spent.__getitem__)
    assert sorted(WAYS[:3], key=said.__getitem__) == order == ["centre", "flood", "witness"]


def test_a_price_is_told_by_its_first_digit() -> None:
    assert [rounded(v) for v in (0.0, 0.9, 4.6, 94.0, 96.0, 1549.0)] == [0, 0, 5, 90, 100, 2000]
