"""Moves that let gateways send, those that wait for windows, and those at the base have bounds."""

from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import moves_under_way
from federated_optimizer.coordinator.adaptation.filled_runs import Alike
from federated_optimizer.coordinator.adaptation.moves_under_way import (
    MOST_AT_BASE,
    MOST_MOVES,
    MovesUnderWay,
)
from streamsql.algebra.operators import RemoteSource
from streamsql.data.schema import Schema
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

EMPTY = Schema(())
RESULT = Fragment("f0", Engine.BASE, RemoteSource("f1", EMPTY), ("base",))
LEAF = Fragment("f1", Engine.GATEWAY, RemoteSource("", EMPTY), ("gw",), "f0", ("base",))
SENDS = FragmentBundle("q1", 1, (RESULT, LEAF), EMPTY, "")
AT_BASE = FragmentBundle("q2", 1, (RESULT, LEAF), EMPTY, "", feeds=(Feed("f1", "q1", 1, "f1"),))
WINDOWS = FragmentBundle("q3", 1, (RESULT, LEAF), EMPTY, "windows")
KINDS = {"sends": SENDS, "at base": AT_BASE, "windows": WINDOWS}
BOUNDS = {"sends": MOST_MOVES, "at base": MOST_AT_BASE, "windows": MOST_MOVES}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_bound_of_its_own(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        moves_under_way, "when_alike", lambda bundle: Alike(60 if bundle.text == "windows" else 0)
    )
    none: Any = SimpleNamespace(decisions=None)
    moving = MovesUnderWay(none, none, none, {}, lambda: 0)
    said: Any = moving
    for number in range(BOUNDS[kind]):
        assert moving.has_room(KINDS[kind])
        said._moving[number] = SimpleNamespace(trial=SimpleNamespace(bundle=KINDS[kind]))
    assert not moving.has_room(KINDS[kind])
    assert all(moving.has_room(bundle) for name, bundle in KINDS.items() if name != kind)


def test_more_may_move_where_gateways_send_nothing() -> None:
    assert MOST_AT_BASE > MOST_MOVES
