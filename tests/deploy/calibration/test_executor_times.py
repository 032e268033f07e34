"""The local executor's constants."""

import tempfile
from pathlib import Path

import pytest

from deploy.calibration.executor_times import executor_times
from federated_optimizer.statistics.calibrated_constants import refused


def test_floor_and_speed_are_measured_and_no_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = {each.name: each for each in executor_times(2)}
    assert set(found) == {"local_floor", "local_rows"}
    for name, each in found.items():
        assert refused(name, "", each.value, each.low, each.high) == ""
    assert list(tmp_path.iterdir()) == []
