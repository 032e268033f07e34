"""Lines of EXPLAIN about equal queries."""

from federated_optimizer.coordinator.explaining.sharing_notes import MAX_NAMES, SharingNote


def test_who_may_not_be_seen_is_only_counted() -> None:
    assert str(SharingNote(names=("a",))) == "Shared with 1 equal query: a"
    assert str(SharingNote(names=("a", "b"))) == "Shared with 2 equal queries: a, b"
    hidden = SharingNote(names=("a",), hidden=2)
    assert str(hidden) == "Shared with 3 equal queries, 2 of which you may not see: a"
    assert str(SharingNote(hidden=1)) == "Shared with 1 equal query, 1 of which you may not see"
    assert hidden.data() == {"alone": "", "queries": ["a"], "hidden": 2}


def test_a_line_has_some_names_of_many() -> None:
    note = SharingNote(names=tuple(f"q{number}" for number in range(100)))
    assert str(note).startswith("Shared with 100 equal queries: q0, q1, ")
    assert str(note).count("q") == MAX_NAMES + 2, "one more in the word equal"
    assert str(note).endswith(", …")


def test_a_query_alone_says_why() -> None:
    assert str(SharingNote("it is so")) == "Not shared with equal queries: it is so"
    assert str(SharingNote()) == "Shared with equal queries; no other one runs"
