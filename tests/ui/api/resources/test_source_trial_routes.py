"""REST: trials of sources; a gateway's reports are what a test says they are."""

import json
from typing import Any

import httpx
import pytest

from streamsql.data.types import DataType
from streamsql.mapping.offers import OfferedRecord, OfferedValue
from streamsql.wire.trial_messages import STOP, TRIAL, TrialSample

NOON = 1_780_308_000_000_000
STATEMENT = (
    "CREATE SOURCE plug (device TEXT, power DOUBLE FROM 'ENERGY.Power' UNIT 'W', KEY (device)) "
    "WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{device}/SENSOR')"
)


def sample(topic: str, payload: object, **more: Any) -> TrialSample:
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return TrialSample(
        NOON, "listening", content, len(content), facts={"topic": topic, "retained": False}, **more
    )


KITCHEN = sample("tele/kitchen/SENSOR", {"ENERGY": {"Power": 42}})
CELLAR = sample("tele/cellar/SENSOR", {"ENERGY": {"Power": "much"}})

OFFERED = OfferedRecord(
    "Press",
    (
        OfferedValue("Heat", "ns=2;s=Press.Heat", DataType.DOUBLE, "°C", 180.5),
        OfferedValue("Jobs", "ns=2;s=Press.Jobs", DataType.INTEGER, sample=12),
    ),
)
PRESS = sample("", {"ns=2;s=Press.Heat": 180.5, "ns=2;s=Press.Jobs": 12}, is_record=True)


def begin(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/api/sources/trials", json=body)
    assert answer.status_code == 201, answer.text
    begun: dict[str, Any] = answer.json()
    return begun


def test_what_comes_is_seen_as_it_comes_and_proposed(client: httpx.Client, console: Any) -> None:
    trial = begin(client, endpoint="home", options={"topic": "tele/#"})
    assert (trial["gateway"], trial["done"], trial["samples"]) == ("gw-1", False, [])
    path = f"/api/sources/trials/{trial['id']}"
    console.do(lambda: console.coordinator.report(KITCHEN, notes=("subscribed",)))
    first = client.get(path).json()
    assert first["notes"] == ["subscribed"]
    assert first["samples"][0]["topic"] == "tele/kitchen/SENSOR"
    assert json.loads(first["samples"][0]["payload"]) == {"ENERGY": {"Power": 42}}
    console.do(lambda: console.coordinator.report(number=1, done=True, dropped=3))
    then = client.get(path, params={"since": 1}).json()
    assert (then["samples"], then["heard"], then["done"], then["dropped"]) == ([], 1, True, 3)
    (proposal,) = client.post(f"{path}/proposals", json={"zone": "Europe/Berlin"}).json()
    assert "topic = 'tele/{device}/SENSOR'" in proposal["text"]
    tried = client.post("/api/sources/try", json={"trial": trial["id"], "text": proposal["text"]})
    assert tried.json()["samples"] == [
        {"rows": [{"device": "kitchen", "power": 42.0}], "problems": [], "ignored": False}
    ]
    assert client.get("/api/definitions", params={"kind": "source"}).text.count("kitchen") == 0


def test_a_statement_is_tried_with_its_rows_and_problems(
    client: httpx.Client, console: Any
) -> None:
    trial = begin(client, text=STATEMENT, gateway="gw-2", seconds=5)
    (site, command) = console.coordinator.tried[-1]
    assert site == "gw-2"
    assert json.loads(command.arguments[TRIAL])["seconds"] == 5.0
    rows = (("kitchen", 42.0),)
    console.do(
        lambda: console.coordinator.report(
            sample("tele/kitchen/SENSOR", {}, rows=rows, problems=("column power: odd",))
        )
    )
    (shown,) = client.get(f"/api/sources/trials/{trial['id']}").json()["samples"]
    assert shown["rows"] == [{"device": "kitchen", "power": 42.0}]
    assert shown["problems"] == ["column power: odd"]


def test_typing_maps_what_has_come_without_asking_the_gateway(
    client: httpx.Client, console: Any
) -> None:
    trial = begin(client, endpoint="home", options={"topic": "tele/#"})
    console.do(lambda: console.coordinator.report(KITCHEN, CELLAR, sample("tele/x/LWT", b"Online")))
    asked = len(console.coordinator.tried)
    body = {"trial": trial["id"], "text": STATEMENT}
    good, bad, other = client.post("/api/sources/try", json=body).json()["samples"]
    assert good["rows"] == [{"device": "kitchen", "power": 42.0}]
    assert bad["rows"] == [{"device": "cellar", "power": None}]
    assert "'much' is no number" in bad["problems"][0]
    assert other == {"rows": [], "problems": [], "ignored": True}
    body["text"] = STATEMENT.replace("UNIT 'W'", "UNIT 'Watts!'")
    error = client.post("/api/sources/try", json=body)
    assert error.status_code == 400
    assert error.json()["error"]["line"] == 1
    assert "no unit 'Watts!'" in error.json()["error"]["message"]
    assert len(console.coordinator.tried) == asked


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"endpoint": "away"}, "no gateway that is online has an endpoint 'away'"),
        ({"endpoint": "home", "gateway": "gw-9"}, "gateway gw-9 has no endpoint 'home'"),
        ({"endpoint": "meter"}, "connector modbus reads the addresses in columns"),
        ({"endpoint": "meter", "discover": True}, "devices announce themselves on brokers"),
        ({"text": "SELECT 1"}, "only CREATE SOURCE can be tried"),
        ({"text": "CREATE SOURCE x (a TEXT)"}, "has no connector"),
        ({"endpoint": "home", "seconds": 31}, "seconds"),
        ({"endpoint": "home", "payloads": 0}, "payloads"),
    ],
)
def test_what_cannot_be_tried_is_refused(
    client: httpx.Client, body: dict[str, Any], words: str
) -> None:
    answer = client.post("/api/sources/trials", json=body)
    assert answer.status_code in (400, 409, 422)
    assert words in answer.json()["error"]["message"]


def test_payloads_that_are_no_text_are_shown_in_base64(client: httpx.Client, console: Any) -> None:
    trial = begin(client, endpoint="home", options={"topic": "#"})
    long = sample("b", b"\xc3\xa4" * 5_000)
    console.do(lambda: console.coordinator.report(sample("a", b"\x08\xff\x00"), long))
    binary, text = client.get(f"/api/sources/trials/{trial['id']}").json()["samples"]
    assert (binary["payload"], binary["is_text"], binary["cut"]) == ("CP8A", False, False)
    assert (text["is_text"], text["cut"], len(text["payload"])) == (True, True, 4_000)


def test_a_trial_can_be_stopped_and_an_unknown_one_is_said(
    client: httpx.Client, console: Any
) -> None:
    trial = begin(client, endpoint="home", options={"topic": "#"})
    assert client.delete(f"/api/sources/trials/{trial['id']}").is_success
    _, command = console.coordinator.tried[-1]
    assert (command.id, command.arguments) == (trial["id"], {STOP: True})
    for method, path in (
        ("GET", "trials/x"),
        ("DELETE", "trials/x"),
        ("POST", "trials/x/proposals"),
        ("POST", "try"),
    ):
        body = {"trial": "x", "text": STATEMENT} if method == "POST" else None
        answer = client.request(method, f"/api/sources/{path}", json=body)
        assert answer.status_code == 404
        assert "there is no trial 'x'" in answer.json()["error"]["message"]


def test_devices_that_announce_themselves_become_statements(
    client: httpx.Client, console: Any
) -> None:
    trial = begin(client, endpoint="home", discover=True)
    exposes = [{"type": "numeric", "property": "temperature", "unit": "°C", "access": 1}]
    listed = [
        {"friendly_name": name, "definition": {"model": "T1", "exposes": exposes}}
        for name in ("hall", "attic")
    ]
    console.do(lambda: console.coordinator.report(sample("zigbee2mqtt/bridge/devices", listed)))
    (proposal,) = client.post(f"/api/sources/trials/{trial['id']}/proposals", json={}).json()
    assert (proposal["name"], proposal["topics"], proposal["samples"]) == (
        "t1",
        ["hall", "attic"],
        2,
    )
    adopted = client.post("/api/statements", json={"text": proposal["text"]})
    assert adopted.is_success
    assert client.get("/api/definitions/t1").is_success


def test_what_a_device_offers_is_told_when_all_is_known_and_proposed_as_chosen(
    client: httpx.Client, console: Any
) -> None:
    trial = begin(client, endpoint="press")
    path = f"/api/sources/trials/{trial['id']}"
    assert trial["browses"]
    console.do(lambda: console.coordinator.report(PRESS, offers=(OFFERED,)))
    assert client.get(path).json()["offers"] == []
    console.do(lambda: console.coordinator.report(number=1, done=True))
    (record,) = client.get(path).json()["offers"]
    assert record["values"][0] == {
        "name": "Heat",
        "address": "ns=2;s=Press.Heat",
        "type": "DOUBLE",
        "unit": "°C",
        "sample": 180.5,
    }
    (whole,) = client.post(f"{path}/proposals", json={}).json()
    assert [column["name"] for column in whole["columns"]] == ["heat", "jobs"]
    chosen = {"Press": ["ns=2;s=Press.Jobs"]}
    (part,) = client.post(f"{path}/proposals", json={"chosen": chosen}).json()
    assert [column["name"] for column in part["columns"]] == ["jobs"]
    assert "connector = 'opcua', endpoint = 'press'" in part["text"]
    tried = client.post("/api/sources/try", json={"trial": trial["id"], "text": whole["text"]})
    assert tried.json()["samples"][0]["rows"] == [{"heat": 180.5, "jobs": 12}]


def test_devices_that_cannot_tell_are_said(client: httpx.Client) -> None:
    answer = client.post("/api/sources/trials", json={"endpoint": "meter"})
    assert answer.status_code == 409
    assert "cannot list what there is" in answer.text
