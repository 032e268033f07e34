"""A recorded link trace, a recorded CSV, and a building nobody here drew."""

import os
from pathlib import Path

import pytest

from tests.end_to_end.federation import Federation, federation, wait
from tests.end_to_end.test_story import closure

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("PANDO_SHARED_DATA", ROOT.parent / "shared" / "data"))
TRACE = SHARED / "link-traces" / "grenoble-sample.k7.gz"
MAP = SHARED / "osm-indoor" / "caserne.geojson"


def agrees(up: Federation, links: str, reachable: str) -> bool:
    """Whether, at one moment, what is reachable is the closure of the links."""
    before = up.rows(links)
    found = up.rows(reachable)
    return bool(before) and before == up.rows(links) and found == closure(before)


@pytest.mark.skipif(not TRACE.exists(), reason="the recorded link trace is not here")
def test_a_link_trace_comes_changes_and_expires(tmp_path: Path) -> None:
    options = ("--no-spark", "--replay", str(TRACE), "--speed", "600")
    with federation(tmp_path / "data", *options) as up:
        links = up.start_query("SELECT src, dst FROM Link")
        reachable = up.start_query("SELECT src, dst FROM reachable")
        first = wait(lambda: up.rows(links), 20)
        wait(lambda: agrees(up, links, reachable), 20)
        wait(lambda: first - up.rows(links) and up.rows(links) - first, 30)
        wait(lambda: agrees(up, links, reachable), 20)
        nodes = {f["properties"]["id"] for f in up.http.get("/api/site.geojson").json()["features"]}
        assert len(nodes) == 44
        wait(lambda: up.query(links)["changes"] > 500 and not up.rows(links), 60)
        wait(lambda: not up.rows(reachable), 10)


def test_a_csv_recording_becomes_a_stream(tmp_path: Path) -> None:
    recording = tmp_path / "water.csv"
    lines = [f"2026-01-01T00:00:{n:02d}Z,tank-{n % 2},{n / 10},{n}" for n in range(60)]
    recording.write_text("\n".join(["ts,tank,level,count", *lines]) + "\n")
    options = ("--no-spark", "--gateways", "1", "--replay", str(recording), "--speed", "20")
    with federation(tmp_path / "data", *options) as up:
        query = up.start_query(
            "SELECT tank, COUNT(*) AS n, MAX(level) AS top FROM water GROUP BY tank"
        )
        wait(lambda: up.rows(query) == {("tank-0", 30, 5.8), ("tank-1", 30, 5.9)}, 30)


@pytest.mark.skipif(not MAP.exists(), reason="the OpenStreetMap extract is not here")
def test_a_building_nobody_here_drew(tmp_path: Path) -> None:
    with federation(tmp_path / "data", "--no-spark", "--site", str(MAP)) as up:
        walk = up.start_query(
            "WITH RECURSIVE walk(point, cost) AS ("
            " SELECT point, 0.0 FROM Rooms UNION"
            " SELECT e.dst, w.cost + e.distance FROM walk w JOIN RoutingPoint e ON e.src = w.point)"
            " SELECT point, MIN(cost) AS cost FROM walk GROUP BY point"
        )
        free = up.start_query("SELECT mid, rid FROM FreeMachines")
        assert wait(lambda: up.rows(free), 30)
        assert wait(lambda: len(up.rows(walk)) > 50, 30)
        levels = up.http.get("/api/site.geojson").json()["pando"]["levels"]
        assert {level["ordinal"] for level in levels} >= {-1, 0, 1}
