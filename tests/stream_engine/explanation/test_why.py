"""What explanations say where there is too much to say, and where supports do not say all."""

import random

import pytest

from stream_engine.explanation.budget import ExplanationLimitError
from stream_engine.explanation.restricting import invariant_columns, restricted
from stream_engine.explanation.what_if import what_if_deleted
from stream_engine.explanation.why import DISTURBED, LOOSE, why
from stream_engine.testing.recursion_programs import (
    INTEGER,
    LINK,
    TEXT,
    cheapest_path,
    equals,
    reachable,
)
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    RecursiveReference,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.algebra.row_explanations import BaseRow, Contents, Why, leaves_of
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

SEATS = Scan("seat", SourceKind.STREAM, Schema.of(("desk", TEXT), ("room", TEXT)))
PEOPLE = Scan("person", SourceKind.TABLE, Schema.of(("desk", TEXT), ("name", TEXT)))
COUNT_ALL = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


def dense(nodes: int, links: int, seed: int = 1) -> list[Row]:
    choice = random.Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    found: dict[Row, None] = {}
    while len(found) < links:
        found[choice.choice(names), choice.choice(names), choice.randrange(1, 9)] = None
    return list(found)


def sets(answered: Why) -> list[set[Row]]:
    return [{base.row for base in support} for support in answered.supports]


def reaches(links: set[Row], start: str, end: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        for link in links:
            if link[0] == node:
                if link[1] == end:
                    return True
                if link[1] not in seen:
                    seen.add(str(link[1]))
                    waiting.append(str(link[1]))
    return False


def halving() -> Fixpoint:
    """Return a non-linear recursion: two known pairs make one."""
    schema = Schema.of(("src", TEXT), ("dst", TEXT))
    pair = RecursiveReference("pairs", schema)
    base = Project(LINK, (Column(0, "src", TEXT), Column(1, "dst", TEXT)), schema.names)
    joined = Join(pair, pair, JoinKind.INNER, ((1, 0),))
    step = Project(joined, (Column(0, "src", TEXT), Column(3, "dst", TEXT)), schema.names)
    return Fixpoint("pairs", schema, (base,), (step,))


# --- many supports --------------------------------------------------------------------------------


def test_too_many_supports_are_cut_off_and_the_listed_ones_are_minimal() -> None:
    links = dense(20, 90, seed=3)
    found = why(reachable(), {LINK: links}, ("n1", "n2"), limit=5, chance=lambda _base: 0.5)
    assert found.holds
    assert not found.complete
    assert len(found.supports) == 5
    for support in sets(found):
        assert reaches(support, "n1", "n2")
        assert not any(reaches(support - {link}, "n1", "n2") for link in support)
    assert found.confidence is not None
    assert 0.5 < found.confidence.probability <= 1.0


def test_more_supports_than_asked_for_are_known_to_be_there() -> None:
    links: list[Row] = [(s, d, 1) for mid in "uvwxyz" for s, d in (("a", mid), (mid, "b"))]
    found = why(reachable(), {LINK: links}, ("a", "b"), limit=4)
    assert len(found.supports) == 4
    assert found.known == 6
    assert not found.complete
    assert why(reachable(), {LINK: links}, ("a", "b"), limit=6).complete


def test_derivations_that_lead_to_no_other_support_do_not_count() -> None:
    # All that n2 reaches is behind the only two ways from n1 to n2.
    links = [link for link in dense(20, 90) if link[0] != "n1"]
    links += [("n1", "n2", 8), ("n1", "n2", 9)]
    found = why(reachable(), {LINK: links}, ("n1", "n2"))
    assert sets(found) == [{("n1", "n2", 8)}, {("n1", "n2", 9)}]
    assert found.complete


def test_non_linear_recursion_has_the_supports_of_the_linear_one() -> None:
    links = dense(7, 14)
    for row in (("n1", "n2"), ("n3", "n5"), ("n0", "n0")):
        contents: Contents = {LINK: links}
        linear = why(reachable(), contents, row, limit=500)
        assert why(halving(), contents, row, limit=500).supports == linear.supports


def test_work_is_bounded() -> None:
    links = dense(60, 400)
    with pytest.raises(ExplanationLimitError, match="takes more than"):
        why(halving(), {LINK: links}, ("n1", "n2"), work=20_000)
    with pytest.raises(ExplanationLimitError) as raised:
        what_if_deleted(reachable(), {LINK: links}, {}, work=2_000)
    assert "WHERE" in raised.value.hint


def test_little_work_gives_what_was_found_until_then() -> None:
    links = dense(40, 300)
    some = why(reachable(), {LINK: links}, ("n1", "n2"), work=25_000)
    assert some.holds
    assert not some.complete
    assert some.supports
    assert all(reaches(support, "n1", "n2") for support in sets(some))


# --- what supports do not say ---------------------------------------------------------------------


def test_a_row_that_is_not_there() -> None:
    assert why(reachable(), {LINK: [("a", "b", 1)]}, ("b", "a")) == Why(holds=False)


def test_counts_rest_on_all_they_count() -> None:
    contents: Contents = {SEATS: [("d1", "L1"), ("d2", "L1"), ("d3", "L2"), ("d1", "L1")]}
    found = why(Aggregate(SEATS, (1,), (COUNT_ALL,)), contents, ("L1", 3), chance=_half)
    assert sets(found) == [{("d1", "L1"), ("d2", "L1")}]
    assert found.notes == ("n counts 3 rows, so each support contains all of them",)
    assert found.confidence is not None
    assert found.confidence.exact
    assert found.confidence.probability == pytest.approx(0.25)


def test_a_count_of_nothing_rests_on_nothing() -> None:
    found = why(Aggregate(SEATS, (), (COUNT_ALL,)), {SEATS: []}, (0,))
    assert found.supports == ((),)
    assert found.notes == ("an aggregate without GROUP BY has a row even without input",)


def test_a_dropped_count_makes_the_probability_a_lower_bound() -> None:
    counted = Aggregate(SEATS, (1,), (COUNT_ALL,))
    at_least = Call(">", (Column(1, "n", INTEGER), Literal(1, INTEGER)), DataType.BOOLEAN)
    rooms = Project(Filter(counted, at_least), (Column(0, "room", TEXT),), ("room",))
    contents: Contents = {SEATS: [("d1", "L1"), ("d2", "L1"), ("d3", "L1")]}
    found = why(rooms, contents, ("L1",), chance=_half)
    assert found.confidence is not None
    assert not found.confidence.exact
    assert found.confidence.reason == LOOSE
    assert found.confidence.probability == pytest.approx(0.125)


def test_a_count_over_a_left_join_is_told_apart() -> None:
    joined = Join(SEATS, PEOPLE, JoinKind.LEFT, ((0, 0),))
    counted = Aggregate(joined, (3,), (COUNT_ALL,))
    contents: Contents = {SEATS: [("d1", "L1"), ("d2", "L1")], PEOPLE: [("d1", "Ada")]}
    found = why(counted, contents, (None, 1), chance=_half)
    assert sets(found) == [{("d2", "L1")}]
    assert DISTURBED in found.notes
    assert found.confidence is None


def test_a_missing_partner_is_named() -> None:
    joined = Join(SEATS, PEOPLE, JoinKind.LEFT, ((0, 0),))
    contents: Contents = {SEATS: [("d1", "L1"), ("d2", "L1")], PEOPLE: [("d1", "Ada")]}
    found = why(joined, contents, ("d2", "L1", None, None))
    assert sets(found) == [{("d2", "L1")}]
    assert found.notes == ("it also depends on the absence of matching rows of person",)
    assert why(joined, contents, ("d1", "L1", "d1", "Ada")).notes == ()


def test_least_costs_rest_on_the_cheapest_ways_only() -> None:
    links: list[Row] = [("a", "b", 1), ("b", "c", 1), ("a", "c", 2), ("a", "d", 1), ("d", "c", 4)]
    found = why(cheapest_path(), {LINK: links}, ("a", "c", 2))
    assert sets(found) == [{("a", "c", 2)}, {("a", "b", 1), ("b", "c", 1)}]
    assert found.complete


def test_one_base_row_in_two_windows_counts_once() -> None:
    now, recent = Window(SEATS, WindowKind.NOW), Window(SEATS, WindowKind.RANGE, 5_000_000)
    plan = Join(now, recent, JoinKind.INNER, ((0, 0),))
    contents: Contents = {now: [("d1", "L1")], recent: [("d1", "L1"), ("d2", "L1")]}
    assert leaves_of(plan) == (now, recent)
    found = why(plan, contents, ("d1", "L1", "d1", "L1"))
    assert sets(found) == [{("d1", "L1")}]


def test_deleting_from_a_window_by_count_says_what_is_not_known() -> None:
    last = Window(SEATS, WindowKind.ROWS, 2)
    contents: Contents = {last: [("d1", "L1"), ("d2", "L1")]}
    found = what_if_deleted(last, contents, {last: [("d1", "L1")]})
    assert found.gone == (("d1", "L1"),)
    assert "window by count" in found.notes[0]


def test_rows_without_a_chance_are_certain() -> None:
    links: list[Row] = [("a", "b", 1), ("b", "c", 1)]

    def chance(base: BaseRow) -> float | None:
        return 0.25 if base.row == ("b", "c", 1) else None

    found = why(reachable(), {LINK: links}, ("a", "c"), chance=chance)
    assert found.confidence is not None
    assert found.confidence.probability == pytest.approx(0.25)
    certain = why(reachable(), {LINK: links}, ("a", "c"), chance=lambda _base: None)
    assert certain.confidence is not None
    assert certain.confidence.probability == 1.0


def _half(_base: BaseRow) -> float:
    return 0.5


# --- goal-directed --------------------------------------------------------------------------------


def test_the_asked_end_goes_into_the_recursion() -> None:
    assert invariant_columns(reachable()) == {1}
    assert invariant_columns(cheapest_path()) == {1}
    assert invariant_columns(halving()) == frozenset()
    part = restricted(reachable(), ("a", "c"))
    assert isinstance(part, Fixpoint)
    assert isinstance(part.base[0], Filter)
    assert part.base[0].predicate == equals(Column(1, "dst", TEXT), Literal("c", TEXT))


def test_values_go_across_the_keys_of_joins() -> None:
    plan: Plan = Join(SEATS, PEOPLE, JoinKind.LEFT, ((0, 0),))
    part = restricted(plan, ("d1", "L1", None, None))
    assert isinstance(part, Join)
    assert isinstance(part.right, Filter)
    assert part.right.predicate == equals(Column(0, "desk", TEXT), Literal("d1", TEXT))


def test_a_materialized_table_is_explained_by_the_rows_it_is_made_of() -> None:
    contents: Contents = {SEATS: [("d1", "r1"), ("d2", "r1"), ("d3", "r2")]}

    def neighbours(seats: Plan) -> Plan:
        return Join(seats, seats, JoinKind.INNER, ((1, 1),))

    row = ("d1", "r1", "d2", "r1")
    found = why(neighbours(Materialize(SEATS, "seats")), contents, row)
    assert sets(found) == [{("d1", "r1"), ("d2", "r1")}]
    assert found.supports == why(neighbours(SEATS), contents, row).supports
