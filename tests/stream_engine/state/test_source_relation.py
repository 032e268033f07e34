"""Sources: keys, times, lifetimes, bags, logs."""

from stream_engine.state.source_relation import SourceRelation, without_times
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER))


def relation(
    *, key: tuple[int, ...] = (), ttl: int | None = None, kind: SourceKind = SourceKind.STREAM
) -> SourceRelation:
    return SourceRelation(Scan("s", kind, COLUMNS, key, None, ttl))


def at(ts: int, k: str, n: int, *, delete: bool = False) -> SourceEvent:
    return SourceEvent((k, n), ts, delete)


def test_the_newest_row_of_a_key_wins() -> None:
    keyed = relation(key=(0,))
    assert keyed.apply([at(5, "a", 1)], 9) == {(5, ("a", 1)): 1}
    assert keyed.apply([at(7, "a", 2)], 9) == {(5, ("a", 1)): -1, (7, ("a", 2)): 1}
    assert keyed.apply([at(6, "a", 3)], 9) == {}
    assert keyed.apply([at(7, "a", 4)], 9) == {(7, ("a", 2)): -1, (7, ("a", 4)): 1}
    assert keyed.snapshot() == {(7, ("a", 4)): 1}


def test_changes_within_one_batch_cancel() -> None:
    keyed = relation(key=(0,), ttl=10)
    batch = [at(5, "a", 1), at(6, "a", 2), at(6, "a", 2), at(6, "b", 1), at(6, "b", 9, delete=True)]
    assert keyed.apply(batch, 6) == {(6, ("a", 2)): 1}
    assert keyed.next_expiry() == 16
    assert len(keyed) == 1


def test_a_withdrawal_names_only_the_key() -> None:
    keyed = relation(key=(0,))
    keyed.apply([at(5, "a", 1)], 9)
    assert keyed.apply([at(2, "a", 99, delete=True)], 9) == {(5, ("a", 1)): -1}
    assert keyed.apply([at(3, "a", 99, delete=True)], 9) == {}


def test_rows_expire() -> None:
    keyed = relation(key=(0,), ttl=10)
    keyed.apply([at(5, "a", 1), at(7, "b", 1)], 7)
    assert keyed.next_expiry() == 15
    assert keyed.advance(14) == {}
    assert keyed.advance(15) == {(5, ("a", 1)): -1}
    assert keyed.snapshot() == {(7, ("b", 1)): 1}


def test_a_row_that_comes_too_late_never_enters() -> None:
    for key in ((), (0,)):
        fading = relation(key=key, ttl=10)
        assert fading.apply([at(5, "a", 1)], 15) == {}
        assert fading.snapshot() == {}
        assert fading.next_expiry() is None


def test_renewal_postpones_expiry() -> None:
    keyed = relation(key=(0,), ttl=10)
    keyed.apply([at(5, "a", 1)], 5)
    delta = keyed.apply([at(12, "a", 1)], 12)
    assert without_times(delta) == {}
    assert keyed.advance(15) == {}
    assert keyed.next_expiry() == 22


def test_a_bag_keeps_copies_and_withdraws_the_named_one_else_the_oldest() -> None:
    bag = relation(ttl=100)
    bag.apply([at(5, "a", 1), at(3, "a", 1), at(5, "a", 1)], 6)
    assert bag.snapshot() == {(5, ("a", 1)): 2, (3, ("a", 1)): 1}
    assert bag.apply([at(5, "a", 1, delete=True)], 6) == {(5, ("a", 1)): -1}
    assert bag.apply([at(6, "a", 1, delete=True)], 6) == {(3, ("a", 1)): -1}
    assert bag.apply([at(6, "a", 1, delete=True)] * 3, 6) == {(5, ("a", 1)): -1}
    assert len(bag) == 0
    assert bag.next_expiry() is None


def test_copies_expire_together() -> None:
    bag = relation(ttl=10)
    bag.apply([at(5, "a", 1), at(5, "a", 1), at(8, "a", 1)], 9)
    assert bag.advance(15) == {(5, ("a", 1)): -2}
    assert bag.advance(18) == {(8, ("a", 1)): -1}
    assert bag.snapshot() == {}


def test_a_log_keeps_nothing() -> None:
    log = relation()
    assert log.is_log
    assert log.apply([at(5, "a", 1), at(5, "a", 1)], 5) == {(5, ("a", 1)): 2}
    assert log.apply([at(5, "a", 1, delete=True)], 5) == {(5, ("a", 1)): -1}
    assert log.snapshot() == {}
    assert len(log) == 0


def test_tables_and_links_without_key_are_kept() -> None:
    table = relation(kind=SourceKind.TABLE)
    assert not table.is_log
    table.apply([at(5, "a", 1)], 5)
    assert table.snapshot() == {(5, ("a", 1)): 1}


def test_state_is_as_large_as_what_is_alive() -> None:
    """Updates of one key leave no garbage behind that grows with their number."""
    keyed = relation(key=(0,), ttl=1_000_000)
    for ts in range(10_000):
        keyed.apply([at(ts, "a", ts)], ts)
    assert len(keyed) == 1
    assert len(keyed._expiry._heap) < 100
