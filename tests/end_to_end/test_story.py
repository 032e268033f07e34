"""The story: one command, real processes, live answers, a gateway that dies and comes back."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from host.mqtt import Message
from tests.end_to_end.answers import FreeMachines, is_closure
from tests.end_to_end.federation import Federation, Row, federation
from tests.end_to_end.messages import broker_of, record
from tests.end_to_end.stillness import hold_still

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

SPARK_SECONDS = 240.0
EXAMPLE_14 = """
SELECT m.mid, sr.rid FROM Machines m, MachineSoftware ms, SeatSensor ss, RoomSensor sr
WHERE software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid AND ss.weightLevel < 5.0
  AND sr.rid = ss.rid AND sr.status = 'open'
"""
WALK = """
WITH RECURSIVE walk(point, cost, path) AS (
  SELECT point, 0.0, point FROM Rooms WHERE rid = '{room}'
  UNION
  SELECT e.dst, w.cost + e.distance, w.path || '>' || e.dst
  FROM walk w JOIN RoutingPoint e ON e.src = w.point),
best AS (SELECT point, MIN(cost) AS cost, ARG_MIN(path, cost) AS path FROM walk GROUP BY point)
SELECT MIN(b.cost) AS distance, ARG_MIN(f.mid, b.cost) AS mid, ARG_MIN(b.path, b.cost) AS path
FROM best b JOIN FreeMachines f ON f.point = b.point
JOIN MachineSoftware s ON s.mid = f.mid WHERE s.software = 'LaTeX'
"""
REACHABLE = """
WITH RECURSIVE reachable(src, dst) AS (
  SELECT src, dst FROM Link UNION
  SELECT l.src, r.dst FROM Link l JOIN reachable r ON l.dst = r.src)
SELECT src, dst FROM reachable
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with federation(tmp_path_factory.mktemp("story") / "data") as running:
        yield running


def test_the_console_is_usable_before_spark_is_warm(up: Federation) -> None:
    ready = up.event("ready")
    assert ready is not None
    assert ready["ready"] is True
    assert ready["console"] == up.address
    assert {"gw-1", "gw-2", "gw-3", "base"} <= {s for s, f in up.sites().items() if f["online"]}
    assert up.http.get("/").is_success
    assert up.http.get("/queries").is_success


def test_a_filter_over_a_stream_shows_the_seats_taken(up: Federation) -> None:
    query = up.start_query("SELECT mid, weightLevel FROM SeatSensor WHERE weightLevel > 5.0")
    rows = up.until(lambda: up.rows(query))
    assert all(weight > 5.0 for _, weight in rows)
    up.stop_query(query)


def test_a_windowed_average_per_room(up: Federation) -> None:
    query = up.start_query(
        "SELECT rid, AVG(celsius) AS celsius, COUNT(*) AS readings "
        "FROM Temperature [RANGE 1 MINUTE] GROUP BY rid"
    )
    site = up.http.get("/api/site.geojson").json()
    rooms = {
        feature["properties"]["room"]
        for feature in site["features"]
        if feature["properties"].get("kind") == "temperature"
    }
    rows = up.until(lambda: {row[0] for row in up.rows(query)} == rooms and up.rows(query))
    assert all(5.0 < row[1] < 60.0 and row[2] >= 1 for row in rows)
    up.stop_query(query)


def test_reachability_over_live_links_equals_the_plain_closure(up: Federation) -> None:
    links = up.start_query("SELECT src, dst FROM Link")
    reachable = up.start_query(REACHABLE)
    up.until(lambda: is_closure(up, links, reachable))
    up.stop_query(links)
    up.stop_query(reachable)


def test_heating_rooms_makes_a_contiguous_region(up: Federation) -> None:
    query = up.start_query("SELECT regionid, sensorid FROM HotRegion")
    room = next(room for room in up.sites()["gw-2"]["rooms"] if room.startswith("O"))
    heated = up.pando("simulate", "heat", room, "--celsius", "30")
    assert heated.returncode == 0, heated.stderr
    up.until(lambda: (f"temp-{room}", f"temp-{room}") in up.rows(query))
    cooled = up.pando("simulate", "heat", room, "--celsius", "0")
    assert cooled.returncode == 0, cooled.stderr
    up.stop_query(query)


def test_example_14_and_the_walk_follow_who_sits_down(up: Federation) -> None:
    free = up.start_query(EXAMPLE_14)
    rows = up.until(lambda: up.rows(free), SPARK_SECONDS)
    taken, room = min(rows)
    up.simulate("lights_on", room)  # until the test is over, whatever the simulation would do
    assert up.pando("simulate", "sit", taken).returncode == 0
    up.until(lambda: taken not in {row[0] for row in up.rows(free)})
    assert up.pando("simulate", "leave", taken).returncode == 0
    up.until(lambda: taken in {row[0] for row in up.rows(free)})
    up.stop_query(free)


def test_the_walk_leads_to_the_nearest_and_moves_on_when_it_is_taken(up: Federation) -> None:
    hold_still(up)
    room = next(s["id"] for s in up.features("space") if s["id"].startswith("L1"))
    free = FreeMachines(up, room, "LaTeX")
    walk = up.start_query(WALK.format(room=room))

    def nearest() -> Row | None:
        """The walk's one row, if nothing free is nearer at this moment."""
        rows = up.rows(walk)
        if len(rows) != 1:
            return None
        (row,) = rows
        right = row[0] is not None and free.is_nearest(row[1], row[0])
        return row if right else None

    first = up.until(nearest, SPARK_SECONDS)
    assert first[2].split(">")[0] == free.start
    assert up.pando("simulate", "sit", first[1]).returncode == 0
    up.until(lambda: (row := nearest()) and row[1] != first[1])
    assert up.pando("simulate", "leave", first[1]).returncode == 0
    up.until(lambda: first[1] in free.distances() and nearest())
    up.stop_query(walk)
    free.close()


def test_a_wrong_query_gets_place_text_and_hint(up: Federation) -> None:
    failed = up.pando("query", "run", "SELECT mid,\n       weigth FROM SeatSensor")
    assert failed.returncode == 2
    assert "line 2, column 8" in failed.stderr
    assert "weigth" in failed.stderr
    assert "hint" in failed.stderr


def test_changes_are_json_lines(up: Federation) -> None:
    done = up.pando(
        "query", "run", "SELECT mid FROM SeatSensor", "--until-settled", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    assert all(set(line) == {"ts", "diff", "row"} and line["diff"] in (1, -1) for line in lines)
    limited = up.pando(
        "query", "run", "SELECT mid FROM SeatSensor", "--limit", "3", "--format", "csv"
    )
    assert len(limited.stdout.splitlines()) == 4


def test_this_machine_and_the_calendar_are_live_sources(up: Federation) -> None:
    load = up.start_query("SELECT cpu, memory, task FROM MachineLoad WHERE mid = 'this-machine'")
    processes = up.start_query("SELECT pid, task FROM Process WHERE mid = 'this-machine'")
    reserved = up.start_query("SELECT rid, title FROM RoomReservation")
    ((cpu, memory, _),) = up.until(lambda: up.rows(load))
    assert 0.0 <= cpu <= 1.0
    assert 0.0 < memory <= 1.0
    assert up.until(lambda: up.rows(processes))
    assert up.until(lambda: up.rows(reserved))
    for query in (load, processes, reserved):
        up.stop_query(query)


def test_a_killed_gateway_leaves_every_answer_and_comes_back_once(up: Federation) -> None:
    links = up.start_query("SELECT src, dst FROM Link")
    reachable = up.start_query(REACHABLE)
    seats = up.start_query("SELECT mid, rid FROM SeatSensor")
    rooms = set(up.sites()["gw-2"]["rooms"])
    before = up.until(lambda: len(up.rows(seats)) > 70 and up.rows(seats))
    sources = {f"m-{room}" for room in rooms}

    def rest_on_it() -> bool:
        return any(row[0] in sources for row in up.rows(links))

    up.until(rest_on_it)
    assert up.pando("gateway", "stop", "gw-2", "--kill", "--data", str(up.data)).returncode == 0
    up.until(lambda: up.event("halted", service="gw-2"))
    up.until(lambda: not rest_on_it())
    up.until(lambda: up.sites()["gw-2"]["freshness"] == "stale")
    up.until(lambda: not any(room in rooms for _, room in up.rows(seats)))
    up.until(lambda: is_closure(up, links, reachable))

    assert up.pando("gateway", "restart", "gw-2", "--data", str(up.data)).returncode == 0
    up.until(lambda: up.rows(seats) >= before)
    up.until(rest_on_it)
    up.until(lambda: is_closure(up, links, reachable))
    up.until(lambda: up.sites()["gw-2"]["freshness"] == "live")
    for query in (links, reachable, seats):
        up.stop_query(query)


@pytest.mark.parametrize(
    ("command", "has"),
    [
        ("gateway list", {"site", "freshness"}),
        ("gateway show gw-1", {"site", "connectors"}),
        ("source list", {"name", "columns"}),
        ("source describe SeatSensor", {"name", "columns", "text"}),
        ("table list", {"name", "columns"}),
        ("table describe machines", {"name", "columns", "text"}),
        ("view list", {"name", "columns"}),
        ("view describe FreeMachines", {"name", "columns", "text"}),
        ("query list", {"id", "text"}),
        ("query show map-seats", {"query", "rows"}),
    ],
)
def test_lists_and_descriptions(up: Federation, command: str, has: set[str]) -> None:
    as_json = up.pando(*command.split(), "--format", "json")
    assert as_json.returncode == 0, as_json.stderr
    found = json.loads(as_json.stdout)
    assert isinstance(found, list) is command.endswith("list")
    assert has <= (found[0] if isinstance(found, list) else found).keys()
    as_table = up.pando(*command.split())
    assert (as_table.returncode, as_table.stderr) == (0, "")
    assert as_table.stdout
    wrong = up.pando(*command.split()[:2], "nothing-such")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr


def test_explain(up: Federation) -> None:
    explained = up.pando("explain", EXAMPLE_14, "--type", "federated")
    assert "GATEWAY" in explained.stdout
    assert "STATIC" in explained.stdout.upper()
    as_json = up.pando("explain", EXAMPLE_14, "--format", "json")
    assert json.loads(as_json.stdout)["fragments"]
    wrong = up.pando("explain", "SELECT nothing FROM SeatSensor")
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_explain_of_a_running_query_counts_what_its_sites_send(up: Federation) -> None:
    queries = up.http.get("/api/queries").json()
    (query,) = [each["id"] for each in queries if each["name"] == "map-energy"]

    def sent() -> int:
        explained = up.http.get(f"/api/queries/{query}/explain").json()
        return sum(site["bytes"] for site in explained["data"]["traffic"].values())

    before = sent()

    def rows_heard() -> list[Message]:
        heard = record(broker_of(up.data), 1.0, {("q", "x"), ("q", "out"), ("gw", "flow")})
        return [m for m in heard if re.search(f"/q/{query}/(x|out)/", m.topic)]

    rows = up.until(rows_heard)  # on a busy machine a second may bring none
    up.until(lambda: sent() - before >= sum(len(message.payload) for message in rows))


def test_a_script_and_the_shell_on_the_federation(up: Federation, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "CREATE VIEW taken AS SELECT mid FROM SeatSensor WHERE weightLevel > 5.0;\n"
        "SELECT mid, rid FROM SeatSensor;\nSHOW TABLES;\n"
        "EXPLAIN SELECT mid FROM taken;\nDROP VIEW taken;\n"
    )
    seats = up.start_query("SELECT mid FROM SeatSensor")
    up.until(lambda: len(up.rows(seats)) > 70)
    up.stop_query(seats)
    before = {query["id"] for query in up.http.get("/api/queries").json()}
    done = up.pando("run", str(script), "--format", "json")
    assert done.returncode == 0, done.stderr
    created, rows, tables, plan, dropped = map(json.loads, done.stdout.splitlines())
    assert created["message"] == "view taken created"
    assert len(rows) > 70
    assert rows[0].keys() == {"mid", "rid"}
    assert "machines" in {table["table"] for table in tables}
    assert plan
    assert dropped["message"] == "view taken dropped"
    script.write_text("SHOW SOURCES;\nSELECT nothing FROM SeatSensor;\n")
    wrong = up.pando("run", str(script))
    assert wrong.returncode == 2
    assert "seatsensor" in wrong.stdout
    assert "line 2, column 8" in wrong.stderr
    shell = up.pando(
        "shell", stdin="SELECT COUNT(*) AS n\nFROM Rooms;\nSELECT x FROM Rooms y, y;\n"
    )
    assert shell.returncode == 0
    assert "+  81" in shell.stdout
    assert "error" in shell.stderr
    assert {query["id"] for query in up.http.get("/api/queries").json()} == before


def test_queries_survive_a_restart_of_everything(tmp_path: Path) -> None:
    data = tmp_path / "data"
    text = "SELECT mid FROM SeatSensor WHERE weightLevel < 5.0"
    with federation(data, "--no-spark") as first:
        query = first.start_query(text)
        first.until(lambda: first.rows(query))
    with federation(data, "--no-spark") as second:
        assert second.query(query)["text"] == text
        second.until(lambda: second.rows(query))
