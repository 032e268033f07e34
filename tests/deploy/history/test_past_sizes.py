"""EXPLAIN says of the past how much is read, before it is."""

from pathlib import Path

from deploy.history.past_sizes import sizes_in
from static_engine.lake.kept_columns import PROPERTY
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.history.past_plans import fixed
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.streamsql.from_text import bound_query, catalog_of

DAY = 86_400_000_000
NOON = 20_000 * DAY + DAY // 2
CATALOG = catalog_of(
    "CREATE SOURCE climate (room TEXT, celsius DOUBLE, ts TIMESTAMP);"
    "CREATE SOURCE door (room TEXT, ts TIMESTAMP)"
)


def sizes(folder: Path, text: str) -> list[str]:
    lake = lake_in(folder)
    climate = CATALOG.find("climate")
    assert isinstance(climate, SourceDefinition)
    times = [NOON - number * DAY for number in range(3)]
    keep(lake, climate, [SourceEvent(("r1", 20.0, ts), ts) for ts in times])
    plan = fixed(bound_query(text, CATALOG).plan, NOON)
    return list(map(str, sizes_in(lake.settings, plan)))


def test_only_the_days_of_an_interval_are_read(tmp_path: Path) -> None:
    (whole,) = sizes(tmp_path / "a", "SELECT room FROM climate FOR SYSTEM_TIME ALL")
    assert whole.startswith("reads the past of climate ALL: at most 3 rows, ")
    assert whole.endswith(" bytes of 3 files")
    (day,) = sizes(
        tmp_path / "b", "SELECT room FROM climate FOR SYSTEM_TIME FROM NOW - INTERVAL '1 h' TO NOW"
    )
    assert "FROM TIMESTAMP '2024-10-04T11:00:00Z' TO TIMESTAMP '2024-10-04T12:00:00Z'" in day
    assert day.endswith(": no files")


def test_a_source_without_a_reading_has_no_files(tmp_path: Path) -> None:
    (text,) = sizes(tmp_path, "SELECT room FROM door FOR SYSTEM_TIME ALL")
    assert text == "reads the past of door ALL: no files"


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    door = CATALOG.find("door")
    assert isinstance(door, SourceDefinition)
    keep(lake, door, [SourceEvent(("r1", NOON), NOON)])
    with lake.table("door").transaction() as change:
        change.set_properties({PROPERTY: "no columns"})
    (text,) = sizes(tmp_path, "SELECT room FROM door FOR SYSTEM_TIME ALL")
    assert text.startswith("cannot read the past of door ALL: ")
