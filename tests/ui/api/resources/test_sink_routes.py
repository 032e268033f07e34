"""Sinks over REST."""

from typing import Any

import httpx

from federated_optimizer.coordinator.contract.sink_model import DeadLetter, SinkInfo, SinkStatus
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SCHEMA = Schema.of(("desk", DataType.TEXT), ("ts", DataType.TIMESTAMP))
SINK = SinkDefinition(
    *("free", "SELECT desk,\n ts", SinkConnector.WEBHOOK, SinkMode.UPSERT),
    endpoint="hook",
    key=("desk",),
    units=("", "s"),
)
DEAD = (
    DeadLetter(("d1",), ("d1", 0), 0, "HTTP 500", 10, 1_767_225_600_000_000),
    DeadLetter(("d2",), None, 0, "HTTP 410", 1, 1_767_225_600_000_000),
)
INFO = SinkInfo(
    *(SINK, "q7", "running", SCHEMA, SinkStatus.FAILING, "HTTP 500"),
    delivered=3,
    waiting=2,
    unknown=1,
    dead=DEAD,
    last=0,
)


def test_sinks_are_listed_and_shown(client: httpx.Client, console: Any) -> None:
    assert client.get("/api/sinks").json() == []
    console.coordinator.sinks.listed = (INFO,)
    (listed,) = client.get("/api/sinks").json()
    assert client.get("/api/sinks/free").json() == listed
    assert (listed["sink"], listed["to"], listed["mode"]) == ("free", "hook", "upsert")
    assert (listed["status"], listed["problem"]) == ("failing", "HTTP 500")
    assert (listed["delivered"], listed["waiting"], listed["unknown"]) == (3, 2, 1)
    assert (listed["last"], listed["units"]) == ("1970-01-01T00:00:00Z", {"desk": "", "ts": "s"})
    assert listed["dead_letters"] == [
        {
            "key": {"desk": "d1"},
            "row": {"desk": "d1", "ts": "1970-01-01T00:00:00Z"},
            "reason": "HTTP 500",
            "tries": 10,
            "given_up": "2026-01-01T00:00:00Z",
        },
        {
            "key": {"desk": "d2"},
            "row": None,
            "reason": "HTTP 410",
            "tries": 1,
            "given_up": "2026-01-01T00:00:00Z",
        },
    ]
    assert client.get("/api/sinks/other").status_code == 404


def test_dead_letters_are_sent_again(client: httpx.Client, console: Any) -> None:
    console.coordinator.sinks.listed = (INFO,)
    assert client.post("/api/sinks/free/retry").json() == {"sink": "free", "retried": 2}
    assert console.coordinator.sinks.retried == ["free"]
    assert client.post("/api/sinks/other/retry").status_code == 404


def test_dead_letters_are_listed_and_discarded(client: httpx.Client, console: Any) -> None:
    console.coordinator.sinks.listed = (INFO,)
    letters = client.get("/api/sinks/free/dead").json()
    assert letters == client.get("/api/sinks/free").json()["dead_letters"]
    assert client.get("/api/sinks/other/dead").status_code == 404
    assert client.post("/api/sinks/free/discard").json() == {"sink": "free", "discarded": 2}
    assert console.coordinator.sinks.discarded == ["free"]
    assert client.post("/api/sinks/other/discard").status_code == 404
