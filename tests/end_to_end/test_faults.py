"""Bad input and faults do no harm: answers are right right afterwards, and nothing is doubled."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker_launch import find_mosquitto
from streamsql.wire.topics import Topics
from tests.end_to_end.answers import is_closure
from tests.end_to_end.federation import PATIENCE, Federation, Row, federation
from tests.end_to_end.messages import broker_of, kind_of, publish, record, retained, spoiled
from tests.end_to_end.test_story import REACHABLE

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

SILENT_SECONDS = 10.0
LONG_SILENT_SECONDS = 30.0
"""More than gateways and broker take to doubt each other (7.5 s) and the grace time (5 s)."""


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
        self.before = up.until(self._settled)

    def _settled(self) -> set[Row] | None:
        seats = self.up.rows(self.seats)
        return seats if len(seats) >= 40 and self.is_right() else None

    def is_right(self) -> bool:
        """Whether what is reachable is the closure of the links, at one moment."""
        return is_closure(self.up, self.links, self.reachable)

    def comes_back(self) -> None:
        """Every seat is there again, once, and the recursion is right."""
        self.up.until(lambda: self.up.rows(self.seats) >= self.before)
        self.up.until(self.is_right)

    def close(self) -> None:
        for query in (self.seats, self.links, self.reachable):
            self.up.stop_query(query)


@pytest.fixture
def watched(up: Federation) -> Iterator[Watched]:
    found = Watched(up)
    yield found
    found.close()


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def silenced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Watched, float]]:
    """A federation whose Mosquitto is silent, and since when, while other tests run."""
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    options = ("--no-spark", "--gateways", "2", "--broker", "mosquitto")
    with federation(tmp_path_factory.mktemp("mosquitto") / "data", *options) as running:
        watched = Watched(running)
        with stopped(running.pid("broker")):
            yield watched, time.monotonic()


@pytest.fixture(scope="module")
def seats(up: Federation) -> str:
    """A query that runs from its first test to its last."""
    return up.start_query("SELECT mid, rid FROM SeatSensor")


def everybody_is_live(up: Federation) -> bool:
    """Whether all are online, and were heard since the broker was away, if it was."""
    return all(site["freshness"] == "live" for site in up.sites().values())


def deaths(up: Federation) -> int:
    """Return how many services have died."""
    return sum(line.get("event") == "died" for line in up.events)


def test_mosquitto_falls_silent(silenced: tuple[Watched, float]) -> None:
    watched, _ = silenced
    assert watched.up.event("died") is None


def test_a_gateway_that_has_kept_another_definition_is_put_right(
    up: Federation, seats: str
) -> None:
    """The catalog's definition counts, whatever a gateway has on its disk."""
    up.until(lambda: up.query(seats)["settled"] and len(up.rows(seats)) >= 40)
    before = up.rows(seats)
    book = up.data / "state" / "gw-2" / "declared_sources.json"
    orders = json.loads(book.read_text())
    (order,) = [order for order in orders if order["definition"]["name"] == "seatsensor"]
    (columns,) = order["definition"]["schema"]
    columns[0:2] = reversed(columns[0:2])
    mapped = order["definition"]["mapping"]["columns"]
    mapped[0:2] = reversed(mapped[0:2])
    book.write_text(json.dumps(orders))
    assert up.pando("gateway", "restart", "gw-2", "--data", str(up.data)).returncode == 0

    def kept() -> list[str]:
        """Return the first columns of the definition on the gateway's disk."""
        stored = [order["definition"] for order in json.loads(book.read_text())]
        (found,) = [each for each in stored if each["name"] == "seatsensor"]
        return [name for name, _ in found["schema"][0]][:2]

    up.until(lambda: kept() == ["mid", "rid"])
    up.until(lambda: up.query(seats)["settled"] and up.rows(seats) >= before)
    up.until(lambda: up.sites()["gw-2"]["differences"] == [])
    rooms = {rid for _, rid in before}
    assert not [mid for mid, _ in up.rows(seats) if mid in rooms], "no column has another's values"


def test_a_column_added_to_a_source_of_the_sample_building_is_filled_without_a_restart(
    up: Federation, seats: str, tmp_path: Path
) -> None:
    up.until(lambda: up.query(seats)["settled"])
    before, pids = up.rows(seats), up.pids()
    column = "ALTER SOURCE SeatSensor ADD COLUMN grams INTEGER FROM 'weightlevel' SCALE 1000"
    script = tmp_path / "column.sql"
    script.write_text(column)
    altered = up.pando("run", str(script))
    assert altered.returncode == 0, altered.stderr
    try:
        query = up.start_query("SELECT mid, weightLevel, grams FROM SeatSensor")
        up.until(lambda: {row[0] for row in up.rows(query)} >= {mid for mid, _ in before})
        up.until(lambda: all(row[2] is not None for row in up.rows(query)))
        assert all(row[2] == round(row[1] * 1_000) for row in up.rows(query))
        up.until(lambda: up.query(query)["settled"])
        up.until(lambda: up.query(seats)["settled"] and up.rows(seats) >= before)
        assert all(site["differences"] == [] for site in up.sites().values())
        assert up.pids() == pids, "nothing was restarted"
        up.stop_query(query)
    finally:
        script.write_text("ALTER SOURCE SeatSensor DROP COLUMN grams")
        dropped = up.pando("run", str(script))
    assert dropped.returncode == 0, dropped.stderr


def test_a_broker_that_stops_and_returns(up: Federation, watched: Watched) -> None:
    with stopped(up.pid("broker")):
        time.sleep(SILENT_SECONDS)  # time passes: sites are silent for so long
    up.until(lambda: everybody_is_live(up))
    watched.comes_back()
    assert up.event("died") is None


def test_equal_queries_cost_what_one_does_and_outlive_the_base(
    up: Federation, watched: Watched
) -> None:
    text = up.query(watched.seats)["text"]
    equal = [up.start_query(text) for _ in range(9)]
    # A query of its own, over the rows that the gateways send anyway.
    other = up.start_query(
        "SELECT rid, COUNT(mid) AS n FROM (SELECT DISTINCT mid, rid FROM SeatSensor) t GROUP BY rid"
    )

    def counted() -> dict[object, int]:
        return Counter(rid for _, rid in up.rows(watched.seats))

    def all_show_the_same() -> bool:
        seats = up.rows(watched.seats)
        return seats >= watched.before and all(up.rows(query) == seats for query in equal)

    try:
        assert all(up.rows(query) >= watched.before for query in equal), "at once"
        url = broker_of(up.data)
        told = {level[1] for level in retained(url) if level[0] == "q"}
        run = up.query(watched.seats)["run"]
        assert {up.query(query)["run"] for query in equal} == {run}
        assert run in told
        assert not told & set(equal), "the sites know nothing of them"
        sent = record(url, 1.0, {("q", "x")})
        assert not {message.topic.split("/")[4] for message in sent} & set(equal)
        os.kill(up.pid("base"), signal.SIGKILL)
        up.until(all_show_the_same)
        up.until(lambda: dict(up.rows(other)) == counted())
        up.until(lambda: all(up.query(query)["settled"] for query in (*equal, other)))
        up.stop_query(watched.seats)  # of whose name the run is
        up.until(lambda: all(up.rows(query) >= watched.before for query in equal))
    finally:
        for query in (*equal, other):
            up.stop_query(query)


def test_a_gateway_that_hangs_and_returns(up: Federation, watched: Watched) -> None:
    rooms = set(up.sites()["gw-2"]["rooms"])
    with stopped(up.pid("gw-2")):
        up.until(lambda: not any(room in rooms for _, room in up.rows(watched.seats)))
        up.until(watched.is_right)
    watched.comes_back()


def test_a_stolen_id_is_noticed_by_the_elder(up: Federation, watched: Watched) -> None:
    settings = json.loads((up.data / "run" / "gw-1.json").read_text())
    settings["data_dir"] = str(up.data / "thief")
    path = up.data / "thief.json"
    path.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "gateway", "--config", str(path)]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.DEVNULL) as thief:
        try:
            died = up.until(lambda: up.event("died", service="gw-1"))
            assert died["status"] == 2
            assert any("another process runs as 'gw-1'" in line for line in died["last_lines"])
            watched.comes_back()  # from the thief, and from nobody else
        finally:
            thief.terminate()
            thief.wait(PATIENCE)
    rooms = set(up.sites()["gw-1"]["rooms"])
    up.until(lambda: not any(room in rooms for _, room in up.rows(watched.seats)))
    assert up.pando("gateway", "restart", "gw-1", "--data", str(up.data)).returncode == 0
    watched.comes_back()


def test_a_gateway_that_dies_leaves_its_figures_and_no_settled_last_rows(up: Federation) -> None:
    query = up.start_query("SELECT mid, rid FROM SeatSensor [ROWS 10]")
    up.until(lambda: up.query(query)["settled"])
    up.until(lambda: up.sites()["gw-2"]["counters"].get("readings"))
    assert up.pando("gateway", "stop", "gw-2", "--kill", "--data", str(up.data)).returncode == 0
    up.until(lambda: up.query(query)["status"] == "degraded")
    shown = up.query(query)
    assert (shown["waiting_for"], shown["settled"]) == (["gw-2"], False)
    site = up.sites()["gw-2"]
    assert site["last_known"]
    assert site["buffer"] is not None
    assert site["counters"]["readings"]
    assert up.pando("gateway", "restart", "gw-2", "--data", str(up.data)).returncode == 0
    up.until(lambda: up.query(query)["status"] == "running" and up.query(query)["settled"])
    assert up.sites()["gw-2"]["last_known"] is None
    up.stop_query(query)


def test_a_table_that_disappears_or_changes_its_columns(up: Federation) -> None:
    file = up.data / "site" / "tables" / "machines.csv"
    content = file.read_bytes()
    query = up.start_query("SELECT s.mid, m.cpu FROM SeatSensor s JOIN Machines m ON m.mid = s.mid")
    before = up.until(lambda: len(up.rows(query)) >= 40 and up.rows(query))

    def said(text: str) -> bool:
        found = up.query(query)
        return found["status"] == "degraded" and text in found["error"]

    def recovered() -> bool:
        found = up.query(query)
        return found["status"] == "running" and not found["error"]

    try:
        file.unlink()
        up.until(lambda: said("file 'machines.csv'"))
        up.until(lambda: "is missing" in up.sites()["static"]["detail"])
        assert up.rows(query) >= before, "the last rows stay"
        file.write_bytes(content)
        up.until(recovered)
        file.write_bytes(content.replace(b"cpu", b"processor", 1))
        up.until(lambda: said("no column cpu"))
        assert "was cpu renamed to processor?" in up.query(query)["error"]
        file.write_bytes(b"\x00\xff garbage")
        up.until(lambda: said("machines.csv") and not said("processor"))
        assert up.rows(query) >= before
    finally:
        file.write_bytes(content)
    up.until(recovered)
    mid, cpu = min(before)
    line = next(line for line in content.decode().splitlines() if line.startswith(f"{mid},"))
    file.write_text(content.decode().replace(line, line.replace(cpu, "Z80")))
    up.until(lambda: (mid, "Z80") in up.rows(query) and (mid, cpu) not in up.rows(query))
    file.write_bytes(content)
    up.until(lambda: (mid, cpu) in up.rows(query))
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


def test_spoiled_repeated_and_shuffled_messages(up: Federation, watched: Watched) -> None:
    url, died = broker_of(up.data), deaths(up)
    # The base reads the observations of a window of rows: without a reader there are none.
    last = up.start_query("SELECT mid, rid FROM SeatSensor [ROWS 3]")
    # Links are published when they change, and after a birth.
    rebirth = (Topics("demo").command("gw-1", "rebirth"), b"{}")
    kinds = {("gw", "obs"), ("gw", "link"), ("gw", "flow"), ("q", "x"), ("q", "out")}
    heard = record(url, 3.0, kinds, asking=[rebirth])
    by_sender = {(*kind_of(m), m.topic.split("/")[4]): m for m in heard}
    publish(url, [(m.topic, p) for m in by_sender.values() for p in spoiled(m, seed=7)])
    publish(url, [(message.topic, message.payload) for message in heard for _ in range(2)])
    publish(url, [(message.topic, message.payload) for message in reversed(heard)])
    watched.comes_back()
    up.until(lambda: everybody_is_live(up))
    assert deaths(up) == died
    up.until(lambda: {q["status"] for q in up.http.get("/api/queries").json()} == {"running"})
    up.stop_query(last)


def test_what_a_redefined_source_has_lost_is_named_until_its_ttl_is_over(
    up: Federation, seats: str
) -> None:
    up.until(
        lambda: up.query(seats)["status"] == "running" and up.query(seats)["settled"],
        90 + PATIENCE,
    )
    up.stop_query(seats)


def test_mosquitto_returns_after_a_long_silence(silenced: tuple[Watched, float]) -> None:
    watched, since = silenced
    left = since + LONG_SILENT_SECONDS - time.monotonic()
    time.sleep(max(left, 0.0))  # time passes: sites are silent for so long
    os.kill(watched.up.pid("broker"), signal.SIGCONT)
    watched.up.until(lambda: everybody_is_live(watched.up))
    watched.comes_back()
    assert watched.up.event("died") is None
