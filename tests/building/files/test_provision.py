"""Provisioning writes files that say the same as the site, whole and the same each time."""

import csv
import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import recurring_ical_events
from icalendar import Calendar
from shapely import box
from shapely.geometry import shape

from building.files.provision import Processor, SitePaths, provision
from building.files.site_tables import COLUMNS
from building.furnishing.furnishing import furnish
from building.model.site_model import Level, Mote, SensorKind, Site, SiteError, Space, SpaceKind


@pytest.fixture(scope="module")
def paths(sample: Site, tmp_path_factory: pytest.TempPathFactory) -> SitePaths:
    folder = tmp_path_factory.mktemp("data")
    return provision(
        sample, folder, gateways=3, host="workstation", processor=Processor("Test CPU", 8)
    )


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def features(paths: SitePaths, feature_type: str) -> dict[str, dict[str, Any]]:
    document = json.loads(paths.site.read_text(encoding="utf-8"))
    return {
        f["id"]: f for f in document["features"] if f["properties"]["feature_type"] == feature_type
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_tables_have_the_promised_columns(paths: SitePaths) -> None:
    assert COLUMNS["routing"] == (
        *("src", "dst", "distance", "kind", "wheelchair"),
        *("room", "leaves"),
    )
    for name, path in paths.tables.items():
        header = path.read_text(encoding="utf-8").splitlines()[0]
        assert tuple(header.split(",")) == COLUMNS[name]


def test_rooms_and_machines_join_routing_points(sample: Site, paths: SitePaths) -> None:
    points = {row["src"] for row in rows(paths.tables["routing"])}
    rooms = {row["rid"]: row for row in rows(paths.tables["rooms"])}
    machines = {row["mid"]: row for row in rows(paths.tables["machines"])}
    assert set(rooms) == {space.id for space in sample.spaces}
    assert set(machines) == {machine.mid for machine in sample.machines}
    for row in [*rooms.values(), *machines.values(), *rows(paths.tables["rfid_detectors"])]:
        assert row["point"] in points
    assert {row["rid"] for row in machines.values()} <= set(rooms)
    assert rooms["L101"]["open_lab"] == "true"
    assert rooms["L202"]["open_lab"] == "false"


def test_example_14_has_an_answer(paths: SitePaths) -> None:
    """Machines with Word in an open lab exist in the tables the query joins."""
    with_word = {
        r["mid"] for r in rows(paths.tables["machine_software"]) if r["software"] == "Word"
    }
    open_labs = {r["rid"] for r in rows(paths.tables["rooms"]) if r["open_lab"] == "true"}
    machines = [r for r in rows(paths.tables["machines"]) if r["rid"] in open_labs]
    assert len([m for m in machines if m["mid"] in with_word]) > 10


def test_routing_goes_both_ways(sample: Site, paths: SitePaths) -> None:
    routing = {(r["src"], r["dst"]): r for r in rows(paths.tables["routing"])}
    assert len(routing) == 2 * len(sample.edges)
    for (src, dst), row in routing.items():
        back = routing[dst, src]
        for column in ("distance", "kind", "wheelchair", "room"):
            assert row[column] == back[column]
        assert float(row["distance"]) > 0


def test_this_computer_is_one_of_the_machines(paths: SitePaths) -> None:
    (row,) = (r for r in rows(paths.tables["machines"]) if r["mid"] == "this-machine")
    assert (row["host"], row["cpu"]) == ("workstation", "Test CPU")
    areas = [json.loads(path.read_text()) for path in paths.gateways.values()]
    soft = [sensor for area in areas for sensor in area["soft"]]
    assert [sensor["sensor"] for sensor in soft] == ["load-this-machine"]
    motes = [sensor["sensor"] for area in areas for sensor in area["motes"]]
    assert "load-this-machine" not in motes
    assert "seat-this-machine" in motes


def test_gateways_own_each_sensor_and_link_once(sample: Site, paths: SitePaths) -> None:
    areas = {gw: json.loads(path.read_text()) for gw, path in paths.gateways.items()}
    assert list(areas) == ["gw-1", "gw-2", "gw-3"]
    owner = {r["sensor"]: r["gateway"] for r in rows(paths.tables["sensors"])}
    listed = {s["sensor"]: gw for gw, a in areas.items() for s in a["motes"] + a["soft"]}
    assert listed == owner
    assert len(owner) == len(sample.sensors)
    room_owner = {room: gw for gw, area in areas.items() for room in area["rooms"]}
    assert set(room_owner) == {space.id for space in sample.spaces}
    peers = [(p["src"], p["dst"], gw) for gw, a in areas.items() for p in a["peers"]]
    ends = Counter((src, dst) for src, dst, _ in peers)
    assert set(ends.values()) == {1}
    assert all((dst, src) in ends for src, dst in ends)
    for src, _, gateway in peers:
        assert room_owner[src.removeprefix("m-")] == gateway
    for gateway, area in areas.items():
        for sensor in area["motes"]:
            assert room_owner[sensor["rid"]] == gateway


def test_the_map_round_trips(sample: Site, paths: SitePaths) -> None:
    spaces = features(paths, "space")
    assert set(spaces) == {space.id for space in sample.spaces}
    for space in sample.spaces:
        drawn = shape(spaces[space.id]["geometry"])
        assert drawn.symmetric_difference(space.polygon).area < 0.01
        properties = spaces[space.id]["properties"]
        assert (properties["level"], properties["kind"]) == (space.level, space.kind.value)
    machines = features(paths, "machine")
    for machine in sample.machines:
        properties = machines[machine.mid]["properties"]
        assert properties["room"] == machine.room
        assert properties["software"] == [package.name for package in machine.software]
        assert machines[machine.mid]["geometry"]["coordinates"] == [machine.x, machine.y]
    assert len(features(paths, "routing_point")) == len(sample.points)
    assert len(features(paths, "edge")) == len(sample.edges)
    assert len(features(paths, "door")) == len(sample.doors)
    assert len(features(paths, "sensor")) == len(sample.sensors)
    assert len(features(paths, "mote")) == len(sample.motes)


def test_the_map_says_what_the_place_is(paths: SitePaths) -> None:
    pando = json.loads(paths.site.read_text(encoding="utf-8"))["pando"]
    assert pando["name"] == "Sample building"
    assert [level["ordinal"] for level in pando["levels"]] == [0, 1, 2]
    assert pando["bounds"] == [[0.0, 0.0], [60.0, 32.0]]


def test_two_runs_are_byte_identical(sample: Site, tmp_path: Path) -> None:
    for name in ("one", "two"):
        provision(sample, tmp_path / name, gateways=3, host="h")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_unchanged_files_are_left_untouched(sample: Site, tmp_path: Path) -> None:
    paths = provision(sample, tmp_path, gateways=3, host="one")
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (1_000, 1_000))
    provision(sample, tmp_path, gateways=3, host="other")
    assert paths.tables["routing"].stat().st_mtime == 1_000
    assert paths.tables["machines"].stat().st_mtime > 1_000


def test_fewer_gateways_leave_no_old_files(sample: Site, tmp_path: Path) -> None:
    provision(sample, tmp_path, gateways=5, host="h")
    provision(sample, tmp_path, gateways=2, host="h")
    assert sorted(p.name for p in (tmp_path / "gateways").iterdir()) == ["gw-1.json", "gw-2.json"]


def test_a_folder_that_cannot_be_written_is_named(sample: Site, tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file where the folder should be")
    with pytest.raises(SiteError, match=r"cannot write .*tables"):
        provision(sample, tmp_path, gateways=3, host="h")
    assert not (tmp_path / "site.geojson").exists()


def test_a_failed_write_leaves_the_old_file(
    sample: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = provision(sample, tmp_path, gateways=3, host="one")
    before = contents(tmp_path)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(SiteError, match="No space left on device"):
            provision(sample, tmp_path, gateways=3, host="two")
    assert contents(tmp_path) == before
    assert paths.site.exists()


def test_ids_that_cannot_be_topics_are_refused(tmp_path: Path) -> None:
    motes = (Mote("a/b", None, 0, 0, 0), Mote("c", None, 1, 0, 0))
    site = Site("bad", None, (Level(0, "0"),), motes=motes)
    with pytest.raises(SiteError, match="mote id 'a/b'"):
        provision(site, tmp_path, gateways=1, host="h")
    twice = Site("bad", None, (Level(0, "0"),), motes=(motes[1], motes[1]))
    with pytest.raises(SiteError, match="mote id 'c' is used 2 times"):
        provision(twice, tmp_path, gateways=1, host="h")
    assert not list(tmp_path.rglob("*.json"))


def test_a_testbed_without_rooms_is_provisioned(tmp_path: Path) -> None:
    motes = tuple(Mote(str(i), None, float(i), 0, 0) for i in range(4))
    paths = provision(
        Site("testbed", None, (Level(0, "0"),), motes=motes), tmp_path, gateways=2, host="h"
    )
    area = json.loads(paths.gateways["gw-2"].read_text())
    assert [node["id"] for node in area["nodes"]] == ["2", "3"]
    assert area["rooms"] == area["motes"] == []
    assert set(features(paths, "mote")) == {"0", "1", "2", "3"}
    assert rows(paths.tables["rooms"]) == []
    assert Calendar.from_ical(paths.calendar.read_bytes()).walk("VEVENT") == []


def test_the_calendar_always_has_a_reserved_room(sample: Site, paths: SitePaths) -> None:
    calendar = Calendar.from_ical(paths.calendar.read_bytes())
    events = calendar.walk("VEVENT")
    rooms = {str(event["LOCATION"]) for event in events}
    assert 5 <= len(rooms) <= 12
    assert rooms <= {space.id for space in sample.spaces}
    assert paths.calendar.read_text(encoding="utf-8").count("FREQ=WEEKLY") == len(events)
    start = datetime(2031, 5, 5, tzinfo=UTC)
    occurrences = recurring_ical_events.of(calendar).between(start, start + timedelta(days=7))
    spans = [(event["DTSTART"].dt, event["DTEND"].dt) for event in occurrences]
    for hour in range(7 * 24):
        moment = start + timedelta(hours=hour, minutes=30)
        assert any(begin <= moment < end for begin, end in spans), moment


def test_no_room_is_reserved_twice_at_once(paths: SitePaths) -> None:
    calendar = Calendar.from_ical(paths.calendar.read_bytes())
    start = datetime(2031, 5, 5, tzinfo=UTC)
    occurrences = recurring_ical_events.of(calendar).between(start, start + timedelta(days=7))
    spans: dict[str, list[tuple[datetime, datetime]]] = {}
    for event in occurrences:
        span = (event["DTSTART"].dt, event["DTEND"].dt)
        spans.setdefault(str(event["LOCATION"]), []).append(span)
    for room, taken in spans.items():
        for (_, end), (begin, _) in zip(sorted(taken), sorted(taken)[1:], strict=False):
            assert end <= begin, room


def test_sensor_kinds_and_units_are_complete(sample: Site, paths: SitePaths) -> None:
    units = {f["properties"]["kind"]: f["properties"]["unit"]
             for f in features(paths, "sensor").values()}  # fmt: skip
    assert set(units) == {kind.value for kind in SensorKind}
    assert units["temperature"] == "Cel"
    assert len(rows(paths.tables["sensors"])) == len(sample.sensors)


def test_names_with_commas_and_quotes_survive(tmp_path: Path) -> None:
    room = Space("R", 'Bar "Zur, Post"\nEG', SpaceKind.ROOM, 0, box(0, 0, 5, 5))
    site = furnish(Site("inn", None, (Level(0, "0"),), (room,)), {})
    paths = provision(site, tmp_path, gateways=1, host="h")
    assert rows(paths.tables["rooms"])[0]["name"] == room.name


def test_what_is_simulated_says_so(paths: SitePaths) -> None:
    machines = [m["properties"] for m in features(paths, "machine").values()]
    sensors = [s["properties"] for s in features(paths, "sensor").values()]
    assert {m["mid"] for m in machines if not m["simulated"]} == {"this-machine"}
    measured = [s for s in sensors if not s["simulated"]]
    assert [(s["kind"], s["mid"]) for s in measured] == [("load", "this-machine")]


def test_tables_of_the_user_stay(sample: Site, tmp_path: Path) -> None:
    provision(sample, tmp_path, gateways=3, host="one")
    (tmp_path / "tables").mkdir(exist_ok=True)
    mine = tmp_path / "tables" / "receiver.csv"
    mine.write_text("receiver,room\nr1,L101\n")
    provision(sample, tmp_path, gateways=2, host="other")
    assert mine.read_text() == "receiver,room\nr1,L101\n"
