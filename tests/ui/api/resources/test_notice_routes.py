"""Alarms and displays over REST and events; subscriptions with progress and upserts."""

from typing import Any

import httpx

from federated_optimizer.coordinator.contract.coordinator_model import ChangeBatch

ALARM = "CREATE ALARM hot AS SELECT rid, celsius FROM Temperature WHERE celsius > 40 SEVERITY '{}'"
SEATS = "SELECT mid, weightLevel FROM SeatSensor"


def run(client: httpx.Client, text: str) -> Any:
    answer = client.post("/api/statements", json={"text": text})
    assert answer.is_success, answer.text
    return answer.json()


def test_alarms_are_listed_counted_and_acknowledged(client: httpx.Client, console: Any) -> None:
    run(client, ALARM.format("critical"))
    none = {"attention": 0, "raised": 0, "unknown": 0, "new": 0, "severity": None}
    assert client.get("/api/alarms/count").json() == none
    console.do(lambda: console.coordinator.raise_alarm("hot", ("L101", 41.5)))
    count = {**none, "attention": 1, "raised": 1, "new": 1, "severity": "critical"}
    assert client.get("/api/alarms/count").json() == count
    (alarm,) = client.get("/api/alarms").json()
    assert (alarm["alarm"], alarm["severity"], alarm["state"]) == ("hot", "critical", "raised")
    (row,) = alarm["rows"]
    assert (row["row"], row["state"]) == ({"rid": "L101", "celsius": 41.5}, "raised")
    answer = client.post(f"/api/alarms/rows/{row['id']}/acknowledge")
    assert answer.json()["state"] == "acknowledged"
    assert client.get("/api/alarms/count").json() == {**count, "new": 0}
    assert client.post("/api/alarms/rows/77/acknowledge").status_code == 404
    (shown,) = client.get("/api/definitions", params={"kind": "alarm"}).json()
    assert (shown["name"], shown["severity"]) == ("hot", "critical")


def test_unknown_and_unacknowledged_rows_need_attention(client: httpx.Client, console: Any) -> None:
    run(client, ALARM.format("warning"))
    raise_alarm = console.coordinator.raise_alarm
    console.do(lambda: raise_alarm("hot", ("L101", 41.5), ("L102", 42.0)))
    console.do(lambda: raise_alarm("hot", ("L101", 41.5), in_doubt=True))
    (alarm,) = client.get("/api/alarms").json()
    assert (alarm["raised"], alarm["unknown"], alarm["away"]) == (1, 1, ["gw-2"])
    lost = next(row for row in alarm["rows"] if row["state"] == "unknown")
    assert (lost["row"]["rid"], lost["unknown"] is not None) == ("L102", True)
    assert alarm["unsettled_since"] is None
    console.coordinator.away = ()
    (alarm,) = client.get("/api/alarms").json()
    assert (alarm["away"], alarm["unsettled_since"]) == ([], "2026-01-01T09:00:00Z")
    console.do(lambda: raise_alarm("hot", ("L102", 42.0)))
    (alarm,) = client.get("/api/alarms").json()
    assert alarm["unsettled_since"] is None
    assert [(row["row"]["rid"], row["state"]) for row in alarm["rows"]] == [
        ("L102", "raised"),
        ("L101", "cleared"),
    ]
    count = {"attention": 2, "raised": 1, "unknown": 0, "new": 2, "severity": "warning"}
    assert client.get("/api/alarms/count").json() == count
    answer = client.post("/api/alarms/hot/acknowledge")
    assert answer.json() == {"alarm": "hot", "acknowledged": 2}
    count = {"attention": 1, "raised": 1, "unknown": 0, "new": 0, "severity": "warning"}
    assert client.get("/api/alarms/count").json() == count
    assert client.post("/api/alarms/cold/acknowledge").status_code == 404


def test_alarms_come_as_events(client: httpx.Client, console: Any, events: Any) -> None:
    run(client, ALARM.format("info"))
    stream = events(f"{console.address}/api/alarms/events")
    stream.wait("alarms", lambda alarms: alarms[0]["state"] == "clear")
    console.do(lambda: console.coordinator.raise_alarm("hot", ("L101", 41.5)))
    stream.wait("alarms", lambda alarms: alarms[0]["raised"] == 1)
    console.do(lambda: console.coordinator.raise_alarm("hot"))
    stream.wait("alarms", lambda alarms: [r["state"] for r in alarms[0]["rows"]] == ["cleared"])


def test_a_display_shows_its_answers_bounded_and_live(
    client: httpx.Client, console: Any, events: Any
) -> None:
    run(client, "CREATE DISPLAY lobby WITH (floor = 0, x = 3, y = 4, rows = 2, title = 'Lobby')")
    stream = events(f"{console.address}/api/displays/events?name=lobby")
    stream.wait("display", lambda display: display["queries"] == [])
    (result,) = run(client, f"{SEATS} OUTPUT TO DISPLAY lobby")
    assert result["query"]["display"] == "lobby"
    query = result["query"]["id"]
    rows = [("m1", 1.0), ("m2", 2.0), ("m3", 3.0)]
    console.push(query, *((1, row) for row in rows))
    shown = stream.wait("display", lambda d: d["queries"] and d["queries"][0]["total"] == 3)
    assert shown["title"] == "Lobby"
    assert [row["mid"] for row in shown["queries"][0]["first"]] == ["m1", "m2"]
    (listed,) = client.get("/api/displays").json()
    assert (listed["name"], [q["id"] for q in listed["queries"]]) == ("lobby", [query])
    assert client.get("/api/displays/lobby").json()["x"] == 3.0
    assert client.get("/api/displays/nowhere").status_code == 404
    assert 'href="/displays/lobby"' in client.get("/displays").text
    missing = client.get("/displays/nowhere")
    assert missing.status_code == 404
    assert "There is no display nowhere" in missing.text
    run(client, "DROP DISPLAY lobby")
    stream.wait("gone", lambda gone: gone == {"name": "lobby"})
    stream = events(f"{console.address}/api/displays/events?name=nowhere")
    stream.wait("gone")


def test_subscribe_says_how_its_readers_are_told(
    client: httpx.Client, console: Any, events: Any
) -> None:
    text = f"SUBSCRIBE TO ({SEATS}) WITH (SNAPSHOT = false, PROGRESS) ENVELOPE UPSERT (KEY (mid))"
    (result,) = run(client, text)
    query = result["query"]["id"]
    assert result["query"]["subscription"] == {
        "snapshot": False,
        "progress": True,
        "key": ["mid"],
    }
    console.push(query, (1, ("m1", 1.0)))
    stream = events(f"{console.address}/api/queries/{query}/changes")
    other = events(f"{console.address}/api/queries/{query}/changes?snapshot=true&progress=false")
    first = other.wait("snapshot")["upserts"]
    assert [(u["key"], u["row"]["weightlevel"]) for u in first] == [({"mid": "m1"}, 1.0)]
    console.push(query, (1, ("m1", 2.0)))
    console.push(query, (-1, ("m1", 1.0)))
    for reader in (stream, other):
        (upsert,) = reader.wait("change")["upserts"]
        assert (upsert["key"], upsert["row"]) == ({"mid": "m1"}, {"mid": "m1", "weightlevel": 2.0})
    console.push(query, (-1, ("m1", 2.0)))
    stream.wait("change", lambda change: change["upserts"][0]["row"] is None)
    assert "snapshot" not in [kind for kind, _ in stream.seen]
    batch = ChangeBatch(query, (), progress=1_000_000)

    def tell() -> None:
        for reader in console.coordinator.running[query].readers:
            if reader.progress:
                reader.deliver(batch)

    console.do(tell)
    assert stream.wait("progress")["up_to"] == "1970-01-01T00:00:01Z"
    assert "progress" not in [kind for kind, _ in other.seen]


def test_a_key_that_is_not_unique_ends_the_subscription_with_the_row(
    client: httpx.Client, console: Any, events: Any
) -> None:
    (result,) = run(client, "SELECT rid, celsius FROM Temperature")
    query = result["query"]["id"]
    stream = events(f"{console.address}/api/queries/{query}/changes?key=rid")
    stream.wait("snapshot")
    console.push(query, (1, ("L101", 20.0)), (1, ("L101", 21.0)))
    error = stream.wait("refused")["error"]
    assert error["code"] == "key_not_unique"
    assert "rid = L101 has 2 rows, (L101, 20.0) and (L101, 21.0)" in error["message"]
    stream.close()
    assert stream.ended
    wrong = client.get(f"/api/queries/{query}/changes", params={"key": "room"})
    assert wrong.status_code == 400
    assert wrong.json()["error"]["code"] == "unknown_column"
