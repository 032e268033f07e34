"""Clocks of sources without a watermark move with the sources that are read beside them."""

from stream_engine.site.site_engine import SiteEngine
from stream_engine.state.clock_sources import ClockSources
from stream_engine.testing.histories import SECOND
from streamsql.algebra.operators import Plan, Scan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.syntax import parse_script
from streamsql.syntax.statements import CreateSource, Query
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SCRIPT = """
CREATE SOURCE a (k TEXT); CREATE SOURCE b (k TEXT); CREATE SOURCE c (k TEXT);
ISTREAM(SELECT a.k FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k);
ISTREAM(SELECT k FROM c [RANGE 10 SECONDS])
"""


def site_with_streams() -> SiteEngine:
    catalog, site = Catalog(), SiteEngine("here", 1)
    for number, statement in enumerate(parse_script(SCRIPT)):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
        elif isinstance(statement, Query):
            plan: Plan = bind_query(statement, catalog).plan
            fragment = Fragment("f1", Engine.GATEWAY, plan, ("here",))
            site.install(FragmentBundle(f"q{number}", 1, (fragment,), plan.schema))
    return site


def clocks(site: SiteEngine) -> dict[str, int]:
    """Return up to when each source's instants are over."""
    found = {}
    for source, relations in site._sources.relations.items():
        for scan, relation in relations.items():
            if scan.part == "progress":
                found[source] = max(ts for ts, _row in relation.snapshot())
    return found


def test_all_clocks_move_where_that_is_asked_for_once() -> None:
    site = site_with_streams()
    site.step(SECOND)
    site.tell_time()
    site.step(SECOND + 100)
    assert clocks(site) == dict.fromkeys("abc", SECOND + 100)
    site.step(SECOND + 200)
    assert clocks(site) == dict.fromkeys("abc", SECOND + 100)


def test_only_clocks_of_sources_read_together_move() -> None:
    site = site_with_streams()
    site.step(0)
    site.step(SECOND)
    assert clocks(site) == {"a": SECOND, "b": SECOND, "c": SECOND}
    site.ingest("a", [SourceEvent(("x",), SECOND)])
    site.step(SECOND + 100)
    assert clocks(site) == {"a": SECOND + 100, "b": SECOND + 100, "c": SECOND}
    assert site.next_wakeup() == SECOND + 101, "to end the instant"
    site.step(SECOND + 101)
    assert site.next_wakeup() == 2 * SECOND
    site.uninstall("q3")
    site.ingest("c", [SourceEvent(("x",), SECOND)])
    site.step(SECOND + 200)
    assert clocks(site) == {"c": SECOND + 200}


def test_a_match_is_given_right_after_its_instant() -> None:
    site = site_with_streams()
    site.step(0)
    view: Delta = {}
    for now, source in ((SECOND, "a"), (SECOND + 10, "c"), (SECOND + 20, "b"), (SECOND + 30, "c")):
        site.ingest(source, [SourceEvent(("x",), now)])
        for time in (now, now + 1):
            for sent in site.step(time).outgoing:
                if sent.query == "q3":
                    accumulate(view, {row.row: row.weight for row in sent.batch.deltas})
    assert view == {("x", SECOND + 20): 1}


def test_an_event_counts_no_earlier_than_the_last_step_of_the_site() -> None:
    """Also one of a source whose clock has not moved in that step."""
    site = site_with_streams()
    site.step(0)
    site.ingest("a", [SourceEvent(("x",), SECOND)])
    site.step(SECOND)
    site.step(SECOND + 500)
    site.ingest("c", [SourceEvent(("late",), 3)])
    view: Delta = {}
    for time in (SECOND + 600, SECOND + 601):
        for sent in site.step(time).outgoing:
            accumulate(view, {row.row: row.weight for row in sent.batch.deltas})
    assert view == {("late", SECOND + 500): 1}


def test_what_was_added_can_be_dropped() -> None:
    site = site_with_streams()
    queries = [query.scans for query in site._queries.values()]
    sources = ClockSources()
    for scans in queries:
        sources.add(scans)
    assert sources
    for scans in queries:
        sources.drop(scans)
    assert not sources
    assert list(sources.with_clocks(["a"])) == ["a"]
    assert isinstance(queries[0][0], Scan)
