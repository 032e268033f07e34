"""When a segment is due: by time, number and bytes, and never without messages."""

from static_engine.landing.open_segment import OpenSegment
from static_engine.landing.segment_files import LandedMessage


def message(number: int, size: int = 1) -> LandedMessage:
    return LandedMessage("t", b"x" * size, number)


def test_it_is_due_when_its_first_message_has_waited_long_enough() -> None:
    segment = OpenSegment(1.0, 10, 1_000)
    assert segment.due_in(0.0) is None
    segment.add(message(0), 1, 5.0)
    segment.add(message(1), 2, 5.9)
    assert segment.due_in(5.9) == 5.0 + 1.0 - 5.9
    assert segment.due_in(7.0) == 0.0


def test_it_is_due_at_once_by_number_and_by_bytes() -> None:
    by_number = OpenSegment(1.0, 2, 1_000)
    by_number.add(message(0), 1, 0.0)
    by_number.add(message(1), 2, 0.0)
    assert by_number.due_in(0.0) == 0.0
    by_bytes = OpenSegment(1.0, 10, 1_000)
    by_bytes.add(message(0, 1_000), 1, 0.0)
    assert by_bytes.due_in(0.0) == 0.0


def test_what_is_put_back_is_the_oldest() -> None:
    segment = OpenSegment(1.0, 10, 1_000)
    segment.add(message(0), 1, 0.0)
    messages, receipts = segment.taken(1_000)
    segment.add(message(1), 2, 0.5)
    segment.put_back(messages, receipts, 0.6)
    assert segment.taken(1_000) == ([message(0), message(1)], [1, 2])
    assert segment.due_in(9.0) is None


def test_what_the_broker_sends_again_is_forgotten_and_the_rest_stays() -> None:
    segment = OpenSegment(1.0, 10, 1_000)
    segment.add(message(0), 1, 0.0)
    segment.add(message(1), 0, 0.0)
    assert segment.forget_what_comes_again() == [message(0)]
    assert segment.taken(1_000) == ([message(1)], [0])


def test_a_segment_takes_as_much_as_it_may_and_one_message_at_least() -> None:
    segment = OpenSegment(1.0, 3, 1_000)
    for number in range(5):
        segment.add(message(number, 100), number, 0.0)
    assert segment.taken(250) == ([message(0, 100), message(1, 100)], [0, 1])
    assert segment.taken(1) == ([message(2, 100)], [2])
    assert segment.taken(1_000) == ([message(3, 100), message(4, 100)], [3, 4])
    assert segment.due_in(0.0) is None
