"""Constants of further rows, of few rounds: what a step of many takes beyond one of few."""

import pytest

from deploy.calibration import bunch_times
from deploy.calibration.bunch_times import FEW, MANY, BunchTimes
from deploy.calibration.workloads import GROUPS, JOIN, PASSED, PLAIN, SILENT
from federated_optimizer.statistics.calibrated_constants import OF_OPERATORS
from tests.deploy.calibration.test_operator_times import FURTHER


@pytest.fixture(scope="module")
def times() -> BunchTimes:
    found = BunchTimes()
    for _ in range(4):
        found.round()
    return found


def test_there_is_a_constant_of_further_rows(times: BunchTimes) -> None:
    found = {each.name: each for each in times.measurements()}
    assert set(found) == FURTHER < set(OF_OPERATORS)
    for each in found.values():
        assert each.low <= each.value <= each.high
        assert each.rounds == 3  # the first one warms up
    assert 0 < found["lookup_microseconds"].value < OF_OPERATORS["join_microseconds"].value


def test_a_further_row_is_what_a_step_of_many_takes_beyond_one_of_few(
    times: BunchTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    further = {SILENT: 0.0, PLAIN: 1.0, JOIN: 4.0, **dict.fromkeys(PASSED.values(), 1.5)}
    rounds = {
        (workload, size): [20.0 + size * further.get(workload, 3.0)] * 4
        for workload, size in times._rounds
    }
    sent = {(w, size): 2.0 if w in GROUPS.values() else size for w, size in rounds}
    monkeypatch.setattr(times, "_rounds", rounds)
    monkeypatch.setattr(times, "_sent", sent)
    monkeypatch.setattr(times, "_lookups", [9.0, 0.5, 0.25, 0.5])
    found = {each.name: each.value for each in times.measurements()}
    assert found["filter_row_microseconds"] == pytest.approx(0.5)
    assert found["join_row_microseconds"] == pytest.approx(3.0)
    assert found["group_row_microseconds"] == pytest.approx(3.0), "groups send two rows each time"
    assert found["lookup_microseconds"] == 0.5


def test_a_step_has_so_many_devices_and_changes_a_row_of_each(times: BunchTimes) -> None:
    for size in (FEW, MANY):
        events = bunch_times._distinct(times._runs[PLAIN], size)
        assert len({event.row[0] for event in events}) == size
        assert times._sent[PLAIN, size] == 2 * size
        assert times._sent[SILENT, size] == 0
