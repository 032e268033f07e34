"""A move has to save more than it takes, and says both in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation.bundle_choice import Work
from federated_optimizer.coordinator.adaptation.filled_runs import Alike
from federated_optimizer.coordinator.adaptation.move_gains import (
    HORIZON_SECONDS,
    why_not_worth,
    work_saved,
)
from federated_optimizer.costs.effort import Effort

BEFORE = Effort(milliseconds=4.0, kept=400_000.0, value=5.0)
AFTER = Effort(milliseconds=2.5, kept=20_000.0, value=3.0)
SAVED = 2.0


def found(filling: float) -> Any:
    return SimpleNamespace(before=object(), work=Work(before=BEFORE, after=AFTER, filling=filling))


@pytest.mark.parametrize(("part", "is_worth"), [(0.99, True), (1.0, False), (2.0, False)])
def test_work_has_to_save_more_than_filling_takes(part: float, is_worth: bool) -> None:
    why = why_not_worth(found(SAVED * HORIZON_SECONDS * part), Alike(0))
    assert (why == "") == is_worth


def test_words_name_both_times() -> None:
    why = why_not_worth(found(5_000.0), Alike(0))
    assert why == (
        "filling the other plan takes 5,000 ms of work; it saves 1,200 ms in 600 s, "
        "kept rows counted as work"
    )
    assert work_saved(found(0.0).work) == (
        "it causes 4 ms of work a second and 400 kB of kept rows, "
        "and 2.5 ms of work a second and 20 kB of kept rows then"
    )
    little, much = Effort(0.1234, 45.0, 0.2), Effort(0.00987, 12_345_678.0, 9.0)
    assert work_saved(Work(little, much, 1.0)) == (
        "it causes 0.12 ms of work a second and 0.045 kB of kept rows, "
        "and 0.0099 ms of work a second and 12 MB of kept rows then"
    )
