"""What a site has said of its time stays true after a restart, written down or not."""

import pytest

from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.testing.histories import COLUMNS, SECOND
from streamsql.algebra.operators import Plan, Scan, ScanPart, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

FADING = Scan("fading", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND)
FADING_EVENTS = Scan(
    "fading", SourceKind.STREAM, COLUMNS, lateness=2 * SECOND, part=ScanPart.EVENTS
)
LOG_EVENTS = Scan("log", SourceKind.STREAM, COLUMNS, part=ScanPart.EVENTS)
LOG_PROGRESS = Scan("log", SourceKind.STREAM, COLUMNS, part=ScanPart.PROGRESS)


def reading(ts: int) -> SourceEvent:
    return SourceEvent(("a", 1, 0.5), ts)


def bundle_of(*plans: Plan) -> FragmentBundle:
    fragments = tuple(
        Fragment(f"f{n}", Engine.GATEWAY, plan, ("here",), "top", ("base",))
        for n, plan in enumerate(plans)
    )
    return FragmentBundle("q", 1, fragments, plans[0].schema)


def given(site: RecordedSite, now: int) -> dict[str, list[Row]]:
    """Return what a step gives, by port."""
    found: dict[str, list[Row]] = {}
    for sent in site.step(now).outgoing:
        found.setdefault(sent.batch.port, []).extend(row.row for row in sent.batch.deltas)
    return found


def test_a_stream_begins_with_what_there_was_when_it_began() -> None:
    """The step in which it does has no events, and no time was over: it is written down anyway."""
    records: list[bytes] = []
    site = RecordedSite("here", 1, records.append)
    site.declare(FADING)
    site.ingest("fading", [reading(10 * SECOND)])
    site.step(10 * SECOND)
    site.install(bundle_of(FADING_EVENTS))
    told = given(site, 10 * SECOND + 1)
    again = RecordedSite("here", 2)
    again.declare(FADING)
    again.restore(None, records, 20 * SECOND)
    assert given(again, 20 * SECOND) == told
    assert told["f0"]


@pytest.mark.parametrize("saved", [True, False])
def test_no_event_counts_before_the_time_that_others_were_told(saved: bool) -> None:
    records: list[bytes] = []
    site = RecordedSite("here", 1, records.append)
    site.install(bundle_of(LOG_EVENTS, LOG_PROGRESS))
    site.ingest("log", [reading(10 * SECOND)])
    site.step(10 * SECOND)
    snapshot = site.snapshot() if saved else None
    ((_name, told),) = given(site, 10 * SECOND + 500)["f1"][:1]
    again = RecordedSite("here", 2)
    again.restore(snapshot, [] if saved else records, 10 * SECOND + 900)
    given(again, 10 * SECOND + 900) if saved else None
    again.ingest("log", [reading(9 * SECOND)])
    rows = given(again, 10 * SECOND + 1_000)["f0"]
    instant, number, *_ = max(rows)
    assert isinstance(instant, int)
    assert isinstance(told, int)
    assert instant >= told
    assert (instant, number) == (10 * SECOND + 900, 2)


def test_an_event_counts_at_the_same_instant_after_restarts() -> None:
    """The step before it had nothing to write down, and neither had the first restart."""
    records: list[bytes] = []
    site = RecordedSite("here", 1, records.append)
    site.install(bundle_of(LOG_EVENTS, LOG_PROGRESS))
    site.ingest("log", [reading(10 * SECOND)])
    shown = given(site, 10 * SECOND)["f0"]
    site.step(10 * SECOND + 1)
    for life, now in enumerate((10 * SECOND + 300_000, 11 * SECOND), start=2):
        site.step(now)
        site.ingest("log", [reading(10 * SECOND + 100_000)])
        shown += given(site, now + 100)["f0"]
        site = RecordedSite("here", life)
        site.restore(None, records, now + 200)
        assert given(site, now + 200)["f0"] == shown
        site.record = records.append
    assert [row[0] for row in shown] == [10 * SECOND, 10 * SECOND + 300_000, 11 * SECOND]


def test_what_waits_when_a_site_restarts_counts_from_then_on() -> None:
    """After the next restart too."""
    records: list[bytes] = []
    site = RecordedSite("here", 1, records.append)
    site.install(bundle_of(LOG_EVENTS, LOG_PROGRESS))
    site.step(10 * SECOND)
    site.ingest("log", [reading(9 * SECOND)])
    site = RecordedSite("here", 2)
    site.restore(None, records, 12 * SECOND)
    site.record = records.append
    shown = given(site, 13 * SECOND)["f0"]
    site = RecordedSite("here", 3)
    site.restore(None, records, 14 * SECOND)
    assert given(site, 14 * SECOND)["f0"] == shown
    assert [row[0] for row in shown] == [12 * SECOND]
