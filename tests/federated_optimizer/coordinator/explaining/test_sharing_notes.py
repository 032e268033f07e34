"""Lines of EXPLAIN about what runs once for several queries."""

from typing import Any

from federated_optimizer.coordinator.explaining.sharing_notes import (
    MAX_NAMES,
    NOTHING_SHARED,
    ReadNode,
    Sharers,
    SharingNote,
)
from federated_optimizer.cutting.bundle_explain import READ


def test_who_may_not_be_seen_is_only_counted() -> None:
    assert str(SharingNote(equal=Sharers(("a",)))) == "Shared with 1 equal query: a"
    assert str(SharingNote(equal=Sharers(("a", "b")))) == "Shared with 2 equal queries: a, b"
    some = SharingNote(equal=Sharers(("a",), 2))
    assert str(some) == "Shared with 3 equal queries, 2 of which you may not see: a"
    hidden = SharingNote(equal=Sharers((), 1))
    assert str(hidden) == "Shared with 1 equal query, 1 of which you may not see"
    assert some.data() == {"alone": "", "queries": ["a"], "hidden": 2, "fragments": {}, "nodes": {}}


def test_fragments_are_named_with_the_queries_that_read_them() -> None:
    fragments = (("f1", Sharers(("a", "b"))), ("f2", Sharers((), 1)))
    note = SharingNote(fragments=fragments)
    assert str(note).splitlines() == [
        "No equal query runs",
        "Fragment f1 runs once with 2 other queries: a, b",
        "Fragment f2 runs once with 1 other query, 1 of which you may not see",
    ]
    assert note.data()["fragments"] == {
        "f1": {"queries": ["a", "b"], "hidden": 0},
        "f2": {"queries": [], "hidden": 1},
    }


def test_nodes_are_numbered_with_the_queries_that_rest_on_them() -> None:
    nodes = (
        ReadNode("f1", "17", Sharers(("a", "b"), 39), "adds 1 filter"),
        ReadNode("f2", "3/f1", Sharers((), 1), ""),
        ReadNode("f3", "", Sharers(), "adds 1 filter, 2 joins"),
        ReadNode("f4", "5", Sharers(), "adds 1 filter"),
    )
    assert str(SharingNote(nodes=nodes)).splitlines() == [
        "No equal query runs",
        "Fragment f1 reads node 17, shared with 41 queries; adds 1 filter",
        "  node 17: 41 other queries, 39 of which you may not see: a, b",
        "Fragment f2 reads node 3/f1, shared with 1 query",
        "Fragment f3 reads a node that is made for it; adds 1 filter, 2 joins",
        "Fragment f4 reads node 5, which no other query reads yet; adds 1 filter",
    ]
    said: Any = SharingNote(nodes=nodes).data()["nodes"]
    wanted = {"node": "17", "queries": 41, "names": ["a", "b"], "adds": "adds 1 filter"}
    assert said["f1"] == wanted


def test_a_line_has_some_names_of_many() -> None:
    said = Sharers(tuple(f"q{number}" for number in range(100))).text("equal")
    assert said.startswith("100 equal queries: q0, q1, ")
    assert said.count(",") == MAX_NAMES
    assert said.endswith("q19, …")


def test_a_query_alone_says_why() -> None:
    assert str(SharingNote("it is so")) == "Not shared with equal queries: it is so"
    assert str(SharingNote()) == NOTHING_SHARED


def test_a_plan_lists_what_is_read_of_others_and_not_what_is_below_it(harness: Any) -> None:
    joined = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.start_query(coordinator, joined)
        one = await harness.start_query(coordinator, f"{joined} WHERE l.src > 'a'")
        (before,) = await coordinator.execute(
            f"EXPLAIN (TYPE FEDERATED) {joined} WHERE l.src > 'b'"
        )
        for said in (before.text, coordinator.explain(one).text):
            fragments = [line for line in said.splitlines() if line.startswith("Fragment f")]
            places = [line.split("] ")[0] for line in fragments if " [" in line]
            assert places == [
                "Fragment f0 [BASE: base",
                f"Fragment f1 [{READ}",
            ]
            (row,) = (line for line in said.splitlines() if line.startswith("f1 "))
            assert row.endswith(READ)
            assert not any(letter.isdecimal() for letter in row.removeprefix("f1"))

    harness.run(scenario)
