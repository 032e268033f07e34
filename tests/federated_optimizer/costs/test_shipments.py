"""Prices of rows that travel."""

import pytest

from federated_optimizer.costs.cost import NOTHING
from federated_optimizer.costs.shipments import MESSAGE_BYTES, shipment
from federated_optimizer.costs.size_and_motion import Estimate

SLOW = Estimate(rows=0.0, inserts=1.0, deletes=1.0, factor=2.0)


def test_slow_changes_travel_one_by_one() -> None:
    found = shipment(SLOW, 19.0, ("a", "b"), ("base",))
    assert found.messages == pytest.approx(2.0, rel=0.02)
    assert found.bytes == pytest.approx(2 * 20 + 2 * MESSAGE_BYTES, rel=0.02)
    assert (found.low, found.high) == (found.bytes / 2, found.bytes * 2)


def test_a_reading_in_the_place_of_another_one_is_one_message() -> None:
    replaced = Estimate(rows=0.0, inserts=1.0, deletes=1.0, replaced=1.0)
    assert shipment(replaced, 19.0, ("a",), ("base",)).messages == pytest.approx(1.0, rel=0.02)


def test_quick_changes_share_messages() -> None:
    quick = Estimate(rows=0.0, inserts=1e6, deletes=0.0)
    assert shipment(quick, 9.0, ("a",), ("base",)).messages == pytest.approx(50)


def test_what_stays_costs_nothing() -> None:
    assert shipment(SLOW, 19.0, ("a",), ("a",)) == NOTHING
    assert shipment(SLOW, 19.0, (), ("a",)) == NOTHING
    half = shipment(SLOW, 19.0, ("a", "b"), ("a", "b"))
    assert half.bytes == pytest.approx(shipment(SLOW, 19.0, ("a", "b"), ("c",)).bytes / 2)
