"""Bad input and faults do no harm: answers are right right afterwards, and nothing is doubled."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.broker.mosquitto import find_mosquitto
from tests.end_to_end.federation import Federation, Row, federation, wait
from tests.end_to_end.messages import broker_of, kind_of, publish, record, spoiled
from tests.end_to_end.test_story import REACHABLE, closure

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(240)]

SILENT_SECONDS = 10.0
LONG_SILENT_SECONDS = 30.0
"""More than gateways and broker take to doubt each other (7.5 s) and the grace time (5 s)."""
BACK_SECONDS = 40.0


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    data = tmp_path_factory.mktemp("faults") / "data"
    with federation(data, "--no-spark", "--gateways", "2", "--broker", "embedded") as running:
        yield running


class Watched:
    """Queries over everything, with the seats that were there when it was quiet."""

    def __init__(self, up: Federation) -> None:
        self.up = up
        self.seats = up.start_query("SELECT mid, rid FROM SeatSensor")
        self.links = up.start_query("SELECT src, dst FROM Link")
        self.reachable = up.start_query(REACHABLE)
        self.before = wait(self._settled, BACK_SECONDS, up.said)

    def _settled(self) -> set[Row] | None:
        seats = self.up.rows(self.seats)
        return seats if len(seats) >= 40 and self.is_right() else None

    def is_right(self) -> bool:
        """Whether what is reachable is the closure of the links, at one moment."""
        links = self.up.rows(self.links)
        found = self.up.rows(self.reachable)
        return bool(links) and links == self.up.rows(self.links) and found == closure(links)

    def comes_back(self) -> None:
        """Every seat is there again, once, and the recursion is right."""
        wait(lambda: self.up.rows(self.seats) >= self.before, BACK_SECONDS, self.up.said)
        wait(self.is_right, BACK_SECONDS, self.up.said)

    def close(self) -> None:
        for query in (self.seats, self.links, self.reachable):
            self.up.stop_query(query)


@pytest.fixture
def watched(up: Federation) -> Iterator[Watched]:
    found = Watched(up)
    yield found
    found.close()


def hold(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


def everybody_is_online(up: Federation) -> bool:
    return all(site["online"] for site in up.sites().values())


def test_a_broker_that_stops_and_returns(up: Federation, watched: Watched) -> None:
    hold(up.pid("broker"), SILENT_SECONDS)
    wait(lambda: everybody_is_online(up), BACK_SECONDS, up.said)
    watched.comes_back()
    assert up.event("died") is None


@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
def test_mosquitto_that_stops_and_returns(tmp_path: Path) -> None:
    options = ("--no-spark", "--gateways", "2", "--broker", "mosquitto")
    with federation(tmp_path / "data", *options) as up:
        watched = Watched(up)
        hold(up.pid("broker"), LONG_SILENT_SECONDS)
        wait(lambda: everybody_is_online(up), BACK_SECONDS, up.said)
        watched.comes_back()
        assert up.event("died") is None


def test_a_gateway_that_hangs_and_returns(up: Federation, watched: Watched) -> None:
    rooms = set(up.sites()["gw-2"]["rooms"])
    pid = up.pid("gw-2")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait(lambda: not any(room in rooms for _, room in up.rows(watched.seats)), 30, up.said)
        wait(watched.is_right, 15, up.said)
    finally:
        os.kill(pid, signal.SIGCONT)
    watched.comes_back()


def test_spoiled_repeated_and_shuffled_messages(up: Federation, watched: Watched) -> None:
    url = broker_of(up.data)
    heard = record(url, 3.0)
    by_kind = {kind_of(message): message for message in heard}
    assert {("gw", "obs"), ("gw", "link"), ("q", "x"), ("q", "out")} <= by_kind.keys()
    by_sender = {(*kind_of(m), m.topic.split("/")[4]): m for m in heard}
    publish(url, [(m.topic, p) for m in by_sender.values() for p in spoiled(m, seed=7)])
    publish(url, [(message.topic, message.payload) for message in heard for _ in range(2)])
    publish(url, [(message.topic, message.payload) for message in reversed(heard)])
    watched.comes_back()
    wait(lambda: everybody_is_online(up), BACK_SECONDS, up.said)
    assert up.event("died") is None
    assert {query["status"] for query in up.http.get("/api/queries").json()} == {"running"}


def test_a_stolen_id_is_noticed_by_the_elder(up: Federation, watched: Watched) -> None:
    settings = json.loads((up.data / "run" / "gw-1.json").read_text())
    settings["data_dir"] = str(up.data / "thief")
    path = up.data / "thief.json"
    path.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "gateway", "--config", str(path)]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.DEVNULL) as thief:
        try:
            died = wait(lambda: up.event("died", service="gw-1"), 30, up.said)
            assert died["status"] == 2
            assert any("another process runs as 'gw-1'" in line for line in died["last_lines"])
            watched.comes_back()  # from the thief, and from nobody else
        finally:
            thief.terminate()
            thief.wait(20)
    rooms = set(up.sites()["gw-1"]["rooms"])
    wait(lambda: not any(room in rooms for _, room in up.rows(watched.seats)), 20, up.said)
    assert up.pando("gateway", "restart", "gw-1", "--data", str(up.data)).returncode == 0
    watched.comes_back()


def test_a_table_that_disappears_or_changes_its_columns(up: Federation) -> None:
    file = up.data / "site" / "tables" / "machines.csv"
    content = file.read_bytes()
    query = up.start_query("SELECT s.mid, m.cpu FROM SeatSensor s JOIN Machines m ON m.mid = s.mid")
    before = wait(lambda: len(up.rows(query)) >= 40 and up.rows(query), 30)

    def said(text: str) -> bool:
        found = up.query(query)
        return found["status"] == "degraded" and text in found["error"]

    def recovered() -> bool:
        found = up.query(query)
        return found["status"] == "running" and not found["error"]

    try:
        file.unlink()
        wait(lambda: said("file 'machines.csv'"), 20, up.said)
        assert "is missing" in up.sites()["static"]["detail"]
        assert up.rows(query) >= before, "the last rows stay"
        file.write_bytes(content)
        wait(recovered, 20, up.said)
        file.write_bytes(content.replace(b"cpu", b"processor", 1))
        wait(lambda: said("no column cpu"), 20, up.said)
        assert "was cpu renamed to processor?" in up.query(query)["error"]
        file.write_bytes(b"\x00\xff garbage")
        wait(lambda: said("machines.csv") and not said("processor"), 20, up.said)
        assert up.rows(query) >= before
    finally:
        file.write_bytes(content)
    wait(recovered, 20, up.said)
    mid, cpu = min(before)
    line = next(line for line in content.decode().splitlines() if line.startswith(f"{mid},"))
    file.write_text(content.decode().replace(line, line.replace(cpu, "Z80")))
    wait(lambda: (mid, "Z80") in up.rows(query) and (mid, cpu) not in up.rows(query), 20, up.said)
    file.write_bytes(content)
    wait(lambda: (mid, cpu) in up.rows(query), 20, up.said)
    up.stop_query(query)


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        (
            "WITH RECURSIVE r(a, b, n) AS (SELECT src, dst, 1 FROM Link UNION SELECT l.src, r.b, "
            "r.n + 1 FROM Link l JOIN r ON l.dst = r.a) SELECT * FROM r",
            ("line 1", "hint"),
        ),
        ("SELECT weigth FROM SeatSensor", ("weigth", "line 1, column 8", "hint")),
        ("SELECT mid FROM SeatSensor a, Machines b", ("mid", "line 1, column 8")),
        ("SELECT mid + 1 FROM SeatSensor", ("line 1",)),
        ("SELECT mid FROM Nowhere", ("nowhere", "hint")),
        ("SELECT (" * 500 + "1" + ")" * 500, ("line 1",)),
        ("SELECT mid FROM SeatSensor WHERE " + "weightLevel > 1 AND " * 5000 + "true", ()),
        ("DROP SOURCE SeatSensor", ("SELECT",)),
        ("", ()),
    ],
)
def test_wrong_statements_are_refused_and_start_nothing(
    up: Federation, sql: str, reasons: tuple[str, ...]
) -> None:
    running = [query["id"] for query in up.http.get("/api/queries").json()]
    done = up.pando("query", "run", sql, "--for", "1s")
    if reasons:
        assert done.returncode == 2, done.stderr
        assert done.stdout == ""
    else:
        assert done.returncode in (0, 2), done.stderr
    for reason in reasons:
        assert reason.lower() in done.stderr.lower()
    assert [query["id"] for query in up.http.get("/api/queries").json()] == running
