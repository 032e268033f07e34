"""Constants that can be calibrated."""

from math import inf, nan

import pytest

from federated_optimizer.statistics.calibrated_constants import (
    BEYOND,
    CONSTANTS,
    PLACES,
    WORDS,
    calibrated,
    constant_of,
    refused,
)
from federated_optimizer.statistics.default_facts import DEFAULTS
from federated_optimizer.statistics.fact import DAY, Origin
from federated_optimizer.statistics.fact_store import Facts


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_default_is_a_possible_measurement_and_one_of_the_listed_costs(name: str) -> None:
    default = CONSTANTS[name]
    assert refused(name, "", default.value, default.low, default.high) == ""
    assert default in DEFAULTS
    assert default.low <= default.value <= default.high


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("number", [-1.0, 0.0, nan, inf, -inf, 1e300])
def test_nonsense_is_refused_wherever_it_stands(name: str, number: float) -> None:
    good = CONSTANTS[name].value
    for numbers in ((number, good, good), (good, number, good), (good, good, number)):
        assert refused(name, "", *numbers).startswith(f"{name} is from ")


def test_a_range_must_hold_its_value_and_a_name_be_known() -> None:
    high = CONSTANTS["join_bytes"].high
    assert refused("join_bytes", "", 10 * high, 10 * high, BEYOND * high) == ""
    assert "is not from" in refused("join_bytes", "", 300.0, 400.0, 500.0)
    assert refused("hop_energy", "", 1.0, 1.0, 1.0) == (
        "'hop_energy' is no constant that can be calibrated"
    )
    assert "no value of its own" in refused("join_bytes", "gateways", 100.0, 100.0, 100.0)
    assert "no value of its own" in refused("join_microseconds", "cellar", 3.0, 3.0, 3.0)
    assert refused("join_microseconds", "gateways", 3.0, 3.0, 3.0) == ""


def test_a_constant_of_some_sites_goes_before_that_of_all_and_that_before_the_default() -> None:
    facts = Facts()
    assert constant_of(facts, "step_microseconds", "base") == CONSTANTS["step_microseconds"].value
    facts.put(calibrated("step_microseconds", "", 20.0, 19.0, 25.0, 9, 7))
    facts.put(calibrated("step_microseconds", "gateways", 90.0, 80.0, 95.0, 9, 7))
    found = {place: constant_of(facts, "step_microseconds", place) for place in PLACES}
    assert found == {"": 20.0, "gateways": 90.0, "base": 20.0}


def test_a_constant_is_surer_with_more_rounds_and_when_they_are_close_together() -> None:
    def sure(low: float, high: float, rounds: int) -> float:
        return calibrated("join_microseconds", "", 5.0, low, high, rounds, 7).confidence

    by_rounds = [sure(4.0, 6.0, rounds) for rounds in (1, 2, 5, 60, 10_000)]
    by_spread = [sure(5.0 - off, 5.0 + off, 9) for off in (4.9, 2.0, 0.5, 0.0)]
    for rising in (by_rounds, by_spread):
        assert rising == sorted(set(rising))
        assert 0.0 < rising[0] < 0.55
        assert 0.8 < rising[-1] <= 0.9
    assert sure(5.0, 5.0, 1) < 0.5, "one round shows no spread"


def test_calibrated_constants_are_facts_with_words_that_outlive_others() -> None:
    facts = Facts([calibrated("hop_milliseconds", "", 1.5, 1.0, 4.0, 9, 7)])
    (fact,) = facts
    assert str(fact.origin) == str(Origin.CALIBRATED) == "calibrated"
    assert WORDS[fact.key] == "milliseconds from a site to the next"
    facts.discard_old(400 * DAY)
    assert list(facts) == [fact]
    assert len(set(WORDS.values())) == len(WORDS)
