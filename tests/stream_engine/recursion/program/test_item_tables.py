"""Indexes and remembered conditions always say what a scan would."""

import random

from stream_engine.recursion.program import item_tables as tables
from stream_engine.recursion.program.item_tables import NO_ITEMS, Item, ItemTable, values_at
from streamsql.data.types import Row


def near(wide: Row) -> bool:
    _name, here, there = wide
    assert isinstance(here, int)
    assert isinstance(there, int)
    return abs(here - there) < 3


def scan(table: ItemTable, wide: Row) -> set[Item]:
    return {item for item in table.items if near(wide + item.row)}


def churn(steps: int, seed: int) -> tuple[int, int]:
    """Change and ask a table at random; return how often answers were kept and dropped."""
    choice = random.Random(seed)
    table = ItemTable()
    matching = table.matching("near", near, values_at((1,)))
    present: list[Item] = []
    kept = dropped = 0
    for number in range(steps):
        if present and choice.random() < 0.3:
            table.remove(present.pop(choice.randrange(len(present))))
        elif choice.random() < 0.4:
            item = Item((choice.randrange(20),), None)
            present.append(item)
            before = len(matching._buckets)
            table.add(item)
            kept, dropped = kept + (len(matching._buckets) > 0), dropped + (before > 0)
        wide: Row = (f"w{number}", choice.randrange(20))
        assert set(matching.of(wide, NO_ITEMS)) == scan(table, wide)
        assert matching.size == sum(len(bucket) for _, bucket in matching._buckets.values())
    return kept, dropped - kept


def test_a_remembered_condition_equals_a_scan() -> None:
    for seed in range(5):
        kept, _ = churn(200, seed)
        assert kept > 0


def test_answers_that_do_not_pay_are_forgotten() -> None:
    table = ItemTable()
    matching = table.matching("near", near, values_at((1,)))
    table.add(Item((1,), None))
    for number in range(10):
        matching.of(("w", number), NO_ITEMS)  # each asked for once: nothing saved
    assert len(matching._buckets) == 10
    table.add(Item((2,), None))
    assert len(matching._buckets) == 0


def test_what_is_remembered_is_bounded() -> None:
    table = ItemTable()
    matching = table.matching("near", near, values_at((1,)))
    for number in range(3):
        table.add(Item((number,), None))
    for number in range(tables._MATCH_KEYS + 50):
        matching.of(("w", number), NO_ITEMS)
    assert len(matching._buckets) == tables._MATCH_KEYS


def test_clearing_a_table_forgets_conditions() -> None:
    table = ItemTable()
    table.add(Item((1,), None))
    assert table.matching("near", near, values_at((1,))).of(("w", 1), NO_ITEMS)
    table.clear()
    assert not table.matching("near", near, values_at((1,))).of(("w", 1), NO_ITEMS)
