"""Routes of the lake: what the static engine says, as JSON, and what it is asked."""

from typing import Any

import httpx

from streamsql.errors import DeploymentError
from streamsql.wire.stored_tables.lake_messages import ExportFormat, LakeTask
from tests.ui.kept_readings import NOON, hour_of_temperature, temperature


def test_the_lake_is_told_with_what_reads_it(client: httpx.Client, console: Any) -> None:
    console.coordinator.lake.tables = (temperature(),)
    client.post(
        "/api/statements",
        json={
            "text": "CREATE VIEW warm AS SELECT * FROM temperature;"
            "CREATE VIEW warm_rooms AS SELECT * FROM warm"
        },
    )
    found = client.get("/api/lake").json()
    (table,) = found["tables"]
    assert (table["table"], table["rows"], table["keep"]) == (
        "readings.temperature",
        86_400,
        "30 days",
    )
    assert table["last"] == "2026-10-28T12:00:00Z"
    assert table["columns"][1] == {
        "name": "celsius",
        "type": "double",
        "words": "celsius DOUBLE, in Cel",
    }
    readers = found["readers"]["temperature"]
    for view in ("warm", "warm_rooms"):  # the second reads it through the first
        assert {"kind": "view", "name": view} in readers
    assert found["pipeline"] is None


def test_a_job_is_begun_followed_and_cancelled(client: httpx.Client, console: Any) -> None:
    begun = client.post("/api/lake/jobs", json={"task": "compact", "table": "temperature"}).json()
    assert (begun["state"], begun["share"]) == ("waiting", 0.0)
    states = [client.get("/api/lake/jobs").json()[0] for _ in range(3)]
    assert [(each["state"], each["share"]) for each in states] == [
        ("running", 0.5),
        ("done", 1.0),
        ("done", 1.0),
    ]
    assert client.delete(f"/api/lake/jobs/{begun['id']}").status_code == 200
    assert console.coordinator.lake.asked[-1].job == begun["id"]


def test_an_export_names_its_interval(client: httpx.Client, console: Any) -> None:
    body = {
        "task": "export",
        "table": "temperature",
        "since": "2026-10-28T12:00:00",
        "until": "2026-10-28T14:00:00+02:00",
        "format": "csv",
    }
    assert client.post("/api/lake/jobs", json=body).status_code == 200
    asked = console.coordinator.lake.asked[-1]
    assert (asked.task, asked.since, asked.until, asked.form) == (
        LakeTask.EXPORT,
        NOON,
        NOON,
        ExportFormat.CSV,
    )
    wrongs = (
        {"task": "drop"},
        {"task": "export", "since": "soon"},
        {"task": "export", "format": ""},
    )
    for wrong in wrongs:
        assert client.post("/api/lake/jobs", json=wrong).status_code == 422


def test_a_sample_is_rows_and_a_plot(client: httpx.Client, console: Any) -> None:
    console.coordinator.lake.sample = hour_of_temperature()
    found = client.get("/api/lake/tables/readings.temperature/sample", params={"rows": 2}).json()
    assert found["rows"][0] == ["r1", 21.5, "2026-10-28T12:00:00Z"]
    assert len(found["buckets"]) == 119
    assert console.coordinator.lake.asked[-1].rows == 2
    many = client.get("/api/lake/tables/readings.temperature/sample", params={"rows": 201})
    assert many.status_code == 422


def test_without_a_lake_it_says_so(client: httpx.Client, console: Any) -> None:
    console.coordinator.lake.problem = DeploymentError(
        "the static engine has no lake", hint="set lake.catalog", code="no_lake"
    )
    answer = client.get("/api/lake")
    assert answer.status_code >= 400
    assert answer.json()["error"]["code"] == "no_lake"
