"""Routes of the optimizer's constants."""

from typing import Any

import httpx
import pytest

GOOD = {"value": 70.0, "low": 60.0, "high": 90.0}


def test_constants_are_calibrated_listed_and_forgotten(client: httpx.Client) -> None:
    body = {"values": {"join_microseconds": GOOD}, "place": "gateways"}
    answer = client.post("/api/costs", json=body)
    assert answer.status_code == 200
    (found,) = client.get("/api/costs").json()
    assert answer.json() == [found]
    assert (found["name"], found["place"]) == ("join_microseconds", "gateways")
    assert (found["value"], found["low"], found["high"]) == (70.0, 60.0, 90.0)
    assert (found["measured"], found["origin"]) == ("2023-11-14T22:13:20Z", "calibrated")
    assert client.delete("/api/costs").json() == {"forgotten": 1}
    assert client.get("/api/costs").json() == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"values": {"join_microseconds": {**GOOD, "low": -1.0}}}, "join_microseconds is from"),
        ({"values": {"join_microseconds": {**GOOD, "high": 1e300}}}, "join_microseconds is from"),
        ({"values": {"join_microseconds": {**GOOD, "value": 1.0}}}, "1 is not from 60 to 90"),
        ({"values": {"hop_energy": GOOD}}, "'hop_energy' is no constant"),
        ({"values": {"join_bytes": GOOD}, "place": "base"}, "no value of its own for 'base'"),
        ({"values": {"join_bytes": {"value": "many", "low": 1, "high": 1}}}, "values.join_bytes"),
        ({"values": {"join_bytes": {**GOOD, "value": True}}}, "values.join_bytes.value"),
        ({"values": {"join_bytes": {**GOOD, "low": "60"}}}, "values.join_bytes.low"),
        ({"values": {"join_bytes": {**GOOD, "rounds": 0}}}, "values.join_bytes.rounds"),
        ({"values": {"join_bytes": {**GOOD, "rounds": True}}}, "values.join_bytes.rounds"),
        ({"values": {"join_bytes": {**GOOD, "rounds": 10**7}}}, "values.join_bytes.rounds"),
        ({"values": {}}, "values"),
        ({"values": {"j" * 70: GOOD}}, "values"),
        ({"values": {f"c{n}": GOOD for n in range(101)}}, "values"),
    ],
)
def test_nonsense_is_refused_in_words(client: httpx.Client, body: Any, words: str) -> None:
    answer = client.post("/api/costs", json=body)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]
    assert client.get("/api/costs").json() == []


def test_whole_numbers_are_numbers_and_rounds_are_passed_on(
    client: httpx.Client, console: Any
) -> None:
    number = {"value": 70, "low": 60, "high": 90, "rounds": 12}
    answer = client.post("/api/costs", json={"values": {"join_bytes": number, "order_bytes": GOOD}})
    assert answer.status_code == 200
    found = console.coordinator.costs.set
    assert found["join_bytes", ""] == (70.0, 60.0, 90.0, 12)
    assert found["order_bytes", ""].rounds == 1


def test_nan_is_refused(client: httpx.Client) -> None:
    text = '{"values": {"join_microseconds": {"value": NaN, "low": 1, "high": 2}}}'
    answer = client.post("/api/costs", content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert client.get("/api/costs").json() == []


def test_hops_are_timed_or_it_is_told_why_not(client: httpx.Client, console: Any) -> None:
    assert client.post("/api/costs/hops").json() == {"milliseconds": [0.5] * 20}
    console.coordinator.costs.away = True
    answer = client.post("/api/costs/hops")
    assert answer.status_code == 503
    assert "not connected to its broker" in answer.json()["error"]["message"]
