"""A recorded link trace, a recorded CSV, and a building nobody here drew."""

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.answers import is_closure
from tests.end_to_end.federation import federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("PANDO_SHARED_DATA", ROOT.parent / "shared" / "data"))
TRACE = SHARED / "link-traces" / "grenoble-sample.k7.gz"
MAP = SHARED / "osm-indoor" / "caserne.geojson"


RECORDED = pytest.mark.skipif(not TRACE.exists(), reason="the recorded link trace is not here")
DRAWN = pytest.mark.skipif(not MAP.exists(), reason="the OpenStreetMap extract is not here")
MADE = "made here"


def made_trace(folder: Path) -> Path:
    """Write a link trace of our own: 44 nodes on a ring whose links come, change and expire.

    Every 25 minutes each node measures its links to the next two. Some measurements fail, and some
    are left out, so that a link expires. In between nothing changes for 5 minutes and for 20.
    """
    start = datetime(2026, 1, 1, tzinfo=UTC)
    lines = [json.dumps({"node_count": 44, "location": "nowhere"})]
    lines.append("datetime,src,dst,channel,mean_rssi,pdr,tx_count")
    for turn in range(10):
        when = (start + timedelta(minutes=25 * turn)).strftime("%Y-%m-%d %H:%M:%S")
        for node in range(44):
            for hop in (1, 2):
                if (node + turn) % 9 == 0:
                    continue
                failed = (7 * node + 3 * hop + 5 * turn) % 11 == 0
                ratio = 0.0 if failed else round(0.55 + (node + turn) % 9 / 20, 2)
                lines.append(f"{when},{node},{(node + hop) % 44},11,-60.0,{ratio},100")
                lines.append(f"{when},{(node + hop) % 44},{node},11,-60.0,{ratio},100")
    path = folder / "ring.k7.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    return path


def made_map(folder: Path) -> Path:
    """Write an indoor map of our own: two levels of four rooms and a corridor, and stairs."""

    def box(x: float, y: float, width: float, height: float) -> list[list[float]]:
        east, north = 5.0 + x * 1.4e-5, 45.0 + y * 9e-6
        right, top = 5.0 + (x + width) * 1.4e-5, 45.0 + (y + height) * 9e-6
        return [[east, north], [right, north], [right, top], [east, top], [east, north]]

    features: list[dict[str, Any]] = []

    def area(ring: list[list[float]], **properties: str) -> None:
        geometry = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})

    def point(x: float, y: float, **properties: str) -> None:
        place = [5.0 + x * 1.4e-5, 45.0 + y * 9e-6]
        geometry = {"type": "Point", "coordinates": place}
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})

    for level in ("0", "1"):
        area(box(0, 6, 32, 3), indoor="corridor", level=level, name="Corridor")
        for number in range(4):
            area(box(number * 8, 0, 8, 6), indoor="room", level=level, name=f"Room {number}")
            point(number * 8 + 4, 6, door="yes", level=level)
    area(box(0, 9, 4, 4), indoor="room", stairs="yes", level="0;1", name="Stairs")
    point(2, 9, door="yes", level="0;1")
    point(0, 7.5, entrance="yes", level="0")
    path = folder / "two-levels.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


@pytest.mark.parametrize("trace", [MADE, pytest.param(TRACE, marks=RECORDED)], ids=["made", "real"])
def test_a_link_trace_comes_changes_and_expires(tmp_path: Path, trace: str | Path) -> None:
    path = made_trace(tmp_path) if trace == MADE else trace
    # The one made here is over after 50 s: enough to be looked at on a busy machine, too.
    options = ("--no-spark", "--replay", str(path), "--speed", "300" if trace == MADE else "600")
    with federation(tmp_path / "data", *options) as up:
        links = up.start_query("SELECT src, dst FROM Link")
        reachable = up.start_query("SELECT src, dst FROM reachable")
        first = up.until(lambda: up.rows(links))
        up.until(lambda: is_closure(up, links, reachable))
        up.until(lambda: first - up.rows(links) and up.rows(links) - first)
        up.until(lambda: is_closure(up, links, reachable))
        nodes = {f["properties"]["id"] for f in up.http.get("/api/site.geojson").json()["features"]}
        assert len(nodes) == 44
        if trace == MADE:  # the recorded one goes on for longer
            up.until(lambda: up.query(links)["changes"] > len(first) and not up.rows(links))
            up.until(lambda: not up.rows(reachable))


def test_a_csv_recording_becomes_a_stream(tmp_path: Path) -> None:
    recording = tmp_path / "water.csv"
    lines = [f"2026-01-01T00:00:{n:02d}Z,tank-{n % 2},{n / 10},{n}" for n in range(60)]
    recording.write_text("\n".join(["ts,tank,level,count", *lines]) + "\n")
    options = ("--no-spark", "--gateways", "1", "--replay", str(recording), "--speed", "20")
    with federation(tmp_path / "data", *options) as up:
        query = up.start_query(
            "SELECT tank, COUNT(*) AS n, MAX(level) AS top FROM water GROUP BY tank"
        )
        up.until(lambda: up.rows(query) == {("tank-0", 30, 5.8), ("tank-1", 30, 5.9)})


@pytest.mark.parametrize("drawn", [MADE, pytest.param(MAP, marks=DRAWN)], ids=["made", "real"])
def test_a_building_nobody_here_drew(tmp_path: Path, drawn: str | Path) -> None:
    path = made_map(tmp_path) if drawn == MADE else drawn
    with federation(tmp_path / "data", "--no-spark", "--site", str(path)) as up:
        walk = up.start_query(
            "WITH RECURSIVE walk(point, cost) AS ("
            " SELECT point, 0.0 FROM Rooms UNION"
            " SELECT e.dst, w.cost + e.distance FROM walk w JOIN RoutingPoint e ON e.src = w.point)"
            " SELECT point, MIN(cost) AS cost FROM walk GROUP BY point"
        )
        free = up.start_query("SELECT mid, rid FROM FreeMachines")
        assert up.until(lambda: up.rows(free))
        points = {row[0] for row in up.until(lambda: up.rows(walk))}
        assert len(points) > 10
        levels = up.http.get("/api/site.geojson").json()["pando"]["levels"]
        assert {level["ordinal"] for level in levels} >= {0, 1}
