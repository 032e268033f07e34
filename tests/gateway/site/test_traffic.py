"""What channels have cost, counted per query."""

from gateway.site.traffic import Traffic
from streamsql.wire.messages import TrafficReport


def test_nothing_sent_costs_nothing() -> None:
    assert Traffic().report("q1") == TrafficReport()


def test_batches_and_snapshots_are_counted_per_query() -> None:
    traffic = Traffic()
    traffic.sent("q1", "base", 1, 100, snapshot=True)
    traffic.sent("q1", "base", 1, 30, snapshot=False)
    traffic.sent("q2", "base", 1, 7, snapshot=False)
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
    traffic.sent("q1", "base", 1, 1, snapshot=False)
    traffic.sent("q2", "base", 1, 1, snapshot=False)
    traffic.forget({"q2": 1})
    assert traffic.report("q1") == TrafficReport()
    assert traffic.report("q2").batches == 1
