"""What a site tells of its parts is what its parts have done."""

from stream_engine.site.site_engine import SiteEngine
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SiteSettings
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
SCRIPT = "CREATE SOURCE heat (room TEXT, celsius INTEGER, ts TIMESTAMP);"


def catalog() -> Catalog:
    """The sources of the tests."""
    return catalog_of(SCRIPT)


def bundle(text: str, name: str = "q1", version: int = 1) -> FragmentBundle:
    """Return a query that runs at one site."""
    plan = bound_query(text, catalog()).plan
    return FragmentBundle(name, version, (Fragment("f0", Engine.BASE, plan, ("a",)),), plan.schema)


def values(
    site: SiteEngine, now: int, *, kind: str, entity: str, query: str = "q1"
) -> dict[str, float]:
    """Return the properties of one entity."""
    return {
        p.property: p.value
        for p in site.properties(now)
        if (p.kind, p.entity, p.query) == (kind, entity, query)
    }


def heat(site: SiteEngine, degrees: range, now: int) -> None:
    """Let a reading a degree come in, in one step."""
    site.ingest("heat", [SourceEvent(("r", d, now), now) for d in degrees])
    site.step(now)


def operator(site: SiteEngine, word: str) -> str:
    """Return the entity of the operator whose line has a word."""
    (found,) = [o.entity for o in site.operators() if word in o.operator]
    return found


def test_a_filter_tells_its_rows_rates_and_selectivity() -> None:
    site = SiteEngine("a", 1)
    site.install(bundle("SELECT room, celsius FROM heat WHERE celsius >= 20"))
    site.step(SECOND)
    site.install(bundle("SELECT value FROM sys_stream", "watcher"))
    heat(site, range(10, 30), 2 * SECOND)
    name = operator(site, "Filter")
    first = values(site, 2 * SECOND, kind="operator", entity=name)
    assert first == {"rows_in": 20, "rows_out": 10, "selectivity": 0.5, "state_rows": 0}
    heat(site, range(15, 21), 4 * SECOND)
    second = values(site, 4 * SECOND, kind="operator", entity=name)
    assert second == {
        "rows_in": 26,
        "rows_out": 11,
        "rows_in_per_s": 3.0,
        "rows_out_per_s": 0.5,
        "selectivity": 1 / 6,
        "state_rows": 0,
    }
    third = values(site, 6 * SECOND, kind="operator", entity=name)
    assert "selectivity" not in third  # of nothing there is no share
    assert third["rows_in_per_s"] == 0


def test_operators_name_what_feeds_them() -> None:
    site = SiteEngine("a", 1)
    text = "SELECT a.room FROM heat [ROWS 5] a JOIN heat [ROWS 2] b ON a.room = b.room"
    site.install(bundle(text))
    operators = {o.entity: o for o in site.operators()}
    joins = [o for o in operators.values() if "Join" in o.operator]
    assert len(joins) == 1
    inputs = joins[0].inputs.split()
    assert len(inputs) == 2
    assert ["ROWS 5" in operators[name].operator for name in inputs] == [True, False]
    assert all(o.query == "q1" for o in operators.values())


def test_sources_and_the_site_tell_theirs() -> None:
    site = SiteEngine("a", 1)
    site.install(bundle("SELECT * FROM heat"))
    heat(site, range(4), SECOND)
    site.properties(SECOND)
    heat(site, range(6), 3 * SECOND)
    found = values(site, 5 * SECOND, kind="source", entity="heat", query="")
    expected = {"events": 10, "events_per_s": 1.5, "late": 0, "rows": 0, "watermark_lag_s": 2.0}
    assert found == expected
    here = values(site, 6 * SECOND, kind="site", entity="a", query="")
    assert (here["events"], here["steps"], here["pending_events"]) == (10, 2, 0)


def test_another_version_counts_from_nothing() -> None:
    site = SiteEngine("a", 1)
    text = "SELECT room, celsius FROM heat WHERE celsius >= 20"
    site.install(bundle("SELECT value FROM sys_stream", "watcher"))
    site.install(bundle(text))
    heat(site, range(30), SECOND)
    site.properties(SECOND)
    site.install(bundle(text, version=2))
    heat(site, range(19, 21), 2 * SECOND)
    found = values(site, 2 * SECOND, kind="operator", entity=operator(site, "Filter"))
    assert (found["rows_in"], found["rows_in_per_s"], found["selectivity"]) == (2, 2.0, 0.5)


def test_a_site_knows_what_is_read_of_it() -> None:
    site = SiteEngine("a", 1)
    site.install(bundle("SELECT * FROM heat"))
    assert site.told == frozenset()
    site.install(bundle("SELECT entity FROM sys_operators", "w1"))
    site.install(bundle("SELECT value FROM sys_stream [RANGE 5 s]", "w2"))
    assert site.told == {"sys_stream", "sys_operators"}
    site.uninstall("w1")
    assert site.told == {"sys_stream"}
    site.uninstall("w2")
    assert site.told == frozenset()


def test_rates_begin_anew_when_nobody_has_read_for_a_while() -> None:
    site = SiteEngine("a", 1)
    site.install(bundle("SELECT * FROM heat"))
    site.install(bundle("SELECT value FROM sys_stream", "w"))
    heat(site, range(4), SECOND)
    site.properties(SECOND)
    site.uninstall("w")
    site.install(bundle("SELECT value FROM sys_stream", "w2"))
    found = values(site, 100 * SECOND, kind="source", entity="heat", query="")
    assert "events_per_s" not in found


def test_equal_windows_of_two_queries_are_told_as_one_store() -> None:
    site = SiteEngine("a", 1)
    text = "SELECT room, celsius FROM heat [RANGE 1 HOUR] WHERE celsius >= 20"
    site.install(bundle(text))
    site.install(bundle(text, "q2"))
    heat(site, range(10, 30), SECOND)
    windows = {
        (p.query, p.entity): p.value
        for p in site.properties(SECOND)
        if (p.kind, p.property) == ("synopsis", "store")
    }
    assert len(windows) == 2
    assert len(set(windows.values())) == 1
    (number,) = set(windows.values())
    store = values(site, SECOND, kind="store", entity=f"s{number:.0f}", query="")
    assert store == {"rows": 20, "stubs": 2}
    shared = values(site, SECOND, kind="synopsis", entity=next(iter(windows))[1])
    assert (shared["rows"], shared["shared"]) == (20, 1)
    site.configure(SiteSettings(share_synopses=False))
    apart = values(site, SECOND, kind="synopsis", entity=next(iter(windows))[1])
    assert (apart["rows"], apart["shared"]) == (20, 0)


def test_times_and_retractions_are_measured_when_asked() -> None:
    ticks = iter(range(0, 10**9, 1_000))
    site = SiteEngine("a", 1, stopwatch=lambda: next(ticks))
    site.install(bundle("SELECT value FROM sys_stream", "w"))
    site.install(bundle("SELECT room, COUNT(*) AS n FROM heat GROUP BY room"))
    heat(site, range(1), SECOND)
    name = operator(site, "Aggregate")
    assert "busy_ms" not in values(site, SECOND, kind="operator", entity=name)
    site.measured = True
    for moment in (2, 3, 4):
        heat(site, range(1), moment * SECOND)
    found = values(site, 5 * SECOND, kind="operator", entity=name)
    assert found["retractions"] == 3  # each count takes the last one back
    assert found["busy_ms"] > 0
    assert found["us_per_row"] == 1_000 * found["busy_ms"] / 3


def test_what_waits_between_operators_is_told() -> None:
    ticks = iter(range(0, 10**12, 10_000_000))
    site = SiteEngine("a", 1, stopwatch=lambda: next(ticks))
    site.install(bundle("SELECT value FROM sys_stream", "w"))
    site.install(bundle("SELECT room, COUNT(*) AS n FROM heat WHERE celsius > 5 GROUP BY room"))
    site.step(SECOND)
    site.configure(SiteSettings(slice_ms=1))
    heat(site, range(10), 2 * SECOND)
    told = site.properties(2 * SECOND)
    waiting = sum(p.value for p in told if (p.kind, p.property) == ("queue", "rows"))
    (here,) = [p.value for p in told if (p.kind, p.property) == ("site", "queued_rows")]
    assert waiting == here == site.queues.rows > 0
    assert ("site", "slice_ms", 1.0) in [(p.kind, p.property, p.value) for p in told]
