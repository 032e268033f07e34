"""Queues, sorted lists, indexed relations and pickers against plain lists."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.state import sorted_list
from stream_engine.state.columns import key_picker, picker
from stream_engine.state.expiry_queue import ExpiryQueue
from stream_engine.state.indexed_relation import IndexedRelation
from stream_engine.state.sorted_list import SortedList
from stream_engine.testing.histories import delta_sequences
from streamsql.data.delta import Delta, accumulate


@pytest.fixture(autouse=True, scope="module")
def _short_blocks() -> object:
    """Blocks of a few items, so that small lists split."""
    before, sorted_list._LOAD = sorted_list._LOAD, 3
    yield
    sorted_list._LOAD = before


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9))))
def test_sorted_list_follows_a_plain_one(actions: list[tuple[bool, int]]) -> None:
    items: SortedList[int] = SortedList()
    plain: list[int] = []
    for insert, number in actions:
        if insert:
            items.add(number)
            plain.append(number)
        else:
            assert items.discard(number) == (number in plain)
            if number in plain:
                plain.remove(number)
        plain.sort()
        assert len(items) == len(plain)
        if plain:
            assert (items.first(), items.last()) == (plain[0], plain[-1])
        assert items.above(number) == min((item for item in plain if item > number), default=None)
        assert items.below(number) == max((item for item in plain if item < number), default=None)


def test_an_empty_sorted_list_has_no_ends() -> None:
    items: SortedList[int] = SortedList()
    with pytest.raises(IndexError):
        items.first()
    with pytest.raises(IndexError):
        items.last()


def test_sorted_list_of_many() -> None:
    choice = random.Random(1)
    numbers = [choice.randrange(500) for _ in range(2_000)]
    items: SortedList[int] = SortedList()
    for number in numbers:
        items.add(number)
    for number in sorted(numbers):
        assert items.first() == number
        assert items.discard(number)
    assert len(items) == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.sampled_from((-1, 1)))))
def test_expiry_queue_follows_a_dictionary(changes: list[tuple[int, str, int]]) -> None:
    queue: ExpiryQueue[str] = ExpiryQueue()
    plain: dict[tuple[int, str], int] = {}
    for time, item, weight in changes:
        queue.add(time, item, weight)
        plain[(time, item)] = plain.get((time, item), 0) + weight
    plain = {key: weight for key, weight in plain.items() if weight}
    assert len(queue) == len(plain)
    assert queue.next_time() == min((time for time, _ in plain), default=None)
    for now in range(10):
        due = {(t, item): w for t, items in queue.due(now) for item, w in items.items()}
        assert due == {key: weight for key, weight in plain.items() if key[0] == now}
    assert queue.next_time() is None


def test_expiry_queue_bounds_its_garbage() -> None:
    queue: ExpiryQueue[str] = ExpiryQueue()
    for time in range(100_000):
        queue.add(time, "a", 1)
        if time % 100:
            queue.add(time, "a", -1)
    assert len(queue) == 1_000
    assert len(queue._heap) <= 2 * 1_000 + 65


@pytest.mark.parametrize("columns", [(), (0,), (0, 1)])
@given(sequence=delta_sequences())
def test_indexed_relation_holds_the_sum_without_null_keys(
    columns: tuple[int, ...], sequence: list[Delta]
) -> None:
    indexed = IndexedRelation(columns)
    total: Delta = {}
    for delta in sequence:
        indexed.apply(delta)
        accumulate(total, delta)
    held = {row: w for key in indexed.buckets for row, w in indexed.rows(key)}
    assert held == {row: w for row, w in total.items() if None not in row[: len(columns)]}
    assert all(indexed.buckets.values())
    assert len(indexed) == len(held)
    for key, bucket in indexed.buckets.items():
        assert {key_picker(columns)(row) for row, _ in indexed.rows(key)} == {key}
        assert not isinstance(bucket, dict) or set(bucket.values()) != {1} or len(bucket) > 1


@given(st.lists(st.integers(0, 4), max_size=5))
def test_picker_gives_a_tuple(positions: list[int]) -> None:
    row = ("a", "b", "c", "d", "e")
    expected = tuple(row[position] for position in positions)
    assert picker(tuple(positions))(row) == expected
    assert key_picker(tuple(positions))(row) == (expected[0] if len(expected) == 1 else expected)


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(0, 70))
def test_a_sorted_list_gives_its_greatest_items(items: list[int], count: int) -> None:
    sorted_list: SortedList[int] = SortedList()
    for item in [*items, *range(100, 100 + 3_000 * (count == 0))]:
        sorted_list.add(item)
    expected = sorted([*items, *range(100, 100 + 3_000 * (count == 0))])
    assert list(sorted_list) == expected
    assert sorted_list.newest(count) == expected[len(expected) - min(count, len(expected)) :]
    for position in {0, 1, count, 600, 2_500}:
        if position < len(expected):
            assert sorted_list.from_end(position) == expected[-1 - position]
        else:
            with pytest.raises(IndexError):
                sorted_list.from_end(position)
