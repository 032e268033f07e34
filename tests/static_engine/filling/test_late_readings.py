"""Late readings of the lake: those that the watermark of the engine has judged late."""

import random
from pathlib import Path

import pytest

from static_engine.filling import late_readings as judging
from static_engine.filling.lake_pieces import LakePieces
from static_engine.filling.late_readings import COLUMNS, late_readings
from static_engine.lake.lake_errors import LakeError
from stream_engine.state.watermark import Watermark
from streamsql.data.events import SourceEvent
from streamsql.data.types import LATEST
from tests.static_engine.filling.test_lake_pieces import NOW, SECOND, noise, read
from tests.static_engine.lake.lake_rows import keep, lake_in


def disordered(chance: random.Random, name: str, count: int) -> list[SourceEvent]:
    """Return readings as a gateway may have ingested them: many a little late, some very."""
    made, now = [], NOW - 3_000 * SECOND
    for number in range(count):
        now += chance.randrange(4) * SECOND
        late = chance.choice((0, 0, 0, 1, 5, 9, 10, 11, 40))
        gone = chance.random() < 0.1
        made.append(SourceEvent((name, number), now - late * SECOND, delete=gone))
    return made


@pytest.mark.parametrize("seed", range(8))
def test_a_window_is_filled_with_what_was_not_late(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lake, judged = lake_in(tmp_path), Watermark(10 * SECOND)
    lateness = 10 * SECOND
    whole = {name: disordered(chance, name, 120) for name in ("gw-1", "gw-2")}
    parts = [(name, 0, events[:70]) for name, events in whole.items()]
    parts += [(name, 70, events[70:]) for name, events in whole.items()]
    chance.shuffle(parts)  # they reach the lake in any order
    for name, first, events in parts:
        keep(lake, noise(), events, gateway=name, first=first)
    on_time = {name: judged.judge([(name, events)]).accepted for name, events in whole.items()}
    since = NOW - 2_900 * SECOND
    everybodys = [e for events in on_time.values() for e in events if e.ts >= since]
    pieces = LakePieces(lake)
    for gateway, expected in (
        ("gw-1", [e for e in on_time["gw-1"] if e.ts >= since]),
        ("", everybodys),
    ):
        found = read(pieces, gateway=gateway, since=since, lateness=lateness)
        as_events = [SourceEvent(row.row, row.ts, delete=row.withdrawn) for row in found]
        assert sorted(as_events, key=repr) == sorted(expected, key=repr)
        times = [row.ts for row in found]
        assert times == sorted(times)
    assert judged.late > 5


def test_without_readings_none_is_late(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, noise(), [SourceEvent(("a", 1), NOW)])
    scan = lake.plan("noise", NOW + SECOND, LATEST, COLUMNS)
    assert late_readings(scan, "", 0).num_rows == 0


def test_too_many_to_judge_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_in(tmp_path)
    keep(lake, noise(), [SourceEvent(("a", n), NOW + n) for n in range(5)])
    monkeypatch.setattr(judging, "MAX_JUDGED", 4)
    with pytest.raises(LakeError, match="more than 4 readings of a source with a watermark"):
        read(LakePieces(lake), lateness=SECOND)


def test_what_was_simulated_of_the_past_is_not_late_and_makes_nothing_late(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    past = [SourceEvent(("a", n), NOW - 5_000 * SECOND - n * 60 * SECOND) for n in range(3)]
    keep(lake, noise(), [SourceEvent(("a", 10), NOW + SECOND), *past], epoch=0)
    keep(lake, noise(), [SourceEvent(("a", 11), NOW - 100 * SECOND)])
    found = read(LakePieces(lake), since=NOW - 10_000 * SECOND, lateness=SECOND)
    assert len(found) == 5
    assert {row.row[1] for row in found} == {0, 1, 2, 10, 11}
