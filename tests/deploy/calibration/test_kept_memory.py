"""Bytes of what operators keep."""

import gc
import tracemalloc

from deploy.calibration.kept_memory import kept_bytes
from federated_optimizer.statistics.calibrated_constants import CONSTANTS, refused


def test_a_row_or_group_takes_bytes_that_do_not_depend_much_on_how_many_there_are() -> None:
    frozen = gc.get_freeze_count()
    found = {each.name: each for each in kept_bytes((300, 900))}
    assert set(found) == {name for name in CONSTANTS if name.endswith("_bytes")}
    for name, each in found.items():
        assert refused(name, "", each.value, each.low, each.high) == ""
        assert each.high <= 2.5 * each.low, each
    # A group has counters of its own; a row in a join is known to the source already.
    assert found["group_bytes"].value > found["join_bytes"].value
    assert not tracemalloc.is_tracing()
    after = gc.get_freeze_count()
    assert after <= frozen, "nothing more is frozen than before"
    assert bool(after) == bool(frozen), "what others have frozen stays so"
