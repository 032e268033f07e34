"""Entries leave in the order of their last messages, those without rows first."""

from streamsql.mapping.sparkplug.provisional_entries import ProvisionalEntries


def test_entries_without_rows_leave_first_and_the_one_silent_longest_before_others() -> None:
    entries: ProvisionalEntries[str] = ProvisionalEntries()
    entries.put("with", 0, has_rows=True)
    for now, key in enumerate(("a", "b", "c", "a", "with")):
        entries.put(key, now, has_rows=False)
    assert "with" in entries
    left = []
    while (first := entries.first()) is not None:
        left.append(first)
        entries.discard(first)
    assert left == ["b", "c", "a", "with"]


def test_silent_are_those_without_rows_and_without_a_message_since() -> None:
    entries: ProvisionalEntries[str] = ProvisionalEntries()
    entries.put("with", 0, has_rows=True)
    for now in range(5):
        entries.put(f"k{now}", now, has_rows=False)
    assert entries.silent(2) == ["k0", "k1", "k2"]
    assert entries.silent(-1) == []
