"""The application as a whole: what it refuses, how it words errors, which headers it sends."""

from typing import Any

import httpx
import pytest


def test_every_answer_carries_the_policy(client: httpx.Client) -> None:
    for path in ("/", "/queries", "/api/health", "/static/js/api.js", "/nowhere"):
        headers = client.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"


def test_unknown_paths_get_the_common_error_object(client: httpx.Client) -> None:
    answer = client.get("/api/queries/none")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"
    assert "none" in answer.json()["error"]["message"]


def test_an_unknown_page_is_a_page_in_a_browser(client: httpx.Client) -> None:
    asks = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = client.get("/<b>nowhere", headers=asks)
    assert answer.status_code == 404
    assert "There is no page /&lt;b&gt;nowhere" in answer.text
    assert 'href="/queries"' in answer.text
    assert client.get("/api/nowhere", headers=asks).json()["error"]["code"] == "not_found"


def test_pages_of_other_origins_may_not_change_anything(
    client: httpx.Client, coordinator: Any
) -> None:
    body = {"text": "SELECT mid FROM SeatSensor"}
    refused = client.post("/api/statements", json=body, headers={"Origin": "http://evil.example"})
    assert refused.status_code == 403
    assert not coordinator.queries("user")
    own = {"Origin": str(client.base_url).rstrip("/")}
    assert client.post("/api/statements", json=body, headers=own).status_code == 200


def test_bodies_are_bounded(client: httpx.Client) -> None:
    answer = client.post("/api/validate", json={"text": "x" * 1_000_001})
    assert answer.status_code == 413
    chunked = client.post("/api/validate", content=iter([b"{}"]))
    assert chunked.status_code == 411


@pytest.mark.parametrize(
    ("body", "place"),
    [({}, "text"), ({"text": 3}, "text"), ({"text": "x" * 200_001}, "text")],
)
def test_wrong_bodies_are_explained(client: httpx.Client, body: Any, place: str) -> None:
    answer = client.post("/api/statements", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(f"{place}: ")


def test_a_broken_body_is_explained(client: httpx.Client) -> None:
    answer = client.post(
        "/api/statements", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid"


def test_the_interface_describes_itself(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/statements", "/api/queries/{query_id}/changes", "/api/route"} <= set(paths)
