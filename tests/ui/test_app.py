"""The application as a whole: what it refuses, how it words errors, which headers it sends."""

from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from ui.console_names import Hosts
from ui.console_settings import ConsoleSettings


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
    parts = (b"x" * 10_000 for _ in range(101))
    chunked = client.post("/api/validate", content=parts)
    assert chunked.status_code == 413
    assert {found.json()["error"]["code"] for found in (answer, chunked)} == {"too_large"}


def test_a_body_of_unknown_length_is_taken_when_it_is_small(client: httpx.Client) -> None:
    parts = iter([b'{"text": "SELECT mid', b' FROM SeatSensor"}'])
    answer = client.post(
        "/api/validate", content=parts, headers={"Content-Type": "application/json"}
    )
    assert answer.json()["diagnoses"] == []


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST.:1234", 200),
        ("127.0.0.1:80", 200),
        ("127.8.8.8", 200),
        ("[::1]:8420", 200),
        ("evil.example", 421),
        ("evil.example:8420", 421),
        ("localhost.evil.example", 421),
        ("evil.example@localhost", 421),
        ("localhost@evil.example", 421),
        ("192.168.1.5", 421),
        ("127.0.0.1.evil.example", 421),
        ("2130706433", 421),
        ("localhost:x", 421),
        ("", 421),
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/definitions", "/static/js/api.js", "/api/statements"])
def test_only_its_own_names_reach_a_console(
    client: httpx.Client, coordinator: Any, host: str, status: int, path: str
) -> None:
    if path == "/api/statements":
        body = {"text": "SELECT mid FROM SeatSensor"}
        answer = client.post(path, json=body, headers={"Host": host})
    else:
        answer = client.get(path, headers={"Host": host})
    assert answer.status_code == status
    if status == 421:
        assert answer.json()["error"]["code"] == "wrong_host"
        assert not coordinator.queries("user")


def test_a_page_of_a_name_that_resolves_to_us_changes_nothing(
    client: httpx.Client, coordinator: Any
) -> None:
    """DNS rebinding: host and origin agree with each other, and are not ours."""
    port = client.base_url.port
    foreign = {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"}
    body = {"text": "CREATE TABLE t (a TEXT) WITH (source = 'csv', path = '/etc/passwd')"}
    assert client.post("/api/statements", json=body, headers=foreign).status_code == 421
    assert all(definition.name != "t" for definition in coordinator.definitions())


def test_names_that_the_operator_allows_reach_it(
    serve: Any, coordinator: Any, settings: ConsoleSettings
) -> None:
    allowed = msgspec.structs.replace(settings, allowed_hosts="pando.example, 192.168.1.5")
    console = serve(coordinator, allowed)
    hosts = ("pando.example:443", "PANDO.example", "192.168.1.5:8420", "other.example")
    address = f"{console.address}/api/health"
    answers = [httpx.get(address, headers={"Host": h}, trust_env=False, timeout=60) for h in hosts]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 421]


def test_listening_everywhere_takes_every_address_but_no_name() -> None:
    hosts = Hosts("0.0.0.0")  # noqa: S104  (only compared)
    assert hosts.allow("192.168.1.5:8420")
    assert hosts.allow("[2001:db8::1]")
    assert not hosts.allow("evil.example")


@pytest.mark.parametrize("path", ["/api/map/events", "/api/alarms/events", "/api/definitions"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_pages_of_other_origins_may_not_read_or_hold_anything(
    client: httpx.Client, path: str, headers: dict[str, str]
) -> None:
    answer = client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_links_of_other_pages_lead_here(client: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/queries", headers=headers).status_code == 200


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


def test_a_statement_needs_no_other_thread(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FastAPI hands to a thread all that is no coroutine: a tenth of a registration's time."""
    handed: list[str] = []

    async def counted(work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        handed.append(work.__qualname__)
        return work(*args, **named)

    for module in ("fastapi.dependencies.utils", "fastapi.routing"):
        monkeypatch.setattr(f"{module}.run_in_threadpool", counted)
    answer = client.post("/api/statements", json={"text": "SELECT mid FROM SeatSensor"})
    assert answer.status_code == 200
    assert handed == []
    client.get("/api/site.geojson")  # reads a file
    assert len(handed) == 1, "this test sees them"
