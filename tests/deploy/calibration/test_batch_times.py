"""Constants of batches, of few rounds."""

import pytest

from deploy.calibration import batch_times
from deploy.calibration.batch_times import BatchTimes
from federated_optimizer.statistics.calibrated_constants import refused


def test_batches_and_bytes_are_priced_in_the_form_that_travels() -> None:
    times = BatchTimes()
    for _ in range(4):
        times.round()
    batch, size = times.measurements([2.0] * 3)
    dear, _ = times.measurements([3.0] * 3)
    assert dear.value == pytest.approx(batch.value - 1.0)
    assert (batch.name, size.name) == ("batch_microseconds", "byte_nanoseconds")
    for each in (batch, size):
        assert each.rounds == 3
        assert refused(each.name, "", each.value, each.low, each.high) == ""
    sent = times._run.batches
    assert sent == 4 * (2 * batch_times.BATCHES + batch_times.MORE_BATCHES)
