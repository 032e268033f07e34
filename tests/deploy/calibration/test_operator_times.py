"""Constants of operators, of few rounds: all of them, with units that can be."""

import pytest

from deploy.calibration import workloads
from deploy.calibration.operator_times import OperatorTimes
from federated_optimizer.statistics.calibrated_constants import OF_OPERATORS

FURTHER = {
    "filter_row_microseconds",
    "lookup_microseconds",
    "join_row_microseconds",
    "group_row_microseconds",
}


@pytest.fixture(scope="module")
def times() -> OperatorTimes:
    found = OperatorTimes()
    for _ in range(4):
        found.round()
    return found


def test_there_is_a_constant_for_each_kind_of_operator(times: OperatorTimes) -> None:
    found = {each.name: each for each in times.measurements()}
    assert set(found) == {name for name in OF_OPERATORS if name not in FURTHER}
    for each in found.values():
        assert each.low <= each.value <= each.high
        assert each.rounds == 3  # the first one warms up


def test_an_operator_is_what_its_query_takes_beyond_one_without_it(
    times: OperatorTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    micros = {
        workloads.SILENT: 20.0,
        workloads.PLAIN: 30.0,
        workloads.LOG: 40.0,
        workloads.WINDOW: 46.0,
        workloads.JOIN: 37.0,
        **dict.fromkeys(workloads.NOTHING.values(), 5.0),
    }
    rounds = {workload: [micros.get(workload, 34.0)] * 4 for workload in times._runs}
    monkeypatch.setattr(times, "_rounds", rounds)
    found = {each.name: each.value for each in times.measurements()}
    assert found["step_microseconds"] == 15.0
    assert times.silent() == [20.0] * 3
    assert found["filter_microseconds"] == 4.0
    assert found["window_microseconds"] == 3.0  # a row comes and goes
    assert found["join_microseconds"] == 7.0
    # 34 - 5 - 15 for the step leaves 14, and a batch takes 10 in the steps that make one.
    assert 14.0 - 10.0 <= found["group_microseconds"] <= 14.0
