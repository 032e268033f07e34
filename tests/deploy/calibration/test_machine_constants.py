"""All measurements together: order, time, what is left out."""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.calibration import machine_constants as module
from deploy.calibration.machine_constants import Calibration, calibrate
from deploy.calibration.rounds import LEAST, Measurement
from federated_optimizer.statistics.calibrated_constants import CONSTANTS, OF_OPERATORS
from streamsql.errors import DeploymentError


def usual(name: str) -> Measurement:
    default = CONSTANTS[name]
    return Measurement(name, default.value, default.low, default.high, 9)


class FakeOperators:
    rounds = 0

    def round(self) -> None:
        FakeOperators.rounds += 1

    def measurements(self) -> Iterator[Measurement]:
        return map(usual, OF_OPERATORS)

    def silent(self) -> list[float]:
        return [10.0]


class FakeBunches:
    def round(self) -> None:
        """Measure nothing."""

    def measurements(self) -> Iterator[Measurement]:
        return (each for each in map(usual, OF_OPERATORS) if "_row_" in each.name)


class FakeBatches:
    def round(self) -> None:
        """Measure nothing."""

    def measurements(self, silent: list[float]) -> Iterator[Measurement]:
        assert silent == [10.0]
        return map(usual, ("batch_microseconds", "byte_nanoseconds"))


@pytest.fixture
def quick_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeOperators.rounds = 0
    sizes = [name for name in CONSTANTS if name.endswith("_bytes")]
    broker = ("message_microseconds", "hop_milliseconds")
    parts: dict[str, Any] = {
        "OperatorTimes": FakeOperators,
        "BunchTimes": FakeBunches,
        "BatchTimes": FakeBatches,
        "kept_bytes": lambda _sizes: map(usual, sizes),
        "broker_times": lambda _rounds: map(usual, broker),
        "executor_times": lambda _rounds: map(usual, ("local_floor", "local_rows")),
    }
    for name, part in parts.items():
        monkeypatch.setattr(module, name, part)


@pytest.mark.usefixtures("quick_parts")
def test_every_constant_is_measured_and_progress_is_told() -> None:
    told: list[tuple[str, float]] = []
    made = calibrate(lambda words, share: told.append((words, share)))
    assert set(made.measured) == set(CONSTANTS)
    assert made.notes == []
    assert told[-1] == ("done", 1.0)
    assert all(0.0 <= share <= 1.0 for _, share in told)
    assert FakeOperators.rounds == module.MOST_ROUNDS


@pytest.mark.usefixtures("quick_parts")
def test_rounds_end_when_most_of_the_time_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 10_000, 20))
    monkeypatch.setattr(
        "deploy.calibration.machine_constants.time.monotonic", lambda: float(next(moments))
    )
    made = calibrate(lambda _words, _share: None, quick=True)
    assert FakeOperators.rounds == LEAST + 2  # no fewer, however slow the machine is
    assert set(made.measured) == set(CONSTANTS)


@pytest.mark.usefixtures("quick_parts")
def test_only_operators_are_measured_for_some_sites() -> None:
    made = calibrate(lambda _words, _share: None, operators_only=True)
    assert set(made.measured) == set(OF_OPERATORS)


@pytest.mark.usefixtures("quick_parts")
def test_hops_of_a_running_federation_are_taken_where_there_is_one() -> None:
    made = calibrate(lambda _words, _share: None, hops=lambda: [3.0, 4.0, 5.0])
    assert made.measured["hop_milliseconds"].value == 4.0
    assert made.measured["message_microseconds"] == usual("message_microseconds")


@pytest.mark.usefixtures("quick_parts")
def test_what_cannot_be_measured_is_noted_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_rounds: int) -> Iterator[Measurement]:
        raise DeploymentError("a broker for the measurement did not start: full")

    def missing(_rounds: int) -> Iterator[Measurement]:
        raise ImportError("No module named 'pyarrow'")

    monkeypatch.setattr(module, "broker_times", broken)
    monkeypatch.setattr(module, "executor_times", missing)
    made = calibrate(lambda _words, _share: None)
    assert made.notes == [
        "a message over a broker: not measured: a broker for the measurement did not start: full",
        "the local executor of stored tables: not measured: No module named 'pyarrow'",
    ]
    gone = {"message_microseconds", "hop_milliseconds", "local_floor", "local_rows"}
    assert set(made.measured) == set(CONSTANTS) - gone


def test_a_number_that_cannot_be_is_left_out_and_a_spread_below_nothing_is_cut() -> None:
    made = Calibration()
    for value in (-0.5, 0.0, 1e12):
        made.take(Measurement("filter_microseconds", value, value, value, 9))
    assert made.measured == {}
    assert len(made.notes) == 3
    assert made.notes[0].startswith("filter_microseconds is left out: -0.5 is no possible number")
    made.take(Measurement("filter_microseconds", 0.8, -0.3, 1.5, 9))
    low = made.measured["filter_microseconds"].low
    assert low > 0
    assert made.notes[3:] == [
        "filter_microseconds: the low end of the spread was not measured: the first quartile, "
        f"-0.3, is no possible number, {low:g} is in its place"
    ]
    made.take(Measurement("filter_microseconds", 0.8, 0.3, 1.5, 9))
    assert len(made.notes) == 4
