"""Queries that were stopped while we were away are found, others are left alone."""

from gateway.site.left_fragments import PATIENCE, LeftFragments


def test_what_runs_and_is_not_retained_was_stopped() -> None:
    left = LeftFragments()
    mark = left.reconnected()
    left.remembered()
    left.saw("kept")
    left.marked(mark, 10.0)
    assert left.next_due() == 10.0 + PATIENCE
    assert left.stopped(["kept", "gone"], 10.0 + PATIENCE - 0.1) == []
    left.saw("late")
    assert left.stopped(["kept", "gone", "late"], 10.0 + PATIENCE) == ["gone"]
    assert left.stopped(["gone"], 100.0) == []
    assert left.next_due() is None


def test_before_the_mark_has_come_back_nothing_is_known() -> None:
    left = LeftFragments()
    left.reconnected()
    left.remembered()
    assert left.next_due() is None
    assert left.stopped(["q"], 1e9) == []


def test_marks_of_earlier_connections_and_of_others_do_not_count() -> None:
    left = LeftFragments()
    old = left.reconnected()
    left.reconnected()
    left.remembered()
    left.marked(old, 0.0)
    left.marked("", 0.0)
    left.marked("guess", 0.0)
    assert left.stopped(["q"], 1e9) == []


def test_what_an_earlier_connection_saw_is_not_retained_any_more() -> None:
    left = LeftFragments()
    left.reconnected()
    left.remembered()
    left.saw("stopped while we were away again")
    mark = left.reconnected()
    left.remembered()
    left.marked(mark, 0.0)
    assert left.stopped(["stopped while we were away again"], PATIENCE) == [
        "stopped while we were away again"
    ]


def test_a_broker_without_memory_says_nothing_about_queries() -> None:
    left = LeftFragments()
    first = left.reconnected()
    left.remembered()
    left.marked(first, 0.0)
    left.marked(left.reconnected(), 0.0)
    assert left.next_due() is None
    assert left.stopped(["q"], 1e9) == []
    left.remembered()  # some brokers send what is retained late
    assert left.stopped(["q"], 1e9) == ["q"]


def test_without_a_reconnect_nothing_was_missed() -> None:
    left = LeftFragments()
    left.remembered()
    left.marked("", 0.0)
    left.saw("q")
    assert left.stopped(["q", "r"], 1e9) == []
