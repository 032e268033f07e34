"""Prices of rows that travel."""

from dataclasses import replace

import pytest

from federated_optimizer.costs.cost import NOTHING
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.shipments import shipment
from federated_optimizer.statistics.wires import DEFAULT_WIRES, Wires

SLOW = Estimate(rows=0.0, inserts=1.0, deletes=1.0, factor=2.0)


def test_slow_changes_travel_one_by_one() -> None:
    found = shipment(SLOW, 19.0, ("a", "b"), ("base",))
    assert found.messages == pytest.approx(2.0, rel=0.02)
    assert found.bytes == pytest.approx(2 * 20 + 2 * DEFAULT_WIRES.message_bytes, rel=0.02)
    assert (found.low, found.high) == (found.bytes / 2, found.bytes * 2)


def test_a_reading_in_the_place_of_another_one_is_one_message() -> None:
    replaced = Estimate(rows=0.0, inserts=1.0, deletes=1.0, replaced=1.0)
    assert shipment(replaced, 19.0, ("a",), ("base",)).messages == pytest.approx(1.0, rel=0.02)


def test_quick_changes_share_messages() -> None:
    quick = Estimate(rows=0.0, inserts=1e6, deletes=0.0)
    assert shipment(quick, 9.0, ("a",), ("base",)).messages == pytest.approx(50)


def test_what_comes_and_goes_between_two_messages_is_not_sent() -> None:
    width, messages = 9.0, 50
    one_row = Estimate(rows=1.0, inserts=5_000.0, deletes=5_000.0)
    least = messages * (2 * (width + 1) + DEFAULT_WIRES.message_bytes)
    assert least <= shipment(one_row, width, ("a",), ("base",)).bytes <= 2 * least
    many = Estimate(rows=1e6, inserts=5_000.0, deletes=5_000.0)
    assert shipment(many, width, ("a",), ("base",)).bytes >= 10_000 * (width + 1)
    growing = Estimate(rows=1.0, inserts=5_000.0, deletes=0.0)
    assert shipment(growing, width, ("a",), ("base",)).bytes >= 5_000 * (width + 1)


def test_what_stays_costs_nothing() -> None:
    assert shipment(SLOW, 19.0, ("a",), ("a",)) == NOTHING
    assert shipment(SLOW, 19.0, (), ("a",)) == NOTHING
    half = shipment(SLOW, 19.0, ("a", "b"), ("a", "b"))
    assert half.bytes == pytest.approx(shipment(SLOW, 19.0, ("a", "b"), ("c",)).bytes / 2)


def test_energy_is_bytes_times_hops_and_the_longest_way_takes_the_time() -> None:
    wires = Wires(hop_energy=3.0, hop_milliseconds=5.0, hops={("a", "base"): 4, ("base", "b"): 2})
    found = shipment(SLOW, 19.0, ("a", "b"), ("base",), wires)
    near = shipment(SLOW, 19.0, ("a", "b"), ("base",))
    assert found.bytes == near.bytes, "what is sent does not depend on the way"
    assert found.energy == pytest.approx(found.bytes * 3 * 3.0)
    assert found.milliseconds - 20 == pytest.approx(4 * 5.0)
    assert near.energy == pytest.approx(near.bytes)


def test_what_stays_where_it_is_makes_no_hop() -> None:
    wires = Wires(hops={("a", "b"): 10.0})
    assert shipment(SLOW, 19.0, ("a", "b"), ("a", "b"), wires).energy == pytest.approx(
        10 * shipment(SLOW, 19.0, ("a", "b"), ("a", "b")).energy
    )


def test_rows_that_one_reading_brings_travel_in_one_message() -> None:
    alone = Estimate(rows=24.0, inserts=12.0, deletes=12.0)
    together = replace(alone, bunched=24.0)
    one, many = (shipment(each, 10.0, ("a",), ("b",)) for each in (together, alone))
    assert one.messages == pytest.approx(1.0, rel=0.05)
    assert many.messages > 15 * one.messages
    assert many.bytes - one.bytes == pytest.approx(
        (many.messages - one.messages) * DEFAULT_WIRES.message_bytes, rel=0.01
    )


def test_a_byte_of_rows_that_are_sent_anew_takes_less_processor_than_one_of_a_change() -> None:
    still = Estimate(rows=36_000.0, inserts=0.0, deletes=0.0)
    anew = shipment(still, 99.0, ("a",), ("base",))
    assert anew.bytes == pytest.approx(1_000.0)
    assert anew.cpu == pytest.approx(1_000.0 * 0.1 * DEFAULT_WIRES.byte_nanoseconds / 1e6)
    moving = shipment(Estimate(rows=0.0, inserts=5.0, deletes=0.0), 99.0, ("a",), ("base",))
    fixed = DEFAULT_WIRES.message_microseconds + DEFAULT_WIRES.batch_microseconds
    bytes_alone = moving.cpu - moving.messages * fixed / 1_000
    assert bytes_alone == pytest.approx(moving.bytes * DEFAULT_WIRES.byte_nanoseconds / 1e6)
