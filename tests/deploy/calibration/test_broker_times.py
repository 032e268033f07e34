"""A message over a broker of our own."""

import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from deploy.calibration import broker_times as module
from deploy.calibration.broker_times import broker_times
from federated_optimizer.statistics.calibrated_constants import refused
from streamsql.errors import DeploymentError


@pytest.mark.broker
def test_hops_and_messages_are_measured_and_the_broker_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    found = {each.name: each for each in broker_times(2)}
    assert set(found) == {"message_microseconds", "hop_milliseconds"}
    for name, each in found.items():
        assert refused(name, "", each.value, each.low, each.high) == ""
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_ends_at_once_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = "import sys; sys.exit('no room for a broker here')"
    monkeypatch.setattr(module, "broker_command", lambda *_: [sys.executable, "-c", script])
    with pytest.raises(DeploymentError, match="did not start: no room for a broker here"):
        list(broker_times(2))
