"""Upserts: one message per key at a time, nothing cleared in doubt, nothing left behind."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer.coordinator.contract.sink_model import DeadLetter
from federated_optimizer.coordinator.sinks import upsert_book
from federated_optimizer.coordinator.sinks.outgoing import Outgoing, Refusal
from federated_optimizer.coordinator.sinks.upsert_book import UpsertBook
from streamsql.data.types import Row


class Catalog:
    """What is on disk: keys, and notes that are not written yet."""

    def __init__(self) -> None:
        self.keys: set[Row] = set()
        self.dead: dict[Row, DeadLetter] = {}
        self.noted: dict[Row, bool] = {}

    def remember(self, key: Row, known: bool) -> None:
        self.noted[key] = known

    def remember_dead(self, key: Row, letter: DeadLetter | None) -> None:
        if letter is None:
            self.dead.pop(key, None)
        else:
            self.dead[key] = letter

    def write(self) -> None:
        for key, known in self.noted.items():
            (self.keys.add if known else self.keys.discard)(key)
        self.noted.clear()


def book_on(catalog: Catalog, *, keeps_gone: bool = False) -> UpsertBook:
    return UpsertBook(
        [0],
        known=catalog.keys,
        dead=catalog.dead.values(),
        remember=catalog.remember,
        remember_dead=catalog.remember_dead,
        keeps_gone=keeps_gone,
    )


def change(
    book: UpsertBook, relation: Counter[Row], *signed: tuple[int, Row], in_doubt: bool = False
) -> None:
    for weight, row in signed:
        relation[row] += weight
    book.follow([row for _, row in signed], relation, in_doubt=in_doubt)


def send_all(book: UpsertBook) -> list[Outgoing]:
    batch = book.take(100)
    book.done(batch, [], 0)
    return batch


def test_a_key_that_changes_often_is_told_once_with_its_newest_row() -> None:
    book, relation = book_on(Catalog()), Counter[Row]()
    change(book, relation, (1, ("a", 1)))
    change(book, relation, (-1, ("a", 1)), (1, ("a", 2)))
    change(book, relation, (-1, ("a", 2)), (1, ("a", 3)), (1, ("b", 1)))
    assert send_all(book) == [Outgoing(("a",), ("a", 3)), Outgoing(("b",), ("b", 1))]
    change(book, relation, (-1, ("a", 3)))
    assert send_all(book) == [Outgoing(("a",), None)]
    assert book.known == {("b",)}


def test_a_key_that_comes_and_goes_before_it_is_told_is_not_told() -> None:
    catalog = Catalog()
    book, relation = book_on(catalog), Counter[Row]()
    change(book, relation, (1, ("a", 1)), (-1, ("a", 1)))
    assert book.take(10) == []
    assert not catalog.noted


def test_a_key_waits_until_it_has_one_row() -> None:
    book, relation = book_on(Catalog()), Counter[Row]()
    change(book, relation, (1, ("a", 1)))
    send_all(book)
    change(book, relation, (1, ("a", 2)))
    assert book.take(10) == []
    assert book.ambiguous == (("a",), (("a", 1), ("a", 2)))
    change(book, relation, (-1, ("a", 1)))
    assert send_all(book) == [Outgoing(("a",), ("a", 2))]
    change(book, relation, (1, ("a", 2)))  # the same row twice is two rows
    assert book.ambiguous is not None
    assert book.take(10) == []


def test_a_key_that_goes_in_doubt_stays_until_that_is_decided() -> None:
    book, relation = book_on(Catalog()), Counter[Row]()
    change(book, relation, (1, ("a", 1)), (1, ("b", 1)))
    send_all(book)
    change(book, relation, (-1, ("a", 1)), (-1, ("b", 1)), in_doubt=True)
    assert (book.take(10), book.unknown) == ([], 2)
    change(book, relation, (1, ("a", 1)), in_doubt=True)
    assert [message.key for message in send_all(book)] == [("a",)]
    book.decide()
    assert send_all(book) == [Outgoing(("b",), None)]


def test_keys_of_before_are_taken_back_when_the_answer_is_complete_without_them() -> None:
    catalog = Catalog()
    catalog.keys = {("a",), ("b",)}
    book, relation = book_on(catalog), Counter[Row]()
    change(book, relation, (1, ("b", 7)), in_doubt=True)
    assert send_all(book) == [Outgoing(("b",), ("b", 7))]
    assert book.unknown == 1
    book.decide()
    assert send_all(book) == [Outgoing(("a",), None)]
    catalog.write()
    assert catalog.keys == {("b",)}


def test_what_nobody_can_tell_of_is_sent_again() -> None:
    book, relation = book_on(Catalog()), Counter[Row]()
    change(book, relation, (1, ("a", 1)), (1, ("b", 1)))
    batch = book.take(10)
    assert (len(batch), book.waiting) == (2, 2)
    change(book, relation, (-1, ("a", 1)))
    book.put_back(batch)
    assert book.waiting == 2
    assert sorted(book.take(10), key=lambda message: message.key) == [
        Outgoing(("a",), None),
        Outgoing(("b",), ("b", 1)),
    ]


def test_a_key_with_a_row_again_stays_known_though_its_end_was_taken() -> None:
    catalog = Catalog()
    book, relation = book_on(catalog), Counter[Row]()
    change(book, relation, (1, ("a", 1)))
    send_all(book)
    change(book, relation, (-1, ("a", 1)))
    batch = book.take(10)
    change(book, relation, (1, ("a", 2)))
    book.done(batch, [], 0)
    assert book.known == {("a",)}
    assert send_all(book) == [Outgoing(("a",), ("a", 2))]


def test_dead_letters_are_replaced_by_what_is_taken_and_sent_again_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upsert_book, "MAX_DEAD", 2)
    catalog = Catalog()
    book, relation = book_on(catalog), Counter[Row]()
    change(book, relation, *((1, (name, 1)) for name in "abc"))
    batch = book.take(10)
    book.done(batch, [Refusal(message, "HTTP 500", 3) for message in batch], 5)
    assert [letter.key for letter in book.dead] == [("b",), ("c",)]
    assert (book.dead[0].reason, book.dead[0].tries, book.dead[0].given_up) == ("HTTP 500", 3, 5)
    assert book.dropped == 1
    change(book, relation, (-1, ("b", 1)), (1, ("b", 2)))
    assert send_all(book) == [Outgoing(("b",), ("b", 2))]
    assert set(catalog.dead) == {("c",)}
    again = book_on(catalog)
    again.follow(list(relation), relation, in_doubt=True)
    send_all(again)
    assert again.dead == ()
    assert book.retry() == 1
    assert send_all(book) == [Outgoing(("c",), ("c", 1))]


def test_described_keys_stay_known_and_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upsert_book, "MAX_GONE", 1)
    book, relation = book_on(Catalog(), keeps_gone=True), Counter[Row]()
    change(book, relation, (1, ("a", 1)), (1, ("b", 1)))
    send_all(book)
    change(book, relation, (-1, ("a", 1)))
    send_all(book)
    assert book.known == {("a",), ("b",)}
    change(book, relation, (-1, ("b", 1)))
    send_all(book)
    assert send_all(book) == [Outgoing(("a",), forget=True)]
    assert book.known == {("b",)}
    book.tell_all_again()
    assert send_all(book) == [Outgoing(("b",), None)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from("abcd"), st.integers(0, 1)),
        st.tuples(st.just("doubt"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("settle"), st.just(""), st.just(0)),
        st.tuples(st.just("send"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("lose"), st.just(""), st.integers(0, 3)),
        st.tuples(st.just("crash"), st.just(""), st.integers(0, 3)),
        st.tuples(st.just("write"), st.just(""), st.just(0)),
        st.tuples(st.just("again"), st.just(""), st.just(0)),
    ),
    max_size=60,
)


class Receiver:
    """Applies messages; a row's second value grows with every change of the relation."""

    def __init__(self) -> None:
        self.rows: dict[Row, Row] = {}
        self._newest: dict[Row, int] = {}

    def take(self, message: Outgoing) -> None:
        if message.row is None:
            self.rows.pop(message.key, None)
            return
        version = message.row[1]
        assert isinstance(version, int)
        assert version >= self._newest.get(message.key, 0), "an older row after a newer one"
        self._newest[message.key] = version
        self.rows[message.key] = message.row


class Play:
    """A book, a receiver and a catalog on disk, through changes, losses and crashes."""

    def __init__(self) -> None:
        self.catalog, self.receiver = Catalog(), Receiver()
        self.relation: Counter[Row] = Counter()
        self.book = book_on(self.catalog)
        self.version = 0

    def replace(self, name: str, *, present: bool, in_doubt: bool) -> None:
        gone = [row for row in self.relation if row[0] == name]
        signed = [(-1, row) for row in gone]
        self.version += 1
        if present:
            signed.append((1, (name, self.version)))
        change(self.book, self.relation, *signed, in_doubt=in_doubt)
        for row in gone:
            del self.relation[row]

    def send(self, limit: int, *, arrive: int | None = None) -> list[Outgoing]:
        """Write the new keys ahead, and let the first messages arrive."""
        batch = self.book.take(limit)
        self.catalog.write()
        for message in batch[:arrive]:
            self.receiver.take(message)
        return batch

    def crash(self, arrived: int) -> None:
        self.send(3, arrive=arrived)
        self.catalog.noted.clear()
        self.book = book_on(self.catalog)
        self.book.follow(list(self.relation), self.relation, in_doubt=True)

    def finish(self) -> None:
        self.book.follow(list(self.relation), self.relation, in_doubt=False)
        self.book.decide()
        while batch := self.send(2):
            self.book.done(batch, [], 0)


@settings(max_examples=300)
@given(STEPS)
def test_after_all_losses_and_crashes_the_receiver_has_the_relation(
    steps: list[tuple[str, str, int]],
) -> None:
    play = Play()
    for step, name, number in steps:
        match step:
            case "change":
                play.replace(name, present=bool(number), in_doubt=False)
            case "doubt":
                play.replace(name, present=False, in_doubt=True)
            case "settle":
                play.book.decide()
            case "send":
                play.book.done(play.send(number), [], 0)
            case "lose":
                play.book.put_back(play.send(3, arrive=number))
            case "crash":
                play.crash(number)
            case "write":
                play.catalog.write()
            case _:
                play.book.tell_all_again()
    play.finish()
    assert play.receiver.rows == {(row[0],): row for row in play.relation}
    assert play.book.known == set(play.receiver.rows)
    play.catalog.write()
    assert play.catalog.keys == set(play.receiver.rows)
