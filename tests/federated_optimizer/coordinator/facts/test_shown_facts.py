"""Rows of the tables of facts and costs."""

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.coordinator.facts.shown_facts import (
    SHOWN_MICROSECONDS,
    ShownFacts,
    rounded,
)
from federated_optimizer.statistics.default_facts import DEFAULTS, SPARK_FLOOR
from federated_optimizer.statistics.fact import (
    DAY,
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
    exact,
)
from federated_optimizer.statistics.fact_store import Facts
from streamsql.catalog.system import SYS_COSTS, SYS_FACTS

MINUTE = 60_000_000


def test_facts_are_rows_that_rest_while_nothing_changes() -> None:
    facts, now = Facts(), [90_000_000]
    subject = Subject(SubjectKind.SOURCE, "heat", "gw-1")
    numbers = (2.34567, 1.0, 12_345.0)
    facts.put(Fact(subject, Quantity.INSERTS, *numbers, 90_000_000, 0.87, Origin.COUNTED))
    shown = ShownFacts(facts, lambda: now[0])
    row = ("source", "heat", "gw-1", "inserts a second", 2.35, 1.0, 12_300.0)
    assert shown.facts() == ((*row, 0.9, MINUTE, "counted at the sites"),)
    assert len(shown.facts()[0]) == len(SYS_FACTS.schema)
    facts.put(exact(subject, Quantity.ROWS, 5.0, now[0], Origin.LINKS))
    assert len(shown.facts()) == 1  # looked at not long ago
    now[0] += SHOWN_MICROSECONDS
    assert len(shown.facts()) == 2
    now[0] = DAY
    assert {row[7] for row in shown.facts()} == {0.0, 0.5}  # confidence has faded


def test_costs_are_the_defaults_and_what_is_known_of_engines() -> None:
    facts = Facts()
    subject = Subject(SubjectKind.ENGINE, "spark")
    facts.put(exact(subject, Quantity.FLOOR_SECONDS, 0.31, MINUTE, Origin.TIMED))
    rows = ShownFacts(facts, lambda: 0).costs()
    assert rows[0] == (
        "seconds of the smallest evaluation of Spark",
        *(0.31, 0.31, 0.31),
        *(MINUTE, "timed by the static engine"),
    )
    others = [default.words for default in DEFAULTS if default is not SPARK_FLOOR]
    assert [row[0] for row in rows[1:]] == others
    assert {row[4] for row in rows[1:]} == {None}
    assert {len(row) for row in rows} == {len(SYS_COSTS.schema)}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_can_be_shown(value: float) -> None:
    assert isfinite(rounded(value))
    assert rounded(value) == pytest.approx(value, rel=0.005)


@given(st.floats(-1e300, 1e300).filter(lambda value: not value or abs(value) > 1e-290))
def test_three_digits_are_shown(value: float) -> None:
    assert rounded(value) == pytest.approx(value, rel=0.005)
    assert float(f"{value:.2e}") == pytest.approx(rounded(value), rel=1e-9)


def test_rows_rest_while_only_the_time_of_measurement_is_new() -> None:
    facts, now = Facts(), [0]
    subject = Subject(SubjectKind.SOURCE, "seat", "gw-1")
    engine = Subject(SubjectKind.ENGINE, "spark")
    shown = ShownFacts(facts, lambda: now[0])

    def measured(value: float) -> tuple[object, object]:
        now[0] += 10 * MINUTE
        facts.put(exact(subject, Quantity.SENSORS, value, now[0], Origin.ANNOUNCED))
        facts.put(exact(engine, Quantity.FLOOR_SECONDS, 0.31, now[0], Origin.TIMED))
        return shown.facts(), shown.costs()

    first = measured(7.0)
    for _ in range(5):
        again = measured(7.0)
        assert (again[0] is first[0], again[1] is first[1]) == (True, True)
    assert shown.facts()[1][7:9] == (1.0, 10 * MINUTE)
    measured(7.0)
    assert shown.facts()[1][8] == now[0]  # an hour later
    measured(8.0)
    assert shown.facts()[1][8] == now[0]
