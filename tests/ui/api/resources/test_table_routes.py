"""Routes of stored tables: what the static engine says, as JSON."""

from typing import Any

import httpx

from streamsql.errors import DeploymentError
from streamsql.wire.stored_tables.lake_messages import LakeTask
from tests.ui.kept_readings import with_leases
from ui.api.lineage import MOST_QUERIES


def test_tables_are_told_with_what_reads_them(client: httpx.Client, console: Any) -> None:
    with_leases(console.coordinator.lake)
    text = (
        "CREATE TABLE leases (tenant TEXT, seats INTEGER) WITH (source = 'csv', path = 'x.csv');"
        "CREATE VIEW large AS SELECT * FROM leases WHERE seats > 8"
    )
    assert client.post("/api/statements", json={"text": text}).status_code == 200
    found = client.get("/api/tables").json()
    assert found["tables"] == [
        {
            "name": "leases",
            "source": "csv",
            "place": "leases.csv",
            "rows": 3,
            "bytes": 1_500,
            "read": "2026-10-28T12:00:00Z",
            "refresh": 300.0,
            "columns": [{"name": "tenant", "type": "TEXT"}, {"name": "seats", "type": "INTEGER"}],
            "problem": "",
            "told": True,
        }
    ]
    assert found["more"] == 0
    # Of what the page does not list, nobody is told.
    assert found["readers"] == {"leases": [{"kind": "view", "name": "large"}]}


def test_of_many_queries_over_a_table_the_newest_are_named(
    client: httpx.Client, console: Any
) -> None:
    with_leases(console.coordinator.lake)
    text = "CREATE TABLE leases (tenant TEXT, seats INTEGER) WITH (source = 'csv', path = 'x.csv')"
    assert client.post("/api/statements", json={"text": text}).status_code == 200
    for number in range(MOST_QUERIES + 1):
        query = f"SELECT tenant FROM leases WHERE seats > {number}"
        assert client.post("/api/statements", json={"text": query}).status_code == 200
    readers = client.get("/api/tables").json()["readers"]["leases"]
    assert [reader["kind"] for reader in readers] == ["query"] * MOST_QUERIES + ["more"]
    assert len({reader["name"] for reader in readers}) == MOST_QUERIES + 1


def test_a_look_at_a_table_has_rows_and_bars(client: httpx.Client, console: Any) -> None:
    with_leases(console.coordinator.lake)
    found = client.get("/api/tables/leases/sample?rows=7").json()
    assert (found["columns"], found["looked"], found["whole"]) == (["tenant", "seats"], 3, True)
    assert found["rows"][1] == ["b", None]
    assert found["figures"][1] == {
        "name": "seats",
        "nulls": 1,
        "distinct": 2,
        "least": "4",
        "greatest": "9",
        "bars": [{"label": "4", "count": 1}, {"label": "9", "count": 1}],
        "others": 0,
    }
    asked = console.coordinator.lake.asked[-1]
    assert (asked.task, asked.table, asked.rows) == (LakeTask.STORED, "leases", 7)
    assert client.get("/api/tables/leases/sample?rows=201").status_code == 422


def test_what_cannot_be_read_is_said(client: httpx.Client, console: Any) -> None:
    console.coordinator.lake.problem = DeploymentError(
        "table leases: file x.csv is not there", hint="check the path", code="table_missing"
    )
    refused = client.get("/api/tables/leases/sample")
    assert refused.status_code == 409
    assert refused.json()["error"]["message"] == "table leases: file x.csv is not there"
