"""Pieces of the lake: every row once, in the order of event time, however they are cut."""

import random
from pathlib import Path

import pytest

from static_engine.filling import lake_pieces
from static_engine.filling.lake_pieces import LakePieces
from static_engine.lake.lake import Lake
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType
from streamsql.wire.fill_messages import Cursor, FillColumn, FillRow, FillWanted
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.streamsql.from_text import catalog_of

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOW = 20_600 * DAY
COLUMNS = (
    FillColumn("room", DataType.TEXT),
    FillColumn("level", DataType.INTEGER),
)


def noise() -> SourceDefinition:
    found = catalog_of("CREATE SOURCE noise (room TEXT, level INTEGER)").find("noise")
    assert isinstance(found, SourceDefinition)
    return found


def wanted(after: Cursor | None = None, **more: object) -> FillWanted:
    given: dict[str, object] = {"gateway": "", "since": NOW - 7 * DAY, **more}
    return FillWanted("f1", "q", "noise", COLUMNS, after=after, **given)  # type: ignore[arg-type]


def read(pieces: LakePieces, **more: object) -> list[FillRow]:
    """Return all rows, piece by piece."""
    rows: list[FillRow] = []
    after = None
    for _ in range(1_000):
        found = pieces.piece(wanted(after, **more))
        assert not found.problem
        rows += found.rows
        after = found.after
        if found.done:
            return rows
    raise AssertionError("it never ends")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, list[SourceEvent]]:
    """Two gateways, eight days, many readings of equal times."""
    folder: Path = tmp_path_factory.mktemp("lake")
    made = lake_in(folder)
    chance = random.Random(1)
    events: list[SourceEvent] = []
    for gateway in ("gw-1", "gw-2"):
        own = []
        for number in range(150):
            ts = NOW - chance.randrange(8 * 24) * 3_600 * SECOND
            own.append(SourceEvent((gateway, number), ts, delete=chance.random() < 0.1))
        keep(made, noise(), own, gateway=gateway)
        events += own
    return made, events


@pytest.mark.parametrize("rows", [9, 5_000])
@pytest.mark.parametrize("slices", [50, 10_000])
def test_every_row_of_the_interval_comes_once(
    lake: tuple[Lake, list[SourceEvent]], rows: int, slices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_pieces, "MAX_FILL_ROWS", rows)
    monkeypatch.setattr(lake_pieces, "_SLICE_ROWS", slices)
    made, events = lake
    found = read(LakePieces(made))
    times = [row.ts for row in found]
    assert times == sorted(times)
    expected = [e for e in events if e.ts >= NOW - 7 * DAY]
    as_events = [SourceEvent(row.row, row.ts, delete=row.withdrawn) for row in found]
    assert sorted(as_events, key=repr) == sorted(expected, key=repr)


def test_a_gateway_gets_its_own_readings(lake: tuple[Lake, list[SourceEvent]]) -> None:
    made, events = lake
    found = read(LakePieces(made), gateway="gw-2")
    own = [e for e in events if e.row[0] == "gw-2" and e.ts >= NOW - 7 * DAY]
    assert len(found) == len(own)
    assert {row.row[0] for row in found} == {"gw-2"}


def test_another_engine_goes_on_behind_any_row(lake: tuple[Lake, list[SourceEvent]]) -> None:
    made, _events = lake
    first = LakePieces(made)
    whole = read(first)
    piece = first.piece(wanted())
    middle = piece.rows[len(piece.rows) // 2]
    pack = piece.packs[middle.pack]
    rest = LakePieces(made).piece(wanted((middle.ts, *pack, 0)))
    assert [row.row for row in rest.rows] == [row.row for row in whole[len(whole) // 2 + 1 :]]


def test_packs_that_are_not_there_yet_are_waited_for(tmp_path: Path) -> None:
    made = lake_in(tmp_path)
    keep(made, noise(), [SourceEvent(("a", 1), NOW)], gateway="gw-1", first=4)
    pieces = LakePieces(made)
    packs = (("gw-1", 1, 4), ("gw-1", 1, 5))
    assert pieces.piece(wanted(awaited=packs, awaited_since=NOW)).missing == 1
    keep(made, noise(), [SourceEvent(("a", 2), NOW + 1)], gateway="gw-1", first=5)
    found = pieces.piece(wanted(awaited=packs, awaited_since=NOW))
    assert (len(found.rows), found.done, found.missing) == (2, True, 0)


def test_columns_that_were_never_kept_are_null_and_sources_empty(tmp_path: Path) -> None:
    made = lake_in(tmp_path)
    keep(made, noise(), [SourceEvent(("a", 1), NOW)])
    columns = (*COLUMNS, FillColumn("at", DataType.TIMESTAMP))
    (row,) = LakePieces(made).piece(FillWanted("f", "q", "noise", columns, "", 0)).rows
    assert row.row == ("a", 1, None)
    other = LakePieces(made).piece(FillWanted("f", "q", "heat", COLUMNS, "", 0))
    assert (other.rows, other.done, other.kept) == ((), True, False)
