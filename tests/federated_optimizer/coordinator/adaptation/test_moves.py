"""Moves cost the coordinator a part of its time only, and end with its charge."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import moves
from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.adaptation.moves import Moves
from federated_optimizer.coordinator.shared_parts import SharedParts
from streamsql.errors import DeploymentError

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


def test_who_was_taken_over_gives_no_move_up() -> None:
    async def scenario() -> None:
        done: list[str] = []

        def check_in_charge() -> None:
            if done:  # it is heard of while the former queries are stored
                raise DeploymentError("another coordinator took over this federation")

        trial: Any = SimpleNamespace(bundle=None)
        runs = SimpleNamespace(tried=lambda: [trial], end_trial=lambda _trial: None)
        shared: Any = SimpleNamespace(
            lock=asyncio.Lock(),
            presence=SimpleNamespace(check_in_charge=check_in_charge),
            store=SimpleNamespace(put_runs=lambda _changes: done.append("stored")),
        )
        shared.changing = lambda: SharedParts.changing(shared)
        mover: Any = SimpleNamespace(
            id="q1", name="q1", text="", origin="user", created=0, bundle=None, problems={}
        )
        mover.logical, mover.gathered, mover.alone = None, True, True
        queries: Any = SimpleNamespace(
            runs=runs, all=lambda: [mover], withdraw_unread=lambda _: done.append("withdrawn")
        )
        shared.settings = SimpleNamespace(host="coordinator")
        planned: Any = None
        move = Move(planned, trial, {"q1": mover.bundle}, began=0, stored=True)
        await Moves(shared, queries).give_up(move)
        assert done == ["withdrawn", "stored"], "in one turn"
        with pytest.raises(DeploymentError, match="took over"):
            await Moves(shared, queries).give_up(move)
        assert done == ["withdrawn", "stored"], "nothing is withdrawn or stored again"

    asyncio.run(scenario())
