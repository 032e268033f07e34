"""Statements over REST: queries, errors with their place, definitions, sites."""

import contextlib
from typing import Any

import httpx
import pytest

from streamsql.errors import FederationError
from ui.cli.client import ConsoleClient

SEATS = "SELECT mid, weightLevel FROM SeatSensor WHERE weightLevel > 5.0"


def test_a_select_starts_a_query_that_can_be_read_explained_and_stopped(
    client: httpx.Client, coordinator: Any
) -> None:
    (result,) = client.post("/api/statements", json={"text": SEATS, "name": "seats"}).json()
    query = result["query"]
    assert (result["kind"], query["name"], query["origin"]) == ("query", "seats", "user")
    assert [c["name"] for c in query["columns"]] == ["mid", "weightlevel"]
    coordinator.push("seats", (1, ("m1", 70.5)))
    shown = client.get("/api/queries/seats/rows").json()
    assert shown["rows"] == [{"mid": "m1", "weightlevel": 70.5}]
    assert shown["query"]["rows"] == 1
    assert client.get(f"/api/queries/{query['id']}").json()["last_change"].endswith("Z")
    assert "Fragment" in client.get("/api/queries/seats/explain").json()["text"]
    drawn = client.get("/api/queries/seats/explain?format=dot").json()
    assert drawn["text"].startswith("digraph")
    assert client.get("/api/queries/seats/explain?format=svg").status_code == 422
    assert client.delete("/api/queries/seats").json()["status"] == "stopped"
    assert client.get("/api/queries/seats").status_code == 404


def test_a_script_answers_statement_by_statement(client: httpx.Client) -> None:
    text = (
        "CREATE VIEW warm AS SELECT rid FROM Temperature WHERE celsius > 20.0; SELECT * FROM warm"
    )
    kinds = [
        result["kind"] for result in client.post("/api/statements", json={"text": text}).json()
    ]
    assert kinds == ["done", "query"]


def test_a_wrong_query_gets_line_column_text_and_hint(client: httpx.Client) -> None:
    answer = client.post(
        "/api/statements", json={"text": "SELECT mid,\n  wieghtLevel FROM SeatSensor"}
    )
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["line"], error["column"], error["text"]) == (2, 3, "wieghtLevel")
    assert "weightlevel" in error["hint"].lower()
    assert error["code"] == "unknown_column"


def test_an_error_in_a_script_tells_what_was_done_before(client: httpx.Client) -> None:
    text = "CREATE VIEW w AS SELECT mid FROM SeatSensor;\nSELECT mid FROM w;\nDROP QUERY q9"
    error = client.post("/api/statements", json={"text": text}).json()["error"]
    assert len(error["carried_out"]) == 2
    assert error["carried_out"][0].endswith("DROP VIEW w removes it")
    query = client.get("/api/queries").json()[-1]["id"]
    assert error["carried_out"][1] == f"line 2: query {query} runs; DROP QUERY {query} stops it"
    told = ConsoleClient(str(client.base_url))
    with contextlib.closing(told), pytest.raises(FederationError) as caught:
        told.post("/api/statements", {"text": "SELECT mid FROM w; SELECT x FROM w"})
    assert caught.value.carried_out[0].startswith("line 1: query q")
    with contextlib.closing(ConsoleClient(told.address)) as again, pytest.raises(FederationError):
        again.post("/api/statements", {"text": "SELEC"})


def test_validation_reports_the_same_place_without_running(
    client: httpx.Client, coordinator: Any
) -> None:
    answer = client.post("/api/validate", json={"text": "SELECT nope FROM SeatSensor"}).json()
    assert [(d["line"], d["column"], d["text"]) for d in answer["diagnoses"]] == [(1, 8, "nope")]
    assert answer["diagnoses"][0]["code"] == "unknown_column"
    good = client.post("/api/validate", json={"text": SEATS}).json()
    assert good == {"diagnoses": [], "columns": ["mid", "weightlevel"], "warnings": []}
    assert not coordinator.queries("user")


def test_places_are_completed_from_the_catalog(client: httpx.Client) -> None:
    text = "SELECT s.w FROM SeatSensor s"
    found = client.post("/api/complete", json={"text": text, "offset": 10}).json()
    assert found == [{"label": "weightlevel", "kind": "column", "detail": "seatsensor"}]


def test_the_list_can_be_narrowed_by_origin(client: httpx.Client) -> None:
    client.post("/api/statements", json={"text": SEATS, "origin": "session"})
    client.post("/api/statements", json={"text": SEATS})
    assert [q["id"] for q in client.get("/api/queries?origin=session").json()]
    assert client.get("/api/queries?origin=oracle").status_code == 422
    origins = {q["origin"] for q in client.get("/api/queries").json()}
    assert {"session", "user"} <= origins
    refused = client.post("/api/statements", json={"text": SEATS, "origin": "map"})
    assert refused.status_code == 422


def test_definitions_have_columns_also_those_of_views(client: httpx.Client) -> None:
    tables = client.get("/api/definitions?kind=table").json()
    assert {"machines", "rooms"} <= {d["name"] for d in tables}
    assert {d["kind"] for d in tables} == {"table"}
    free = client.get("/api/definitions/FreeMachines").json()
    assert free["columns"][:2] == [{"name": n, "type": "TEXT"} for n in ("mid", "rid")]
    assert {"name": "level", "type": "INTEGER"} in free["columns"]
    seat = client.get("/api/definitions/seatsensor").json()
    assert seat["key"] == ["mid"]
    assert {"name": "weightlevel", "type": "DOUBLE"} in seat["columns"]
    assert client.get("/api/definitions/nothing").status_code == 404
    assert client.get("/api/definitions?kind=bogus").status_code == 422


def test_sites_say_how_fresh_they_are(client: httpx.Client, coordinator: Any) -> None:
    coordinator.set_site("gw-2", "stale")
    sites = {site["site"]: site for site in client.get("/api/sites").json()}
    assert sites["gw-1"]["freshness"] == "live"
    assert (sites["gw-2"]["online"], sites["gw-2"]["freshness"]) == (False, "stale")
    assert sites["gw-1"]["buffer"]["hours_left"] == 5.0
    assert sites["gw-1"]["connectors"][0]["last_error"] == "odd"
    assert sites["gw-1"]["connectors"][0]["note"] == "the replay is over"


def test_links_are_listed(client: httpx.Client) -> None:
    assert client.get("/api/links").json() == [
        {"src": "m-1", "dst": "m-2", "cost": 1.25, "source": "link", "gateway": "gw-1"},
        {"src": "m-2", "dst": "m-1", "cost": None, "source": "link", "gateway": "gw-1"},
    ]


def test_the_map_file_is_given_as_it_is(client: httpx.Client, site_file: Any) -> None:
    answer = client.get("/api/site.geojson")
    assert answer.headers["content-type"] == "application/geo+json"
    assert answer.content == site_file.read_bytes()
