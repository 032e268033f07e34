"""Rows of a stream: each at least once, in order, over restarts of either end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer.coordinator.contract.sink_model import DeadLetter
from federated_optimizer.coordinator.sinks import stream_queue
from federated_optimizer.coordinator.sinks.outgoing import Refusal
from federated_optimizer.coordinator.sinks.stream_queue import StreamQueue
from streamsql.data.types import Row


class Catalog:
    """What is on disk, and notes that are not written yet."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.dead: dict[int, DeadLetter] = {}
        self.acknowledged = 0
        self.noted: dict[int, Row | None] = {}

    def remember(self, number: int, row: Row | None) -> None:
        self.noted[number] = row

    def remember_dead(self, number: int, letter: DeadLetter | None) -> None:
        if letter is None:
            self.dead.pop(number, None)
        else:
            self.dead[number] = letter

    def write(self, queue: StreamQueue) -> None:
        for number, row in self.noted.items():
            if row is None:
                self.rows.pop(number, None)
            else:
                self.rows[number] = row
        self.noted.clear()
        self.acknowledged = queue.acknowledged

    def queue(self) -> StreamQueue:
        self.noted.clear()
        return StreamQueue(
            rows=sorted(self.rows.items()),
            acknowledged=self.acknowledged,
            dead=self.dead.values(),
            remember=self.remember,
            remember_dead=self.remember_dead,
        )


def told(queue: StreamQueue, limit: int = 100) -> list[Row | None]:
    batch = queue.take(limit)
    queue.done(batch, [], 0)
    return [message.row for message in batch]


def test_rows_are_told_once_in_their_order_each_as_often_as_it_is_there() -> None:
    queue = Catalog().queue()
    queue.follow([(("a",), 1), (("b",), 2)])
    assert told(queue, 2) == [("a",), ("b",)]
    queue.follow([(("c",), 1)])
    assert told(queue) == [("b",), ("c",)]
    assert told(queue) == []


def test_rows_that_are_repeated_after_a_restart_are_not_queued_again() -> None:
    catalog = Catalog()
    queue = catalog.queue()
    queue.follow([(("a",), 1), (("b",), 1)])
    assert told(queue, 1) == [("a",)]
    catalog.write(queue)
    queue = catalog.queue()
    queue.follow([(("a",), 1), (("b",), 1), (("c",), 1)])
    assert told(queue) == [("b",), ("c",)]
    queue.follow([(("a",), 1)])
    assert told(queue) == [("a",)]


def test_equal_rows_that_are_repeated_after_a_restart_are_not_queued_again() -> None:
    catalog = Catalog()
    queue = catalog.queue()
    queue.follow([(("a",), 2)])
    assert told(queue) == [("a",), ("a",)]
    catalog.write(queue)
    queue = catalog.queue()
    queue.follow([(("a",), 3)])
    assert told(queue) == [("a",)]


def test_equal_rows_are_new_ones_once_the_site_has_repeated_what_it_had() -> None:
    catalog = Catalog()
    queue = catalog.queue()
    queue.follow([(("a",), 1)])
    told(queue)
    catalog.write(queue)
    queue = catalog.queue()
    queue.caught_up()
    queue.follow([(("a",), 1)])
    assert told(queue) == [("a",)]


def test_the_oldest_rows_are_dropped_and_counted_when_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_queue, "MAX_WAITING", 3)
    catalog = Catalog()
    queue = catalog.queue()
    queue.follow([((n,), 1) for n in range(3)])
    batch = queue.take(2)
    queue.follow([((n,), 1) for n in range(3, 5)])  # while two rows are on their way
    queue.done(batch, [], 0)
    assert queue.dropped == 2
    assert told(queue) == [(2,), (3,), (4,)]


def test_rows_that_wait_have_a_bound_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_queue, "MAX_WAITING_BYTES", 10_000)
    catalog = Catalog()
    queue = catalog.queue()
    queue.follow([((n, "x" * 4_000), 1) for n in range(2)])
    assert (queue.dropped, queue.is_full) == (0, True)
    queue.follow([((n, "x" * 4_000), 1) for n in range(2, 5)])
    assert (queue.waiting, queue.dropped) == (2, 3)
    catalog.write(queue)
    queue = catalog.queue()
    assert (queue.waiting, queue.is_full) == (2, True)
    assert [row[0] for row in told(queue) if row is not None] == [3, 4]
    assert not queue.is_full
    queue.follow([((n,), 1) for n in range(50)])
    assert (queue.waiting, queue.dropped) == (50, 0)
    queue.follow([(("x" * 20_000,), 1)])
    assert queue.waiting == 1, "one row waits, however long it is"


def test_rows_that_were_sent_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_queue, "KEPT", 2)
    catalog = Catalog()
    queue = catalog.queue()
    queue.follow([((n,), 1) for n in range(5)])
    told(queue)
    catalog.write(queue)
    assert list(catalog.rows.values()) == [(3,), (4,)]
    queue = catalog.queue()
    queue.follow([((5,), 1)])
    told(queue)
    catalog.write(queue)
    assert list(catalog.rows.values()) == [(4,), (5,)]


def test_dead_letters_are_kept_within_a_bound_and_sent_again_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_queue, "MAX_DEAD", 2)
    catalog = Catalog()
    queue = catalog.queue()
    queue.follow([((n,), 1) for n in range(3)])
    batch = queue.take(10)
    queue.done(batch, [Refusal(message, "HTTP 400") for message in batch], 7)
    assert [letter.row for letter in queue.dead] == [(1,), (2,)]
    assert queue.dropped == 1
    catalog.write(queue)
    queue = catalog.queue()
    assert queue.waiting == 0
    assert queue.retry() == 2
    assert told(queue) == [(1,), (2,)]
    assert (queue.dead, catalog.dead) == ((), {})


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("row"), st.integers(0, 2)),
        st.tuples(st.just("send"), st.integers(1, 3)),
        st.tuples(st.just("lose"), st.integers(0, 3)),
        st.tuples(st.just("write"), st.just(0)),
        st.tuples(st.just("crash"), st.integers(0, 3)),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(STEPS)
def test_no_row_is_lost_and_none_overtakes_another(steps: list[tuple[str, int]]) -> None:
    catalog = Catalog()
    queue = catalog.queue()
    made: list[Row] = []
    received: list[Row | None] = []

    def send(limit: int, arrive: int) -> None:
        received.extend(message.row for message in queue.take(limit)[:arrive])

    for step, number in [*steps, ("crash", 0)]:
        match step:
            case "row":
                made.append((number, len(made)))
                queue.follow([(made[-1], 1)])
            case "send":
                batch = queue.take(number)
                received.extend(message.row for message in batch)
                queue.done(batch, [], 0)
            case "lose":
                send(3, number)
            case "write":
                catalog.write(queue)
            case _:
                send(3, number)
                queue = catalog.queue()
                queue.follow([(row, 1) for row in made])  # the site has them all still
                queue.caught_up()
    received += told(queue, 1_000)
    assert set(received) == set(made)
    firsts = [row for at, row in enumerate(received) if row not in received[:at]]
    assert firsts == made
