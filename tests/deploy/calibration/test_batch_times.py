"""Constants of batches, of few rounds."""

from deploy.calibration import batch_times
from deploy.calibration.batch_times import BatchTimes
from federated_optimizer.statistics.calibrated_constants import refused


def test_batches_and_bytes_are_priced_in_the_form_that_travels() -> None:
    times = BatchTimes()
    for _ in range(4):
        times.round()
    batch, size = times.measurements([100.0] * 3)
    assert (batch.name, size.name) == ("batch_microseconds", "byte_nanoseconds")
    for each in (batch, size):
        assert each.rounds == 3
        assert refused(each.name, "", each.value, each.low, each.high) == ""
    assert batch.value > 100.0  # what the sender takes to make it is in it
    sent = times._run.batches
    assert sent == 4 * (batch_times.BATCHES + batch_times.LARGE_BATCHES)
