"""Where relations become streams: at one base site, which has all events before all progress."""

import pytest

from federated_optimizer import Topology, plan
from streamsql.algebra.operators import (
    Filter,
    Join,
    RemoteSource,
    Scan,
    ScanPart,
    StreamWindow,
    ToStream,
    walk_plan,
)
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.streamsql.from_text import catalog_of, query_of

CATALOG = """
CREATE SOURCE r (k TEXT, v INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s');
CREATE SOURCE s (k TEXT, KEY (k));
CREATE TABLE m (k TEXT, name TEXT);
"""
GATEWAYS = ("g1", "g2")
OWNED = {"g1": frozenset(("r", "s")), "g2": frozenset(("r",))}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(CATALOG)


def placed(text: str, catalog: Catalog, bases: tuple[str, ...] = ("b1",)) -> FragmentBundle:
    statement = query_of(text)
    topology = Topology(OWNED, bases=bases, static="static")
    return plan(bind_query(statement, catalog), topology, query="q")


@pytest.mark.parametrize("bases", [("b1",), ("b1", "b2")])
def test_events_and_progress_meet_at_one_base_site(
    catalog: Catalog, bases: tuple[str, ...]
) -> None:
    text = "ISTREAM(SELECT r.k, name FROM r [RANGE 5 SECONDS], s, m WHERE r.k = s.k AND m.k = r.k)"
    bundle = placed(text, catalog, bases)
    (top,) = [f for f in bundle.fragments if not f.consumer]
    assert (top.engine, top.sites) == (Engine.BASE, ("b1",))
    (stream,) = [node for node in walk_plan(top.plan) if isinstance(node, ToStream)]
    parts = []
    for leaf in stream.inputs:
        assert isinstance(leaf, RemoteSource)
        fragment = bundle.fragment(leaf.fragment)
        assert fragment.destinations == ("b1",)
        scan = fragment.plan
        assert isinstance(scan, Scan)
        assert fragment.sites == (("static",) if scan.source == "m" else _owners(scan.source))
        parts.append((scan.source, scan.part))
    assert dict(parts[:3]) == {"r": ScanPart.EVENTS, "s": ScanPart.EVENTS, "m": ScanPart.ROWS}
    assert parts[3:] == [(s, ScanPart.PROGRESS) for s, part in parts if part == ScanPart.EVENTS]
    order = [f.id for f in bundle.fragments]
    sent = [order.index(leaf.fragment) for leaf in stream.inputs if isinstance(leaf, RemoteSource)]
    assert sent == sorted(sent)  # a site sends events before the progress that ends their instants


def _owners(source: str) -> tuple[str, ...]:
    return tuple(gateway for gateway in GATEWAYS if source in OWNED[gateway])


def test_the_query_of_a_stream_is_normalized(catalog: Catalog) -> None:
    text = "ISTREAM(SELECT r.k FROM r, m WHERE r.k = m.k AND v > 2)"
    (stream,) = [
        node
        for fragment in placed(text, catalog).fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, ToStream)
    ]
    (join,) = [node for node in walk_plan(stream.query) if isinstance(node, Join)]
    assert join.keys
    assert any(isinstance(node, Filter) for node in walk_plan(join.left))


def test_streams_are_marked_for_channels_and_travel(catalog: Catalog) -> None:
    bundle = placed("SELECT k FROM (DSTREAM(SELECT k FROM r [ROWS 2])) [NOW] AS x", catalog)
    plans = {f.id: f.plan for f in bundle.fragments}
    events = [i for i, p in plans.items() if isinstance(p, Scan) and p.part == ScanPart.EVENTS]
    assert bundle.streams == frozenset(events)
    assert bundle.emit == "relation"
    (top,) = [f for f in bundle.fragments if not f.consumer]
    assert any(isinstance(node, StreamWindow) for node in walk_plan(top.plan))
    assert decode_json(encode_json(bundle), FragmentBundle) == bundle
    stream = placed("SELECT k AS key, ts FROM DSTREAM(SELECT k FROM r [ROWS 2])", catalog)
    assert stream.emit == "stream"
    assert {f.id for f in stream.fragments if not f.consumer} <= stream.streams
