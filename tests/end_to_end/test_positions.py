"""A calibration walk, and badges that keep their rooms, in a federation of two gateways."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from broker.broker_testing import BrokerProcess
from tests.end_to_end.federation import Federation, federation
from tests.end_to_end.peers import publish

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(400)]

HEARD = """
CREATE SOURCE heard (
  badge TEXT FROM 'id',
  receiver TEXT,
  rssi DOUBLE UNIT 'dBm'
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'home/{receiver}/BTtoMQTT/{mac}',
        ttl = '1 min');

CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
  WITH (source = 'csv', path = 'receiver.csv');
"""
RECEIVERS = "receiver,room,floor,x,y\nomg-hall,L101,1,4.0,9.0\nomg-lab,L102,1,14.0,9.0\n"


@dataclass
class House:
    """A federation, and the broker at which receivers publish what they hear."""

    federation: Federation
    broker: BrokerProcess


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("positions")
    (folder / "home").mkdir()
    with ExitStack() as stack:
        broker = stack.enter_context(BrokerProcess("embedded", folder / "home"))
        running = stack.enter_context(federation(folder / "data", "--no-spark", "--gateways", "2"))
        endpoint = ("gw-1", "home", "mqtt", f"address={broker.url}")
        done = running.pando("endpoint", "add", *endpoint, "--data", str(running.data))
        assert done.returncode == 0, done.stdout + done.stderr
        (running.data / "site" / "tables" / "receiver.csv").write_text(RECEIVERS)
        script = folder / "heard.sql"
        script.write_text(HEARD)
        done = running.pando("run", str(script))
        assert done.returncode == 0, done.stdout + done.stderr
        running.until(lambda: "heard" in running.served())
        yield House(running, broker)


def test_a_calibration_walk_becomes_positions(house: House) -> None:
    """Tables are created, what is heard is kept at a place, and a badge stands there."""
    running, url = house.federation, house.broker.url
    created = running.http.post("/api/calibration/tables", json={}).json()
    assert {"calibration_point", "radio_map"} <= set(created["created"])
    assert running.http.get("/api/calibration/tables").json() == {"missing": []}
    heard = running.http.post("/api/calibration/heard", json={}).json()["id"]
    placed = running.start_query("SELECT room, x FROM radio_map_position WHERE badge = 'eve'")
    points = running.http.post("/api/calibration/points", json={}).json()["id"]
    nearest = running.start_query("SELECT room FROM strongest_room WHERE badge = 'eve'")

    def levels() -> dict[str, float]:
        for receiver, rssi in (("omg-hall", -50.0), ("omg-lab", -80.0)):
            publish(url, (f"home/{receiver}/BTtoMQTT/EVE", {"id": "eve", "rssi": rssi}))
        return {r: rssi for badge, r, rssi, _ in running.rows(heard) if badge == "eve"}

    running.until(lambda: len(levels()) == 2)
    spot = {"room": "L101", "floor": 1, "x": 3.5, "y": 8.0, "levels": levels()}
    saved = running.http.post("/api/calibration", json=spot)
    assert saved.is_success, saved.text
    running.until(lambda: bool(levels()) and running.rows(placed) == {("L101", 3.5)})
    running.until(lambda: bool(levels()) and running.rows(nearest) == {("L101",)})
    point = saved.json()["point"]
    assert running.rows(points) == {(point, "L101", 1, 3.5, 8.0, 2)}
    removed = running.http.delete(f"/api/calibration/points/{point}")
    assert removed.is_success, removed.text
    running.until(lambda: running.rows(placed) == running.rows(points) == set())
    running.stop_query(placed)
    running.stop_query(nearest)


def test_a_badge_keeps_its_room_until_another_is_clearly_better(house: House) -> None:
    """The instants of readings end in a federation, too: the room of before is known."""
    running, url = house.federation, house.broker.url
    means = running.http.post("/api/calibration/heard", json={}).json()["id"]
    room = running.start_query("SELECT room FROM strongest_room WHERE badge = 'kim'")

    def hear(hall: float, lab: float) -> float:
        """Publish readings; return by how much the hall is better in the mean of 10 s."""
        for receiver, rssi in (("omg-hall", hall), ("omg-lab", lab)):
            publish(url, (f"home/{receiver}/BTtoMQTT/KIM", {"id": "kim", "rssi": rssi}))
        rows = running.rows(means)
        found: dict[str, float] = {r: rssi for badge, r, rssi, _ in rows if badge == "kim"}
        return found.get("omg-hall", -100.0) - found.get("omg-lab", -100.0)

    running.until(lambda: hear(-80.0, -50.0) < -20 and running.rows(room) == {("L102",)})
    running.until(lambda: hear(-58.0, -60.0) > 1.5)  # a stateless rule would say L101
    assert running.rows(room) == {("L102",)}
    running.until(lambda: hear(-50.0, -70.0) > 10 and running.rows(room) == {("L101",)})
    running.stop_query(room)
