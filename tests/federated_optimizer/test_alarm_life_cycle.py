"""An alarm's rows: raised after their time, cleared when they go, never lost and never doubled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer import alarm_life_cycle
from federated_optimizer.alarm_life_cycle import AlarmBook, AlarmRow, AlarmState
from streamsql.catalog.notice_definitions import AlarmDefinition, Severity
from streamsql.data.types import Row

HOLD = 30


def book_of(hold: int = HOLD, known: tuple[AlarmRow, ...] = ()) -> AlarmBook:
    numbers = iter(range(1 + max((k.id for k in known), default=0), 100_000))
    definition = AlarmDefinition("hot", "SELECT rid FROM t", Severity.CRITICAL, hold)
    return AlarmBook(definition, lambda: next(numbers), known)


def states(book: AlarmBook) -> list[tuple[Row, AlarmState]]:
    return [(entry.row, entry.state) for entry in book.rows]


def test_a_row_is_raised_after_its_time_and_cleared_when_it_goes() -> None:
    book = book_of()
    book.meet({("r1",): 1}, 100)
    assert states(book) == [(("r1",), AlarmState.WAITING)]
    book.look(129)
    assert book.raised == 0
    book.look(135)
    (entry,) = book.rows
    assert (entry.state, entry.since, entry.raised) == (AlarmState.RAISED, 100, 130)
    book.follow([("r1",)], {}, 150)
    (entry,) = book.rows
    assert (entry.state, entry.cleared) == (AlarmState.CLEARED, 150)
    book.follow([("r1",)], {("r1",): 1}, 160)  # again: that is another one
    assert [row.state for row in book.rows] == [AlarmState.WAITING, AlarmState.CLEARED]


def test_a_row_that_goes_in_time_has_raised_nothing() -> None:
    book = book_of()
    book.meet({("r1",): 1}, 100)
    book.follow([("r1",)], {}, 120)
    assert book.rows == ()
    assert book.take_changes() == {1: None}


def test_a_row_that_went_after_its_time_was_raised_even_if_nobody_looked() -> None:
    book = book_of()
    book.meet({("r1",): 1}, 100)
    book.follow([("r1",)], {}, 200)
    (entry,) = book.rows
    assert (entry.raised, entry.cleared) == (130, 200)


def test_a_second_copy_of_a_row_changes_nothing() -> None:
    book = book_of(0)
    book.meet({("r1",): 1}, 100)
    book.follow([("r1",)], {("r1",): 2}, 110)
    book.follow([("r1",)], {("r1",): 1}, 120)
    assert states(book) == [(("r1",), AlarmState.RAISED)]


def test_acknowledged_is_remembered_and_ends_with_the_row() -> None:
    book = book_of(0)
    book.meet({("r1",): 1}, 100)
    assert book.acknowledge(1, 105).acknowledged == 105
    assert book.acknowledge(1, 109).acknowledged == 105
    book.follow([("r1",)], {}, 110)
    (entry,) = book.rows
    assert (entry.state, entry.acknowledged) == (AlarmState.CLEARED, 105)
    assert book.unacknowledged == 0
    assert book.acknowledge(1, 111).acknowledged == 105


def test_a_cleared_row_that_nobody_acknowledged_remains_to_be_acknowledged() -> None:
    book = book_of(0)
    for n in range(alarm_life_cycle.MAX_HISTORY + 5):
        book.meet({(f"r{n}",): 1}, n)
    book.meet({}, 1_000)
    assert book.unacknowledged == len(book.rows) == alarm_life_cycle.MAX_HISTORY + 5
    kept = tuple(row for row in book.take_changes().values() if row is not None)
    book = book_of(0, kept)  # it does over a restart as well
    assert book.unacknowledged == alarm_life_cycle.MAX_HISTORY + 5
    noted = book.acknowledge(3, 1_001)
    assert (noted.state, noted.acknowledged) == (AlarmState.CLEARED, 1_001)
    assert book.take_changes() == {3: noted}
    assert book.acknowledge_all(1_002) == alarm_life_cycle.MAX_HISTORY + 4
    assert book.unacknowledged == 0
    assert len(book.rows) == alarm_life_cycle.MAX_HISTORY
    with pytest.raises(KeyError):
        book.acknowledge(4_711, 1_003)


def test_a_row_that_passes_while_the_answer_is_filled_again_raises_nothing() -> None:
    book = book_of(0)
    book.holds_back = True
    book.meet({(1,): 1}, 100)
    book.follow([(1,), (2,)], {(2,): 1}, 101)
    book.follow([(2,), (3,)], {(3,): 1}, 102)
    assert states(book) == [((3,), AlarmState.WAITING)]
    book.holds_back = False
    book.look(110)
    (entry,) = book.rows
    assert (entry.state, entry.since, entry.raised) == (AlarmState.RAISED, 102, 102)


def test_a_waiting_row_has_raised_nothing_that_could_be_acknowledged() -> None:
    book = book_of()
    book.meet({("r1",): 1}, 100)
    with pytest.raises(KeyError):
        book.acknowledge(1, 101)
    assert (book.unacknowledged, book.acknowledge_all(101)) == (0, 0)


def test_a_row_that_goes_in_doubt_is_unknown_and_keeps_its_acknowledgement() -> None:
    book = book_of()
    book.meet({("r1",): 1, ("r2",): 1, ("r3",): 1}, 100)
    book.look(130)
    book.acknowledge(1, 140)
    book.follow([("r1",), ("r2",), ("r3",)], {}, 150, in_doubt=True)
    assert {entry.state for entry in book.rows} == {AlarmState.UNKNOWN}
    assert [entry.unknown for entry in book.rows] == [150] * 3
    assert (book.raised, book.unknown, book.since) == (0, 3, 130)
    kept = tuple(row for row in book.take_changes().values() if row is not None)
    book = book_of(HOLD, kept)  # it stays unknown over a restart
    seen = book.acknowledge(2, 160)
    assert (seen.state, seen.acknowledged) == (AlarmState.UNKNOWN, 160)
    there: dict[Row, int] = {("r1",): 1, ("r2",): 1}
    book.follow(there, there, 170)  # they return at once, without waiting again
    assert [(e.row, e.state, e.raised, e.unknown) for e in book.rows if e.row != ("r3",)] == [
        (("r2",), AlarmState.ACKNOWLEDGED, 130, None),
        (("r1",), AlarmState.ACKNOWLEDGED, 130, None),
    ]
    book.decide(there, 180)
    (gone,) = [entry for entry in book.rows if entry.row == ("r3",)]
    assert (gone.state, gone.cleared, gone.unknown) == (AlarmState.CLEARED, 180, None)
    assert not book.has_unknown


def test_a_row_that_came_back_while_a_site_is_away_is_unknown_when_it_goes_again() -> None:
    """It may rest on a row of the site that is away, besides the one that came and went."""
    book = book_of(0)
    there: dict[Row, int] = {("r1",): 1}
    book.meet(there, 100)
    book.follow(there, {}, 110, in_doubt=True)
    book.follow(there, there, 120, in_doubt=True)
    assert book.has_unknown
    book.follow(there, {}, 130)
    assert states(book) == [(("r1",), AlarmState.UNKNOWN)]
    book.decide(there, 140)
    book.follow(there, {}, 150)
    assert states(book) == [(("r1",), AlarmState.CLEARED)]


def test_bounds_hold_and_rows_left_out_follow_when_there_is_room() -> None:
    book = book_of(0)
    most = alarm_life_cycle.MAX_OPEN
    many: dict[Row, int] = {(f"r{n}",): 1 for n in range(most + 3)}
    book.meet(many, 1)
    assert (book.raised, book.unlisted) == (alarm_life_cycle.MAX_OPEN, 3)
    few = dict(list(many.items())[-5:])
    book.follow(many, few, 2)
    assert book.has_room_again
    book.meet(few, 3)
    assert {row for row, state in states(book) if state == AlarmState.RAISED} == set(few)
    assert book.unlisted == 0
    cleared = [row for row, state in states(book) if state == AlarmState.CLEARED]
    assert len(cleared) == alarm_life_cycle.MAX_OPEN - 2
    more: dict[Row, int] = {(f"s{n}",): 1 for n in range(5)}
    book.meet({**few, **more}, 4)
    book.meet({}, 5)
    assert book.dropped == 8
    assert book.unacknowledged == alarm_life_cycle.MAX_UNACKNOWLEDGED


RELATIONS = st.lists(
    st.tuples(st.sets(st.integers(0, 4)), st.integers(0, 40)), min_size=1, max_size=12
)


@given(RELATIONS, st.sampled_from([0, HOLD]))
def test_change_by_change_a_restart_anywhere_and_from_scratch_agree(
    moments: list[tuple[set[int], int]], hold: int
) -> None:
    whole = book_of(hold)
    stored: dict[int, AlarmRow | None] = {}
    restarted = book_of(hold)
    now = 0
    before: dict[Row, int] = {}
    seen: dict[int, int] = {}  # row to since
    for rows, passed in moments:
        now += passed
        relation: dict[Row, int] = {(str(n),): 1 for n in rows}
        whole.follow({*before, *relation}, relation, now)
        restarted.meet(relation, now)
        stored |= restarted.take_changes()
        known = tuple(entry for entry in stored.values() if entry is not None)
        restarted = book_of(hold, known)
        seen = {n: seen.get(n, now) for n in rows}
        assert sorted(states(whole)) == sorted(states(restarted))
        open_rows = {r: s for r, s in states(whole) if s != AlarmState.CLEARED}
        assert open_rows == {
            (str(n),): AlarmState.RAISED if now - since >= hold else AlarmState.WAITING
            for n, since in seen.items()
        }
        before = relation
