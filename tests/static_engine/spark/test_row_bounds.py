"""Bounds of rows: never too small, and small where a key says so."""

import itertools
import math
from collections.abc import Iterator

import pytest

from static_engine.spark.row_bounds import most_rows, rows_at_most
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    Scan,
    SetKind,
    SetOperation,
    SourceKind,
    TopN,
    UnionAll,
    Values,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.reference import Database, evaluate

INT, D, T = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT
ROOMS = Scan("rooms", SourceKind.TABLE, Schema.of(("room", T), ("level", INT)), key=(0,))
DESKS = Scan("desks", SourceKind.TABLE, Schema.of(("desk", INT), ("room", T)), key=(0,))
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


def test_only_what_is_cheap_to_count_is_counted_first() -> None:
    counts = {"desks": 50.0, "rooms": 7.0}

    def rows(plan: Plan) -> float:
        return most_rows(plan, lambda scan: counts[scan.source])

    product = Join(DESKS, ROOMS, JoinKind.INNER)
    assert rows(Filter(DESKS, Literal(True, DataType.BOOLEAN))) == 50
    assert rows(Join(DESKS, ROOMS, JoinKind.LEFT, ((1, 0),))) == 50
    assert rows(product) == 350
    assert rows(Join(ROOMS, DESKS, JoinKind.SEMI, ((0, 1),))) == 7
    assert rows(UnionAll((ROOMS, ROOMS))) == 14
    assert rows(Distinct(product)) == 0


def test_a_plan_has_no_more_rows_than_its_bound() -> None:
    """Whatever the tables hold: all rows have equal keys here, or none has a partner."""
    kinds = Schema.of(("k", INT), ("t", INT))
    sides = [Values(((key, 1),) * count, kinds) for count in (0, 1, 3, 4) for key in (1, 2)]
    for left, right in itertools.product(sides, repeat=2):
        joins = [Join(left, right, kind, ((0, 0),)) for kind in JoinKind]
        plans: list[Plan] = [
            *joins,
            *[SetOperation(left, right, kind, all=True) for kind in SetKind],
            AsOfJoin(left, right, JoinKind.LEFT, 1, 1, keys=((0, 0),)),
            UnionAll((left, Distinct(right), Aggregate(left, (0,), (COUNT,)))),
            Aggregate(UnionAll((left, right)), (), (COUNT,)),
            Join(TopN(left, (), None), Materialize(right, "m"), JoinKind.FULL),
        ]
        for plan in plans:
            rows = sum(evaluate(plan, Database(), 0).values())
            assert rows <= rows_at_most(plan, lambda _: math.inf) < 30, plan


def test_the_bound_of_an_unknown_table_is_infinite() -> None:
    counts = {"desks": math.inf, "rooms": 0.0}

    def bound(plan: Plan) -> float:
        return rows_at_most(plan, lambda scan: counts[scan.source])

    assert bound(Aggregate(DESKS, (1,), (COUNT,))) == math.inf
    assert bound(Join(ROOMS, DESKS, JoinKind.INNER)) == math.inf
    assert bound(Join(ROOMS, DESKS, JoinKind.ANTI, ((0, 1),))) == 0


def keyed_sides() -> Iterator[tuple[Plan, Plan, JoinKind]]:
    """Yield desks and rooms, some of each side, and what has each room once by other means."""
    room = Column(0, "room", T)
    where = Call("<", (Column(1, "level", INT), Literal(2, INT)), DataType.BOOLEAN)
    names = Project(ROOMS, (room,), ("room",))
    counted = Project(Aggregate(DESKS, (1,), (COUNT,)), (room,), ("room",))
    distinct = Distinct(Project(DESKS, (Column(1, "room", T),), ("room",)))
    rights: tuple[Plan, ...] = (
        ROOMS,
        Filter(ROOMS, where),
        TopN(names, (), None),
        counted,
        distinct,
    )
    for right, kind in itertools.product(rights, JoinKind):
        yield DESKS, right, kind


@pytest.mark.parametrize("desks", [0, 1, 5, 40])
@pytest.mark.parametrize("rooms", [0, 1, 3, 60])
def test_a_join_along_a_key_has_no_more_rows_than_both_sides(desks: int, rooms: int) -> None:
    database = Database()
    database.append("desks", [SourceEvent((n, f"r{n % 4}"), 0) for n in range(desks)])
    database.append("rooms", [SourceEvent((f"r{n}", n % 3), 0) for n in range(rooms)])
    counts = {"desks": desks, "rooms": rooms}
    for desk, room, kind in keyed_sides():
        for plan in (Join(desk, room, kind, ((1, 0),)), Join(room, desk, kind, ((0, 1),))):
            found = sum(evaluate(plan, database, 0).values())
            left, right, bound = (
                rows_at_most(each, lambda scan: counts[scan.source])
                for each in (plan.left, plan.right, plan)
            )
            assert found <= bound <= left + right, plan
