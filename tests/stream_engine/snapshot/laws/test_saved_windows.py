"""Operators of shorter windows go on after they were made bytes and again operators."""

import random

import pytest

from stream_engine.operators.windows.window_bounds import WindowBoundsOperator
from stream_engine.operators.windows.younger import BOUNDS, ROWS, YoungerOperator
from stream_engine.snapshot.column_codec import pack, unpack
from stream_engine.snapshot.state_places import fill, places_of, read
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import (
    BOUNDS_COLUMNS,
    RemoteSource,
    Scan,
    SourceKind,
    WindowBounds,
    WindowKind,
    Younger,
)
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

COLUMNS = Schema.of(("k", DataType.INTEGER), ("ts", DataType.TIMESTAMP))
SOURCE = Scan("s", SourceKind.STREAM, COLUMNS, time_column=1, ttl=1_000)
YOUNGER = Younger(
    RemoteSource("f1", COLUMNS), RemoteSource("f2", BOUNDS_COLUMNS), 1, WindowKind.RANGE, 10
)


def again(operator: object, fresh: object) -> None:
    """Fill a fresh operator with the state of another one, over bytes."""
    places = places_of(fresh)
    fill(fresh, places, unpack(pack(read(operator, places))))


@pytest.mark.parametrize("slide", [None, 3])
def test_bounds_go_on(slide: int | None) -> None:
    plan = WindowBounds(SOURCE, WindowKind.RANGE, 10, slide)
    for seed in range(30):
        chance = random.Random(seed)
        kept, saved = WindowBoundsOperator(plan), WindowBoundsOperator(plan)
        now, told = 100, 0
        for step in range(30):
            now += chance.choice((0, 1, 5))
            changed = kept.advance(now)
            assert saved.advance(now) == changed
            ts = now + chance.randrange(-20, 5)
            delta: TimedDelta = {(ts, (step, ts)): 1}
            late = kept.apply_timed(delta)
            assert saved.apply_timed(delta) == late
            told += bool(changed) + bool(late)
            fresh = WindowBoundsOperator(plan)
            again(saved, fresh)
            saved = fresh
            assert saved.next_wakeup() == kept.next_wakeup()
        assert told > 2


def test_younger_rows_go_on() -> None:
    for seed in range(30):
        chance = random.Random(seed)
        kept, saved = YoungerOperator(YOUNGER), YoungerOperator(YOUNGER)
        low: dict[str, int] = {}
        changes = 0
        for step in range(40):
            site = chance.choice(("g1", "g2"))
            if chance.random() < 0.5:
                change: Delta = {(step, chance.randrange(40), site): 1}
                port = ROWS
            else:
                change = {(low[site], None, site): -1} if site in low else {}
                low[site] = low.get(site, 0) + chance.randrange(1, 4)
                change[low[site], None, site] = 1
                port = BOUNDS
            found = kept.apply(port, change)
            assert saved.apply(port, change) == found
            changes += bool(found)
            fresh = YoungerOperator(YOUNGER)
            again(saved, fresh)
            saved = fresh
        assert saved.state_rows() == kept.state_rows()
        assert changes > 3
