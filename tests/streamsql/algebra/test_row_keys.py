"""Keys: never columns that two rows may share."""

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Join,
    JoinKind,
    Project,
    Scan,
    SourceKind,
    UnionAll,
)
from streamsql.algebra.row_keys import is_matched_once, is_unique, unique_keys
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

INT, D, T = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT
ROOMS = Scan("rooms", SourceKind.TABLE, Schema.of(("room", T), ("level", INT)), key=(0,))
DESKS = Scan("desks", SourceKind.TABLE, Schema.of(("desk", INT), ("room", T)), key=(0,))
NUMBERS = Scan("numbers", SourceKind.TABLE, Schema.of(("x", D), ("n", INT)), key=(0,))
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


def test_a_declared_key_is_unique() -> None:
    assert is_unique(ROOMS, {0})
    assert is_unique(ROOMS, {0, 1})
    assert not is_unique(ROOMS, {1})
    assert not is_unique(ROOMS, ())


def test_what_may_be_there_twice_is_not_unique() -> None:
    assert not is_unique(UnionAll((ROOMS, ROOMS)), {0})
    assert not is_unique(Join(ROOMS, DESKS, JoinKind.INNER, ((0, 1),)), {0})
    assert not is_unique(Project(DESKS, (Column(1, "room", T),), ("room",)), {0})


def test_a_join_along_a_key_keeps_the_other_sides_key() -> None:
    joined = Join(DESKS, ROOMS, JoinKind.INNER, ((1, 0),))
    assert is_matched_once(joined)
    assert is_unique(joined, {0})


def test_groups_are_unique_and_a_whole_has_one_row() -> None:
    assert is_unique(Aggregate(DESKS, (1,), (COUNT,)), {0})
    assert unique_keys(Aggregate(DESKS, (), (COUNT,))) == (frozenset(),)


def test_two_zeros_are_two_rows_that_a_join_meets_both() -> None:
    """0.0 and -0.0."""
    assert not is_unique(NUMBERS, {0})
    assert not is_unique(Aggregate(NUMBERS, (0,), (COUNT,)), {0})
    assert not is_unique(Distinct(NUMBERS), {0, 1})
    assert not is_matched_once(Join(ROOMS, Distinct(NUMBERS), JoinKind.LEFT, ((1, 0),)))
    assert is_unique(Aggregate(NUMBERS, (1,), (COUNT,)), {0})
