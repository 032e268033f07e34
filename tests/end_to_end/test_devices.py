"""Devices of three makers, attached by commands and statements, answer one query."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from broker.broker_testing import BrokerProcess
from host.mqtt import Message, open_client
from tests.end_to_end.federation import Federation, federation, wait
from tests.end_to_end.peers import beside
from tests.gateway.connectors.http.pages import Pages, answer, pages
from tests.gateway.connectors.modbus.meters import device, float32, modbus, registers
from tests.server_sent_events import Events

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(400)]

SOURCES = """
CREATE SOURCE contact (
  device TEXT,
  is_closed BOOLEAN FROM 'contact',
  battery DOUBLE UNIT '%',
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'zigbee2mqtt/{device}', only = 'contact');

CREATE LINK SOURCE zigbee (
  source TEXT FROM 'source.ieeeAddr',
  target TEXT FROM 'target.ieeeAddr',
  lqi INTEGER FROM 'linkquality'
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'zigbee2mqtt/bridge/response/networkmap',
        rows = 'data.value.links[*]', ttl = '12 min');

CREATE SOURCE meter (
  unit  INTEGER FROM '@unit',
  power DOUBLE  FROM 'input:12' FORMAT 'float32' UNIT 'W',
  KEY (unit)
) WITH (connector = 'modbus', endpoint = 'line-1', unit = '1', interval = '0.5 s');

CREATE SOURCE outlet (
  outlet TEXT    FROM '[0]',
  is_on  BOOLEAN FROM '[1]' VALUES ('ON' = TRUE, 'OFF' = FALSE),
  amps   DOUBLE  FROM '[2]' FORMAT 'leading' UNIT 'A',
  KEY (outlet)
) WITH (connector = 'http', endpoint = 'strips', path = '/outlets.htm', interval = '0.5 s',
        format = 'html', rows = 'table#outlets tr');
"""
HEARD = """
CREATE SOURCE heard (
  badge TEXT FROM 'id',
  receiver TEXT,
  rssi DOUBLE UNIT 'dBm'
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'home/{receiver}/BTtoMQTT/{mac}',
        ttl = '1 min');

CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
  WITH (source = 'csv', path = 'receiver.csv');

CREATE TABLE standing (device TEXT, room TEXT) WITH (source = 'csv', path = 'standing.csv');
"""
RECEIVERS = "receiver,room,floor,x,y\nomg-hall,L101,1,4.0,9.0\nomg-lab,L102,1,14.0,9.0\n"
STANDING = "device,room\n0x00158d0001dc1268,L101\n0x00124b0018ed2c5b,L102\n"
QUERY = """
SELECT c.device, m.power, o.amps FROM contact c, meter m, outlet o
WHERE NOT c.is_closed AND m.unit = 1 AND o.outlet = '1'
"""
SINK = """
CREATE SINK doors FROM SELECT device, is_closed, battery FROM contact
WITH (connector = 'mqtt', topic = 'building/doors/{device}', discovery = 'homeassistant')
"""
MAP = {
    "data": {
        "type": "raw",
        "value": {
            "links": [
                {
                    "linkquality": 120,
                    "source": {"ieeeAddr": "0x00158d0001dc1268"},
                    "target": {"ieeeAddr": "0x00124b0018ed2c5b"},
                }
            ]
        },
    },
    "status": "ok",
}


@dataclass
class House:
    """A federation, and the devices around it."""

    federation: Federation
    home: BrokerProcess
    pages: Pages


def page(amps: float) -> bytes:
    rows = f"<tr><td>1</td><td>ON</td><td>{amps} A</td></tr>"
    return answer(f"<html><table id=outlets>{rows}</table></html>", "Content-Type: text/html")


def meter() -> AbstractAsyncContextManager[int]:
    return modbus(device(1, inputs=[registers(12, *float32(1500.25))]))


def publish(url: str, *messages: tuple[str, object]) -> None:
    async def send() -> None:
        client = open_client(url, "zigbee2mqtt")
        await client.connect()
        tickets = [client.publish(topic, json.dumps(body).encode()) for topic, body in messages]
        for ticket in tickets:
            await ticket.wait(30)
        await client.close()

    asyncio.run(send())


def retained(url: str, root: str) -> dict[str, Any]:
    """Return what is retained on a broker below a level."""

    async def read() -> dict[str, Any]:
        client = open_client(url, "homeassistant")
        found: dict[str, Any] = {}
        last = asyncio.Event()

        def take(messages: list[Message]) -> None:
            found.update({m.topic: json.loads(m.payload) for m in messages if m.retain})
            if any(not message.retain for message in messages):
                last.set()

        client.on_messages(take)
        await client.connect()
        await client.subscribe(f"{root}/#")
        client.publish(f"{root}/end", b"")  # comes after all that is retained
        await asyncio.wait_for(last.wait(), 30)
        await client.close()
        return found

    return asyncio.run(read())


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("devices")
    (folder / "home").mkdir()
    with ExitStack() as stack:
        home = stack.enter_context(BrokerProcess("embedded", folder / "home"))
        port = stack.enter_context(beside(meter))
        web = stack.enter_context(beside(pages))
        web.put("/outlets.htm", page(0.4))
        running = stack.enter_context(federation(folder / "data", "--no-spark", "--gateways", "2"))
        for words in (
            ("gw-1", "home", "mqtt", f"address={home.url}"),
            ("gw-2", "line-1", "modbus", "host=127.0.0.1", f"port={port}"),
            ("gw-2", "strips", "http", f"url={web.url}"),
        ):
            done = running.pando("endpoint", "add", *words, "--data", str(running.data))
            assert done.returncode == 0, done.stdout + done.stderr
        script = Path(folder / "sources.sql")
        script.write_text(SOURCES)
        done = running.pando("run", str(script))
        assert done.returncode == 0, done.stdout + done.stderr
        running.until(lambda: served(running) >= {"contact", "zigbee", "meter", "outlet"})
        yield House(running, home, web)


def served(running: Federation) -> set[str]:
    """Return the sources that some gateway offers."""
    return {name for site in running.sites().values() for name in site.get("sources", ())}


def declare_heard(running: Federation, folder: Path) -> None:
    """Declare what badges are heard, once, with the tables of receivers and devices."""
    if "heard" in served(running):
        return
    for name, text in (("receiver.csv", RECEIVERS), ("standing.csv", STANDING)):
        (running.data / "site" / "tables" / name).write_text(text)
    script = folder / "heard.sql"
    script.write_text(HEARD)
    done = running.pando("run", str(script))
    assert done.returncode == 0, done.stdout + done.stderr
    running.until(lambda: "heard" in served(running))


def test_three_kinds_of_devices_answer_one_query(house: House) -> None:
    running, url = house.federation, house.home.url
    query = running.start_query(QUERY)
    publish(url, ("zigbee2mqtt/window", {"contact": False, "battery": 80}))
    running.until(lambda: running.rows(query) == {("window", 1500.25, 0.4)})
    house.pages.put("/outlets.htm", page(0.7))
    publish(url, ("zigbee2mqtt/front door", {"contact": False, "battery": 99}))
    expected = {("window", 1500.25, 0.7), ("front door", 1500.25, 0.7)}
    running.until(lambda: running.rows(query) == expected)
    publish(url, ("zigbee2mqtt/window", {"contact": True, "battery": 80}))
    running.until(lambda: running.rows(query) == {("front door", 1500.25, 0.7)})
    running.stop_query(query)


def test_their_links_are_links_of_the_federation(house: House) -> None:
    running = house.federation
    publish(house.home.url, ("zigbee2mqtt/bridge/response/networkmap", MAP))

    def ends() -> set[tuple[str, str]]:
        links = running.http.get("/api/links").json()
        return {(link["src"], link["dst"]) for link in links}

    running.until(lambda: ("0x00158d0001dc1268", "0x00124b0018ed2c5b") in ends())


def test_links_and_the_position_of_a_badge_stand_on_the_map(house: House, tmp_path: Path) -> None:
    running, url = house.federation, house.home.url
    declare_heard(running, tmp_path)
    shown = Events(f"{running.address}/api/map/events")

    def hear(hall: float, lab: float) -> None:
        for receiver, rssi in (("omg-hall", hall), ("omg-lab", lab)):
            publish(url, (f"home/{receiver}/BTtoMQTT/ANN", {"id": "ann", "rssi": rssi}))

    def rows(layer: str) -> list[dict[str, Any]]:
        """Return the rows of a layer as the map has them now."""
        found: dict[str, dict[str, Any]] = {}
        for kind, event in tuple(shown.seen):
            if kind == "layer" and event["layer"] == layer:
                found = {} if event["snapshot"] else found
                for change in event["changes"]:
                    key = json.dumps(change["row"])
                    if change["diff"] > 0:
                        found[key] = change["row"]
                    else:
                        found.pop(key, None)
        return [*found.values()]

    def room(badge: str) -> set[str]:
        return {row["room"] for row in rows("positions") if row["id"] == badge}

    publish(url, ("zigbee2mqtt/bridge/response/networkmap", MAP))
    ends = {"0x00158d0001dc1268", "0x00124b0018ed2c5b"}
    running.until(lambda: {row["id"] for row in rows("places")} == ends)
    running.until(lambda: any({row["src"], row["dst"]} == ends for row in rows("declared")))
    hear(-50.0, -80.0)

    def between_both() -> bool:
        ann = next((row for row in rows("positions") if row["id"] == "ann"), None)
        return ann is not None and 0.9 < ann["confidence"] < 1.0 and 4.0 < ann["x"] < 6.0

    running.until(between_both)
    assert room("ann") == {"L101"}
    for _ in range(3):
        hear(-90.0, -50.0)
    running.until(lambda: room("ann") == {"L102"})


def test_a_calibration_walk_becomes_positions(house: House, tmp_path: Path) -> None:
    """Tables are created, what is heard is kept at a place, and a badge stands there."""
    running, url = house.federation, house.home.url
    declare_heard(running, tmp_path)
    created = running.http.post("/api/calibration/tables", json={}).json()
    assert {"calibration_point", "radio_map"} <= set(created["created"])
    assert created["folder"] == str(running.data / "site" / "tables")
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
    assert (running.data / "site" / "tables" / "radio_map.csv").read_text() == (
        "point,receiver,rssi\n"
    )
    running.stop_query(placed)
    running.stop_query(nearest)


def test_a_badge_keeps_its_room_until_another_is_clearly_better(
    house: House, tmp_path: Path
) -> None:
    """The instants of readings end in a federation, too: the room of before is known."""
    running, url = house.federation, house.home.url
    declare_heard(running, tmp_path)
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


def test_a_column_takes_effect_without_a_restart(house: House) -> None:
    running, url = house.federation, house.home.url
    before = running.pids()
    old = running.start_query("SELECT device, battery FROM contact WHERE device = 'gate'")
    answered = running.http.post(
        "/api/statements",
        json={"text": "ALTER SOURCE contact ADD COLUMN lqi INTEGER FROM 'linkquality'"},
    )
    assert answered.is_success, answered.text
    new = running.start_query("SELECT device, lqi FROM contact WHERE device = 'gate'")
    gate = {"contact": True, "battery": 70, "linkquality": 61}

    def both() -> bool:
        publish(url, ("zigbee2mqtt/gate", gate))
        return running.rows(new) == {("gate", 61)} and running.rows(old) == {("gate", 70.0)}

    running.until(both)
    assert running.pids() == before
    running.stop_query(old)
    running.stop_query(new)


def test_home_assistant_finds_the_answer(house: House) -> None:
    running, url = house.federation, house.home.url
    settings = json.loads((running.data / "run" / "console.json").read_text())
    broker = str(settings["broker"])
    publish(url, ("zigbee2mqtt/shed", {"contact": True, "battery": 55}))
    answered = running.http.post("/api/statements", json={"text": SINK})
    assert answered.is_success, answered.text

    def row() -> Any:
        return retained(broker, "building").get("building/doors/shed")

    def told() -> str:
        """Return what the console says of the sink, its query and its source."""
        paths = ("/api/sinks", "/api/queries?origin=sink", "/api/sites")
        return "\n".join(running.http.get(path).text[:6000] for path in paths)

    wait(row, 25, told)
    assert row() == {"device": "shed", "is_closed": True, "battery": 55.0}
    configured = retained(broker, "homeassistant")
    shed = [config for config in configured.values() if "shed" in json.dumps(config)]
    assert {config.get("unit_of_measurement") for config in shed} >= {"%"}
    assert all(config["state_topic"] == "building/doors/shed" for config in shed)
