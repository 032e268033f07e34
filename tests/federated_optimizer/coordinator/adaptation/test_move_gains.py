"""A move has to save more than it takes, and says both in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation.filled_runs import Alike
from federated_optimizer.coordinator.adaptation.move_gains import (
    HORIZON_SECONDS,
    why_not_worth,
    work_saved,
)
from federated_optimizer.coordinator.adaptation.over_others import Work

SAVED = 2.0


def found(filling: float) -> Any:
    return SimpleNamespace(before=object(), work=Work(before=5.0, after=3.0, filling=filling))


@pytest.mark.parametrize(("part", "is_worth"), [(0.99, True), (1.0, False), (2.0, False)])
def test_work_has_to_save_more_than_filling_takes(part: float, is_worth: bool) -> None:
    why = why_not_worth(found(SAVED * HORIZON_SECONDS * part), Alike(0))
    assert (why == "") == is_worth


def test_words_name_both_times() -> None:
    why = why_not_worth(found(5_000.0), Alike(0))
    assert why == "filling the other plan takes 5,000 ms of work; it saves 1,200 ms in 600 s"
    assert work_saved(found(0.0).work) == "it causes 5 ms of work a second, and 3 ms then"
    assert work_saved(Work(0.1234, 0.00987, 1.0)) == (
        "it causes 0.12 ms of work a second, and 0.0099 ms then"
    )
