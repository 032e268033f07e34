"""Pieces of the lake: every row once, in the order of event time, however they are cut."""

import random
from pathlib import Path

import pytest

from static_engine.filling import lake_pieces
from static_engine.filling.lake_pieces import LakePieces
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import LakeError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import EARLIEST, LATEST, DataType
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


def test_who_awaits_many_packs_or_early_readings_reads_no_more(tmp_path: Path) -> None:
    made = lake_in(tmp_path)
    first = 0
    for n in range(20):
        first = keep(made, noise(), [SourceEvent(("a", n), NOW + n)], first=first)
    for path in list(made.table("noise").scan("_seq < 18").plan_files()):
        Path(path.file.file_path.removeprefix("file://")).unlink()  # nobody may read them
    packs = (("gw-1", 1, 18), ("gw-1", 1, 25))
    assert LakePieces(made).piece(wanted(awaited=packs, awaited_since=EARLIEST)).missing == 1
    with pytest.raises(LakeError, match="300 packs are awaited; the max is 256"):
        LakePieces(made).piece(wanted(awaited=packs * 150))


def test_columns_that_were_never_kept_are_null_and_sources_empty(tmp_path: Path) -> None:
    made = lake_in(tmp_path)
    keep(made, noise(), [SourceEvent(("a", 1), NOW)])
    columns = (*COLUMNS, FillColumn("at", DataType.TIMESTAMP))
    (row,) = LakePieces(made).piece(FillWanted("f", "q", "noise", columns, "", 0)).rows
    assert row.row == ("a", 1, None)
    other = LakePieces(made).piece(FillWanted("f", "q", "heat", COLUMNS, "", 0))
    assert (other.rows, other.done, other.kept) == ((), True, False)


def test_a_piece_whose_answer_is_lost_comes_again(
    lake: tuple[Lake, list[SourceEvent]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_pieces, "MAX_FILL_ROWS", 20)
    made, _events = lake
    pieces = LakePieces(made)
    first = pieces.piece(wanted())
    assert pieces.piece(wanted()) == first
    second = pieces.piece(wanted(first.after))
    assert pieces.piece(wanted(first.after)) == second
    assert pieces.piece(wanted()) == first
    assert pieces.piece(wanted(first.after)).rows[0] != first.rows[0]


def test_who_gives_a_request_the_name_of_another_gets_nothing_of_it(
    lake: tuple[Lake, list[SourceEvent]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_pieces, "MAX_FILL_ROWS", 20)
    made, _events = lake
    pieces = LakePieces(made)
    after = pieces.piece(wanted(gateway="gw-1")).after
    found = pieces.piece(wanted(after, gateway="gw-2"))
    assert {row.row[0] for row in found.rows} == {"gw-2"}


def test_readings_of_a_clock_that_is_ahead_are_read_in_slices_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_pieces, "_SLICE_ROWS", 40)
    made = lake_in(tmp_path)
    year = 366 * DAY
    times = [NOW + n * SECOND for n in range(300)] + [NOW + year + n for n in range(300)]
    times += [EARLIEST, LATEST - 1]
    first = 0
    for n in range(0, len(times), 30):
        events = [SourceEvent((f"r{ts}", 1), ts) for ts in times[n : n + 30]]
        first = keep(made, noise(), events, first=first)
    read_rows: list[int] = []
    original = LakePieces._read

    def counted(self: LakePieces, *arguments: object) -> object:
        table = original(self, *arguments)  # type: ignore[arg-type]
        read_rows.append(0 if table is None else table.num_rows)
        return table

    monkeypatch.setattr(LakePieces, "_read", counted)
    found = read(LakePieces(made), since=EARLIEST)
    assert [row.ts for row in found] == sorted(times)
    assert max(read_rows) <= 80
    assert len(read_rows) < 200


def test_more_readings_of_one_time_than_fit_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lake_in(tmp_path)
    keep(made, noise(), [SourceEvent((f"r{n}", 1), NOW) for n in range(30)])
    assert len(read(LakePieces(made))) == 30
    monkeypatch.setattr(lake_pieces, "_SLICE_ROWS", 10)
    with pytest.raises(LakeError, match="more than 20 readings of one microsecond"):
        LakePieces(made).piece(wanted())


def test_long_texts_make_short_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_pieces, "_MAX_BYTES", 20_000)
    made = lake_in(tmp_path)
    keep(made, noise(), [SourceEvent(("x" * 4_000, n), NOW + n) for n in range(20)])
    assert len(read(LakePieces(made))) == 20
    assert len(LakePieces(made).piece(wanted()).rows) == 4


def test_too_many_columns_are_refused(lake: tuple[Lake, list[SourceEvent]]) -> None:
    many = FillWanted("f", "q", "noise", COLUMNS * 1_001, "", 0)
    with pytest.raises(LakeError, match="2,002 columns"):
        LakePieces(lake[0]).piece(many)
