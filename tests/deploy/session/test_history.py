"""The history that every engine lives through."""

from deploy.session.history import History
from streamsql.data.events import SourceEvent


def test_moments_keep_order_and_time_never_goes_back() -> None:
    history = History()
    history.record("s", (SourceEvent(("a",), 5), SourceEvent(("b",), 3)))
    history.advance(4)
    history.record("s", (SourceEvent(("c",), 9, delete=True),))
    assert [moment.now for moment in history.moments] == [5, 5, 5]
    assert [event.row for event in history.database.events("s")] == [("a",), ("b",), ("c",)]


def test_discarding_a_source_keeps_the_others_and_the_time() -> None:
    history = History()
    history.record("s", (SourceEvent(("a",), 5),))
    history.record("t", (SourceEvent(("b",), 7),))
    history.discard("s")
    assert history.database.events("s") == []
    assert len(history.database.events("t")) == 1
    assert [(moment.now, moment.source) for moment in history.moments] == [(5, ""), (7, "t")]


def test_withdrawn_rows_are_left_out_with_their_withdrawal_copy_by_copy() -> None:
    history = History()
    a, b = SourceEvent(("a",), 1), SourceEvent(("b",), 2)
    history.record("s", (a, a, b))
    history.record("t", (a,))
    history.record("s", (SourceEvent(("a",), 1, delete=True),))
    history.record("s", (a,))
    kept = history.without_withdrawn(frozenset({"s"}))
    assert [moment.events for moment in kept] == [(a, b), (a,), (), (a,)]
    assert history.without_withdrawn(frozenset({"t"})) is history.moments
