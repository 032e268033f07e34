"""Windows that close, planned for several base sites: what closes them overtakes no row."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import Topology, plan
from stream_engine.simulation.network import Faults
from stream_engine.simulation.recorded_network import RecordedNetwork
from streamsql.algebra.operators import OnClose, Plan, Scan, ScanPart, SourceKind, walk_plan
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
GATEWAYS = ("g1", "g2", "g3")
SCHEMA = (
    "CREATE SOURCE s (k TEXT, v INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
    "CREATE SOURCE t (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
    "CREATE TABLE d (k TEXT, owner TEXT)",
)
STORED = (("x", "ann"), ("y", "bob"))
TUMBLE = "TUMBLE(s, ts, INTERVAL '10 s')"
CLOSING = "GROUP BY window_start, window_end"
QUERIES = {
    "tumble": f"SELECT window_end, COUNT(*) FROM {TUMBLE} {CLOSING}",
    "anti join": f"SELECT window_end, COUNT(*) FROM {TUMBLE} "
    f"WHERE k NOT IN (SELECT k FROM d) {CLOSING}",
    "join": f"SELECT window_end, owner, SUM(v) FROM {TUMBLE} JOIN d USING (k) {CLOSING}, owner",
    "two joins": f"SELECT window_end, COUNT(*) FROM {TUMBLE} w LEFT JOIN d ON d.k = w.k "
    f"WHERE w.v NOT IN (SELECT 3 FROM d) {CLOSING}",
    "session": "SELECT k, window_end, COUNT(*) FROM SESSION(s, ts, INTERVAL '4 s', k) "
    "GROUP BY k, window_start, window_end",
    "session and join": "SELECT owner, window_end, COUNT(*) FROM SESSION(s, ts, INTERVAL '4 s', k) "
    "JOIN d USING (k) GROUP BY owner, window_start, window_end",
    "union": "SELECT window_end, COUNT(*) FROM "
    "TUMBLE((SELECT k, ts FROM s UNION ALL SELECT k, ts FROM t), ts, INTERVAL '10 s') u "
    f"WHERE k NOT IN (SELECT k FROM d) {CLOSING}",
}


def topology(bases: int, *, apart: bool) -> Topology:
    sites = tuple(f"b{number}" for number in range(1, bases + 1))
    owned = dict.fromkeys(GATEWAYS, frozenset({"s", "t"}))
    if apart:
        return Topology(owned, bases=sites)
    return Topology(owned, bases=GATEWAYS[:bases])  # base sites that are gateways too


def placed(text: str, where: Topology) -> tuple[Plan, FragmentBundle]:
    bound = bound_query(f"{text} EMIT ON WINDOW CLOSE", catalog_of(*SCHEMA))
    return bound.plan, plan(bound, where, query="q")


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("bases", [1, 2, 5])
def test_rows_of_windows_and_their_progress_go_straight_to_where_windows_close(
    text: str, bases: int
) -> None:
    _plan, bundle = placed(text, topology(bases, apart=True))
    (closing,) = [
        f for f in bundle.fragments if any(isinstance(n, OnClose) for n in walk_plan(f.plan))
    ]
    feeds = [
        f
        for f in bundle.fragments
        if any(isinstance(n, Scan) and n.kind != SourceKind.TABLE for n in walk_plan(f.plan))
    ]
    assert feeds
    assert all(f.consumer == closing.id and f.destinations == closing.sites for f in feeds)
    assert len(closing.sites) == 1


def reading(source: str, key: str, seconds: int) -> SourceEvent:
    ts = seconds * SECOND
    return SourceEvent((key, seconds % 5, ts) if source == "s" else (key, ts), ts)


READINGS = st.lists(
    st.tuples(
        st.sampled_from(GATEWAYS),
        st.sampled_from("sst"),
        st.sampled_from("abxy"),
        st.integers(0, 60),
    ),
    max_size=25,
)


def network(bundle: FragmentBundle, where: Topology, seed: int, loss: float) -> RecordedNetwork:
    net = RecordedNetwork(
        tuple(dict.fromkeys((*GATEWAYS, *where.bases, "static"))),
        seed=seed,
        faults=Faults(loss, loss),
    )
    scans = {
        node.source: msgspec.structs.replace(node, part=ScanPart.ROWS, ttl=None)
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan)
    }
    for source, scan in scans.items():
        for site in ("static",) if scan.kind == SourceKind.TABLE else GATEWAYS:
            net.declare(site, scan)
            if source == "d":
                net.ingest(site, "d", [SourceEvent(row, 0) for row in STORED])
    net.install(bundle)
    return net


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("apart", [True, False], ids=["base sites alone", "gateways as base sites"])
@settings(max_examples=15)
@given(READINGS, st.integers(1, 3), st.integers(0, 999), st.sampled_from([0.0, 0.2]), st.data())
def test_any_interleaving_gives_every_window_once_and_whole(  # noqa: PLR0913, PLR0917
    text: str,
    apart: bool,
    events: list[tuple[str, str, str, int]],
    bases: int,
    seed: int,
    loss: float,
    data: st.DataObject,
) -> None:
    """Messages are late, lost and repeated; base sites crash, before they have saved or after."""
    where = topology(bases, apart=apart)
    whole, bundle = placed(text, where)
    net = network(bundle, where, seed, loss)
    read = {n.source for n in walk_plan(whole) if isinstance(n, Scan)}
    database = Database()
    database.append("d", [SourceEvent(row, 0) for row in STORED])
    first = [(gateway, source, "a", 0) for gateway in GATEWAYS for source in ("s", "t")]
    alone = [site for site in where.bases if site not in GATEWAYS]
    shown: Delta = {}
    for gateway, source, key, seconds in [*first, *events]:
        if source not in read:
            continue
        event = reading(source, key, seconds)
        net.ingest(gateway, source, [event])
        database.append(source, [event], gateway)
        for _ in range(data.draw(st.integers(0, 4)) if seconds else 0):
            net.act()
        if alone and seconds > 50:
            site = data.draw(st.sampled_from(alone))
            if data.draw(st.booleans()):
                net.save(site)
            else:
                net.crash(site)
        now = net.result("q")
        assert shown.items() <= now.items(), "nothing is taken back"
        shown = now
    net.settle()
    assert net.failures == []
    assert net.result("q") == evaluate(whole, database, 0)
