"""Facts as costs are made with them."""

import pytest

from federated_optimizer.coordinator.facts.planned_costs import speeds_of, wires_of
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.shipments import shipment
from federated_optimizer.statistics.fact import (
    HOUR,
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
    exact,
)
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS, Evaluating
from federated_optimizer.statistics.wires import DEFAULT_WIRES

ROWS = Estimate(rows=0.0, inserts=1.0, deletes=1.0)


def delivered(site: str, value: float, at: int = 0) -> Fact:
    subject = Subject(SubjectKind.SITE, site)
    return exact(subject, Quantity.DELIVERED, value, at, Origin.COUNTED)


def test_what_has_to_be_sent_again_costs_more_of_all_that_travels() -> None:
    wires = wires_of(Facts([delivered("gw-1", 0.5)]), {}, 0)
    for site, times in (("gw-1", 2.0), ("gw-2", 1.0)):
        lossy = shipment(ROWS, 19.0, (site,), ("base",), wires)
        clean = shipment(ROWS, 19.0, (site,), ("base",))
        for field in ("bytes", "high", "messages", "energy", "cpu"):
            assert getattr(lossy, field) == pytest.approx(times * getattr(clean, field)), field
        assert lossy.milliseconds == clean.milliseconds
    both = shipment(ROWS, 19.0, ("gw-1", "gw-2"), ("base",), wires)
    assert both.bytes == pytest.approx(1.5 * shipment(ROWS, 19.0, ("a", "b"), ("base",)).bytes)


def test_losses_are_forgotten_and_bounded() -> None:
    facts = Facts([delivered("gw-1", 0.5), delivered("gw-2", 0.0)])
    assert wires_of(facts, {}, 20 * HOUR).repetitions(("gw-1",)) == pytest.approx(1.0, abs=1e-3)
    assert wires_of(facts, {}, 0).repetitions(("gw-2",)) == pytest.approx(10.0)
    assert wires_of(Facts(), {}, 0) == DEFAULT_WIRES


def test_engines_are_as_fast_as_they_were_timed() -> None:
    spark = Subject(SubjectKind.ENGINE, "spark")
    facts = Facts([exact(spark, Quantity.FLOOR_SECONDS, 0.7, 0, Origin.TIMED)])
    assert speeds_of(Facts()) == DEFAULT_SPEEDS
    assert speeds_of(facts).spark == Evaluating(0.7, DEFAULT_SPEEDS.spark.rows)
    facts.put(exact(spark, Quantity.ROWS_A_SECOND, 9e6, 0, Origin.TIMED))
    assert speeds_of(facts).spark == Evaluating(0.7, 9e6)
    assert speeds_of(facts).local == DEFAULT_SPEEDS.local
