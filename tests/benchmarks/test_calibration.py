"""The benchmark of calibrated constants: what is counted, what is estimated, how they compare."""

from dataclasses import replace

import pytest

from benchmarks._calibration.estimated_plans import (
    DEFAULTS,
    GUESSED,
    constants_of,
    estimated,
)
from benchmarks._calibration.measured_plans import processor_times
from benchmarks._optimizer.worlds import World
from benchmarks.calibration import Measured, figures, plans_of, prepared, questions, times_off
from federated_optimizer.search.choosing import PUSHED, Search
from federated_optimizer.statistics.calibrated_constants import CONSTANTS
from federated_optimizer.statistics.wires import DEFAULT_WIRES


@pytest.fixture(scope="module")
def found() -> Measured:
    (open_rooms,) = [each for each in questions(quick=False) if each.name == "open rooms"]
    short: World = replace(open_rooms.world, warm=15.0, seconds=15.0)
    return prepared(replace(open_rooms, world=short))


def test_all_queries_of_the_building_are_asked_with_both_ends_of_their_plans(
    found: Measured,
) -> None:
    names = [each.name for each in questions(quick=False)]
    assert len(names) == len(set(names)) >= 25
    assert any("reach" in name for name in names)
    assert PUSHED in found.bundles
    search = Search(found.ready, found.topology, found.known)
    assert search.memo.shipping in found.bundles


def test_what_a_query_takes_goes_beyond_what_its_sites_take_anyway(found: Measured) -> None:
    world = found.question.world
    idle = processor_times(world, None, found.readings)
    shipping = max(found.bundles)
    used = processor_times(world, found.bundles[shipping], found.readings)
    assert idle[0] > 0.0
    assert idle[1] == 0.0 or idle[1] < idle[0]  # nothing is read at the base
    assert used[0] > idle[0]
    assert used[1] > idle[1]


def test_the_parts_of_an_estimate_are_those_of_the_optimizer(found: Measured) -> None:
    facts = replace(found.known, wires=replace(DEFAULT_WIRES, message_microseconds=0.0))
    for number in found.bundles:
        whole = Search(found.ready, found.topology, facts).plan(number).cost.cpu
        parts = estimated(found.ready, found.topology, found.known, number, DEFAULTS)
        assert sum(parts) == pytest.approx(whole)
        assert min(parts) > 0.0


def test_constants_are_those_of_a_calibration_by_name() -> None:
    defaults = {name: default.value for name, default in CONSTANTS.items()}
    assert constants_of(defaults) == DEFAULTS
    assert constants_of({**defaults, "join_microseconds": 1.5}).micros.join == 1.5
    assert GUESSED.micros.step == 0.0


def test_ranks_errors_and_regret_are_told() -> None:
    points = [
        {"query": query, "plan": plan, "where": where, "measured": took, "good": estimate}
        for query, plan, where, took, estimate in (
            ("a", 1, "gateways", 0.1, 0.1),
            ("a", 1, "base", 0.2, 0.2),
            ("a", 2, "gateways", 0.3, 0.6),
            ("a", 2, "base", 0.4, 0.01),
            ("b", 1, "gateways", 0.5, 0.7),
            ("b", 1, "base", 0.0, 0.0),
            ("b", 2, "gateways", 0.19, 0.9),
            ("b", 2, "base", 0.0, 0.0),
        )
    ]
    told = figures(points, "good")
    # By hand: gateways 0.1, 0.3, 0.5, 0.19 against 0.1, 0.6, 0.7, 0.9 rank as 1342 and 1234.
    assert told["gateways"]["points"] == 4
    assert told["gateways"]["spearman"] == pytest.approx(0.4)
    assert told["base"]["times off: most"] == pytest.approx(20.5)
    wholes = plans_of(points, "good")
    assert [round(each["measured"], 2) for each in wholes] == [0.3, 0.7, 0.5, 0.19]
    # Of `a` the best one is taken, of `b` the other one: (0.5 + 0.01) / (0.19 + 0.01).
    assert told["regret"] == {"queries": 2, "median": pytest.approx(1.77, abs=0.01), "worst": 2.55}
    assert times_off(0.0, 0.0) == 1.0
