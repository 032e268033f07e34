"""Moves of queries that are never at rest cost the coordinator a part of its time only."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import moves
from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.adaptation.moves import Moves

COMPARING = 30_000
"""Microseconds that a comparison of many rows takes here."""


def test_many_rows_are_compared_in_a_tenth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"now": 1_000_000}
    compared: list[int] = []

    def compare(_self: Moves, _move: Move) -> bool:
        compared.append(clock["now"])
        clock["now"] += COMPARING
        return False

    monkeypatch.setattr(moves, "monotonic_clock", lambda: clock["now"])
    monkeypatch.setattr(moves, "is_not_behind", lambda *_: True)
    monkeypatch.setattr(Moves, "why_not", lambda *_: "")
    monkeypatch.setattr(Moves, "watch", lambda *_: None)
    monkeypatch.setattr(Moves, "movers", lambda *_: [trial])
    monkeypatch.setattr(Moves, "_show_the_same", compare)
    shared: Any = SimpleNamespace(lock=asyncio.Lock(), presence=SimpleNamespace(taken_over=False))
    nodes = SimpleNamespace(left_by=lambda _queries: ())
    queries: Any = SimpleNamespace(owed=SimpleNamespace(is_owed=False), nodes=nodes)
    trial: Any = SimpleNamespace(has_all_sources=lambda: True)
    planned: Any = None
    moving = Moves(shared, queries)
    move = Move(planned, trial, {}, began=0, may_be_busy=True, beside=0)
    end = clock["now"] + 3_000_000
    while clock["now"] < end:
        moving.counts_came([move])
        clock["now"] += 1_000  # counts come a thousand times a second
    assert 3_000_000 // (10 * COMPARING) - 1 <= len(compared) <= 3_000_000 // (10 * COMPARING) + 1
    assert not move.moved
