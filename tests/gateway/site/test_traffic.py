"""What channels have cost, counted per query."""

from gateway.site.traffic import Traffic
from stream_engine.site.step_result import Outgoing
from streamsql.wire.messages import DeltaBatch, PartTraffic, TrafficReport, WeightedRow


def sent(
    query: str, *, port: str = "f1", ts: int | None = None, snapshot: bool = False
) -> Outgoing:
    """Return a batch of a row, made a second after 1970."""
    rows = (WeightedRow((1,), 1),)
    batch = DeltaBatch(1, 1, 0, port, rows, reset=snapshot, ts=ts, now=1_000_000)
    return Outgoing(query, "base", batch, snapshot)


def test_nothing_sent_costs_nothing() -> None:
    assert Traffic().report("q1") == TrafficReport()


def test_batches_and_snapshots_are_counted_per_query() -> None:
    traffic = Traffic()
    traffic.sent(sent("q1", snapshot=True), 100)
    traffic.sent(sent("q1"), 30)
    traffic.sent(sent("q2"), 7)
    assert traffic.report("q1") == TrafficReport(2, 130, 1, 100, rows=2)
    assert traffic.report("q2") == TrafficReport(1, 7, rows=1)


def test_waits_for_snapshots_are_added_up_when_they_end() -> None:
    traffic = Traffic()
    traffic.waiting({("q1", "gw-1"), ("q1", "gw-2")}, 10.0)
    assert traffic.report("q1") == TrafficReport()
    traffic.waiting({("q1", "gw-2")}, 10.25)
    traffic.waiting(set(), 11.0)
    report = traffic.report("q1")
    assert (report.resyncs, report.resync_milliseconds, report.longest_resync) == (2, 1250, 1000)
    traffic.waiting({("q1", "gw-1")}, 12.0)
    traffic.waiting(set(), 12.1)
    assert traffic.report("q1").resyncs == 3


def test_queries_that_are_gone_are_forgotten() -> None:
    traffic = Traffic()
    traffic.sent(sent("q1"), 1)
    traffic.sent(sent("q2"), 1)
    traffic.forget({"q2": 1})
    assert traffic.report("q1") == TrafficReport()
    assert traffic.report("q2").batches == 1


def test_fragments_are_told_apart_where_several_send() -> None:
    traffic = Traffic()
    traffic.sent(sent("q1", snapshot=True), 100)
    traffic.sent(sent("q1", port="f2/0"), 30)
    traffic.sent(sent("q1", port="f2"), 20)
    report = traffic.report("q1")
    assert report.parts == (PartTraffic("f1", 1, 100, 1, 100, 1), PartTraffic("f2", 2, 50, rows=2))
    assert (report.batches, report.bytes, report.rows) == (3, 150, 3)


def test_the_way_from_a_reading_is_timed() -> None:
    traffic = Traffic()
    traffic.sent(sent("q1", ts=970_000, snapshot=True), 1)
    traffic.sent(sent("q1", ts=970_000), 1)
    traffic.sent(sent("q1", ts=950_000), 1)
    traffic.sent(sent("q1", ts=2_000_000), 1)  # by a clock that is ahead
    report = traffic.report("q1")
    assert (report.timed, report.milliseconds) == (3, 80)
