"""Moves know how long both runs have held the same, and all that was sent for them."""

from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import begun_moves
from federated_optimizer.coordinator.adaptation.begun_moves import Move

NOW = 1_000_000_000


def move(**said: Any) -> Move:
    traffic = {"gw-1": SimpleNamespace(bytes=300), "gw-2": SimpleNamespace(bytes=40)}
    trial: Any = SimpleNamespace(flows=SimpleNamespace(traffic=lambda: traffic))
    planned: Any = None
    return Move(planned, trial, {}, **said)


def test_windows_are_filled_when_both_runs_were_beside_each_other_for_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(begun_moves, "monotonic_clock", lambda: NOW)
    assert move(fills=60).filled_for < 0, "they are not beside each other"
    assert move(beside=NOW - 59, fills=60).filled_for == -1
    assert move(beside=NOW - 60, fills=60).filled_for == 0
    assert move(beside=NOW - 100).filled_for == 100


def test_bundles_count_to_what_was_sent() -> None:
    assert move(published=5_000).filled == 5_340
