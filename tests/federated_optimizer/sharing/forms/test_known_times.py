"""Windows around event times contain shorter ones; around other times nothing is known."""

import pytest

from federated_optimizer import Topology, normalize
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import residual
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import EARLIEST, LATEST
from streamsql.syntax import CreateSource, Query, parse_script, parse_statement

SOURCES = """
    CREATE SOURCE timed (k INTEGER, g INTEGER, ts TIMESTAMP, other TIMESTAMP, KEY (k));
    CREATE SOURCE untimed (k INTEGER, g INTEGER, other TIMESTAMP, KEY (k));"""
DAY = 86_400_000_000


def block(condition: str, relations: str = "timed a, timed b") -> Block:
    catalog = Catalog()
    for statement in parse_script(SOURCES):
        assert isinstance(statement, CreateSource)
        catalog.define(define(statement, catalog))
    query = parse_statement(f"SELECT a.k FROM {relations} WHERE a.g = b.g AND {condition}")
    assert isinstance(query, Query)
    plan = bind_query(query, catalog).plan
    return block_of(normalize(plan, Topology({"gw": frozenset({"timed", "untimed"})})))


def window(days: int, column: str = "ts") -> str:
    return f"b.{column} <= a.{column} + INTERVAL '{days} days'"


@pytest.mark.parametrize(("wanted", "offered", "found"), [(10, 20, True), (20, 10, False)])
def test_a_longer_window_around_event_times_has_the_rows_of_a_shorter_one(
    wanted: int, offered: int, found: bool
) -> None:
    ours, theirs = block(window(wanted)), block(window(offered))
    rest = residual(ours.predicates, theirs.predicates, known_times(ours))
    assert (rest is not None) == found
    assert rest is None or len(rest) == 1


def test_near_the_end_of_integers_only_the_shorter_window_has_a_row() -> None:
    ours, theirs = block(window(10, "other")), block(window(20, "other"))
    assert residual(ours.predicates, theirs.predicates, known_times(ours)) is None
    # A row for which that matters: the longer sum is NULL.
    late = 2**63 - 1 - 15 * DAY
    row = (1, 7, 0, late, 2, 7, 0, late)
    passes = [
        all(compile_expression(p)(row) is True for p in each.predicates) for each in (ours, theirs)
    ]
    assert passes == [True, False]


@pytest.mark.parametrize(
    "written",
    [
        "b.other - a.other <= INTERVAL '{days} days'",
        "b.other <= a.other + INTERVAL '{days} days' AND a.other < TIMESTAMP '2100-01-01'",
    ],
)
def test_windows_of_other_times_are_found_as_differences_or_with_a_year(written: str) -> None:
    ours, theirs = block(written.format(days=40)), block(written.format(days=60))
    assert residual(ours.predicates, theirs.predicates, known_times(ours)) is not None
    assert residual(theirs.predicates, ours.predicates, known_times(ours)) is None


def test_only_event_times_of_streams_are_known() -> None:
    found = known_times(block(window(10), "timed a, timed b"))
    assert len(found) == 2
    assert known_times(block("a.other = b.other", "untimed a, untimed b")) == ()
    for fact in found:
        holds = compile_expression(fact)
        times = (EARLIEST - 1, EARLIEST, 0, LATEST - 1, LATEST, None)
        told = [holds((1, 7, time, 0, 2, 7, time, 0)) for time in times]
        assert told == [False, True, True, True, False, True]


SUMS = [
    (
        "a.{} - INTERVAL '5 minutes' < TIMESTAMP '2024-01-01 00:00:00'",
        "a.{} < TIMESTAMP '2024-01-01 00:05:00'",
        -(2**63),
    ),
    (
        "a.{} + INTERVAL '5 minutes' >= TIMESTAMP '2024-01-01 00:05:00'",
        "a.{} >= TIMESTAMP '2024-01-01 00:00:00'",
        2**63 - 1,
    ),
]


@pytest.mark.parametrize(("moved", "plain", "extreme"), SUMS)
def test_a_sum_of_an_event_time_is_compared_as_the_time_itself(
    moved: str, plain: str, extreme: int
) -> None:
    ours, theirs = (block(each.format("ts"), "timed a, untimed b") for each in (moved, plain))
    given = known_times(ours)
    for wanted, offered in ((ours, theirs), (theirs, ours)):
        assert residual(wanted.predicates, offered.predicates, given) is not None
    middle = 1_704_067_200_000_000
    for time in (EARLIEST, middle - 1, middle, middle + 300_000_000, LATEST - 1, None):
        row = (1, 7, time, 0, 2, 7, 0)
        told = [
            [compile_expression(p)(row) is True for p in each.predicates] for each in (ours, theirs)
        ]
        assert told[0] == told[1], time
    # Of another time the sum may be NULL, so that only one follows from the other.
    ours, theirs = (block(each.format("other"), "timed a, untimed b") for each in (moved, plain))
    assert residual(ours.predicates, theirs.predicates, known_times(ours)) is not None
    assert residual(theirs.predicates, ours.predicates, known_times(ours)) is None
    row = (1, 7, 0, extreme, 2, 7, 0)
    passes = [
        all(compile_expression(p)(row) is True for p in each.predicates) for each in (ours, theirs)
    ]
    assert passes == [False, True]
