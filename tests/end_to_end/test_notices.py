"""Streams, alarms, displays, reports and settings of one federation, as its users see them."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.federation import Federation, federation
from tests.end_to_end.messages import broker_of, retained

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

SMALL = ("--no-spark", "--gateways", "2")
SPAN = timedelta(seconds=4)
READINGS = "SELECT sensor, celsius, ts AS at FROM Temperature [RANGE 4 SECONDS]"
HOLD = timedelta(seconds=2)
ROOM = "L101"
SCRIPT = f"""
CREATE DISPLAY lobby WITH (floor = 0, x = 12.0, y = 12.0, title = 'Dark rooms', rows = 3);
CREATE ALARM dark AS SELECT rid FROM RoomSensor WHERE rid = '{ROOM}' AND status = 'closed'
  SEVERITY 'critical' FOR '2 s';
SELECT rid, light FROM RoomSensor ORDER BY light, rid OUTPUT TO DISPLAY lobby;
ISTREAM({READINGS}) OUTPUT TO DISPLAY lobby;
"""
GIVEN = """
SELECT DISTINCT s.site, s.query FROM sys_operators o JOIN sys_stream [RANGE 5 SECONDS] s
ON s.site = o.site AND s.query = o.query AND s.entity = o.entity
WHERE o.operator LIKE 'Istream%' AND s.property = 'rows_out' AND s.value > 0
"""


def runs(up: Federation) -> set[str]:
    """Return the runs of the queries that there are, and of the nodes on which these rest."""
    nodes = up.http.get("/api/network").json()["nodes"]
    of_nodes = {f"q{node['node'].split('/')[0]}" for node in nodes}
    return of_nodes | {query["run"] for query in up.http.get("/api/queries").json()}


def stream(up: Federation, text: str, rows: int) -> list[dict[str, Any]]:
    """Return the first rows of a stream, as the command line gives them."""
    told = up.pando("query", "run", text, "--limit", str(rows), "--format", "json")
    assert told.returncode == 0, told.stderr
    changes = [json.loads(line) for line in told.stdout.splitlines()]
    assert {change["diff"] for change in changes} == {1}
    return [change["row"] for change in changes]


def shown(up: Federation) -> list[dict[str, Any]]:
    """Return the answers on the display, the oldest query's first."""
    answers: list[dict[str, Any]] = up.http.get("/api/displays/lobby").json()["queries"]
    return answers


def alarm(up: Federation) -> list[tuple[Any, ...]]:
    """Return state and room of what the alarm has told, oldest first."""
    (found,) = up.http.get("/api/alarms").json()
    return [(row["state"], row["row"]["rid"]) for row in sorted(found["rows"], key=_number)]


def _number(row: dict[str, Any]) -> int:
    return int(row["id"])


def time(text: str) -> datetime:
    """Return a moment as Pando writes it."""
    return datetime.fromisoformat(text)


def test_people_are_told_what_happens(tmp_path: Path) -> None:
    with federation(tmp_path / "data", *SMALL) as up:
        up.simulate("lights_on", ROOM)
        (tmp_path / "notices.sql").write_text(SCRIPT)
        began = up.pando("run", str(tmp_path / "notices.sql"))
        assert began.returncode == 0, began.stderr
        rooms, readings = up.until(lambda: len(found := shown(up)) == 2 and found)

        # A reading appears at its own time and leaves the window when it is that old.
        for row in stream(up, f"ISTREAM({READINGS})", 300):
            assert time(row["ts"]) == time(row["at"])
        for row in stream(up, f"DSTREAM({READINGS})", 300):
            assert time(row["ts"]) == time(row["at"]) + SPAN

        # The display shows what is in the answer, and the newest rows of a stream.
        up.until(lambda: up.query(rooms["id"])["settled"] and shown(up)[0]["total"])
        lights = [row["light"] for row in shown(up)[0]["first"]]
        assert len(lights) == 3
        assert lights == sorted(lights)
        newest = up.until(lambda: shown(up)[1]["first"])[0]["ts"]
        up.until(lambda: shown(up)[1]["first"][0]["ts"] > newest)
        page = up.http.get("/displays/lobby")
        assert page.status_code == 200
        assert "Dark rooms" in page.text

        # A base site that is scheduled otherwise gives the same stream, and reports both.
        told = up.pando("run", "-", stdin="ALTER SITE base SET (scheduler = 'chain', slice_ms = 5)")
        assert told.returncode == 0, told.stderr
        reports = up.start_query(GIVEN)
        up.until(lambda: ("base", readings["id"]) in up.rows(reports))
        for row in stream(up, f"ISTREAM({READINGS})", 300):
            assert time(row["ts"]) == time(row["at"])

        # An alarm waits its time out, is taken note of, and is over when its row is gone.
        alarms = up.start_query("SELECT alarm, state FROM sys_alarms")
        up.simulate("lights_off", ROOM)
        up.until(lambda: up.rows(alarms) == {("dark", "raised")})
        assert alarm(up) == [("raised", ROOM)]
        (found,) = up.http.get("/api/alarms").json()
        (row,) = found["rows"]
        assert time(row["raised"]) == time(row["since"]) + HOLD
        noted = up.pando("alarm", "acknowledge", str(row["id"]))
        assert noted.returncode == 0, noted.stderr
        up.until(lambda: up.rows(alarms) == {("dark", "acknowledged")})
        up.simulate("lights_on", ROOM)
        up.until(lambda: up.rows(alarms) == {("dark", "cleared")})

        # What shows something stays; what was stopped leaves nothing behind.
        refused = up.pando("run", "-", stdin="DROP DISPLAY lobby")
        assert refused.returncode == 2
        assert "lobby" in refused.stderr
        for query in (rooms["id"], readings["id"], reports, alarms):
            up.stop_query(query)
        ended = up.pando("run", "-", stdin="DROP DISPLAY lobby; DROP ALARM dark;")
        assert ended.returncode == 0, ended.stderr
        assert up.http.get("/api/displays").json() == up.http.get("/api/alarms").json() == []
        assert {query["origin"] for query in up.http.get("/api/queries").json()} == {"map"}
        broker = broker_of(up.data)
        up.until(lambda: {parts[1] for parts in retained(broker) if parts[0] == "q"} <= runs(up))
