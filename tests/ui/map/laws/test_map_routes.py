"""The map over HTTP: page, plan, directions, simulation."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from streamsql.errors import DeploymentError
from ui.app import create_app
from ui.console_settings import ConsoleSettings


def test_the_page_offers_the_packages_of_this_building(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "<option>LaTeX</option>" in page.text
    assert 'data-kind="building"' in page.text


def test_the_plan_is_drawn_by_folium_and_needs_no_other_host(
    client: httpx.Client, addresses: Any, drawings: Path
) -> None:
    script = client.get("/map/plan.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "L.CRS.Simple" in script.text
    assert "window.pandoPlan" in script.text
    assert '"L101"' in script.text
    assert addresses(script.text) == []
    assert len(list((drawings / "map").glob("*.js"))) == 1


def test_a_trace_has_paths_instead_of_directions(trace_console: Any) -> None:
    page = httpx.get(trace_console.address, trust_env=False, timeout=60).text
    assert 'id="path-form"' in page
    assert 'id="route-form"' not in page
    # Nodes are in the order people count in.
    assert page.index("<option>2</option>") < page.index("<option>10</option>")


def test_equal_wishes_share_one_query(client: httpx.Client, coordinator: Any) -> None:
    wish = {"from": "L101", "software": "LaTeX"}
    first = client.post("/api/route", json=wish).json()
    assert first["origin"] == "session"
    assert [c["name"] for c in first["columns"]] == ["distance", "mid", "path"]
    assert client.post("/api/route", json=wish).json()["id"] == first["id"]
    other = client.post("/api/route", json={**wish, "from": "badge-1"}).json()
    assert other["id"] != first["id"]
    client.delete(f"/api/queries/{first['id']}")
    again = client.post("/api/route", json=wish).json()
    assert again["id"] not in (first["id"], other["id"])
    assert len(coordinator.queries("session")) == 2


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({"from": "nowhere", "software": "LaTeX"}, 409),
        ({"from": "L101", "software": "'; DROP VIEW freemachines"}, 409),
        ({"from": "L101"}, 422),
        ({"from": "L101", "software": "x" * 101}, 422),
    ],
)
def test_wrong_wishes_are_refused(
    client: httpx.Client, coordinator: Any, parameters: dict[str, str], status: int
) -> None:
    answer = client.post("/api/route", json=parameters)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert not coordinator.queries("session")


def test_looking_starts_no_query(client: httpx.Client, coordinator: Any) -> None:
    """Every address that can be looked at, and directions, which once were one of them."""
    paths = client.get("/openapi.json").json()["paths"]
    looks = [path for path, methods in paths.items() if "get" in methods and "events" not in path]
    wish = {"from": "L101", "software": "LaTeX", "to": "L102"}
    before = (coordinator.queries(), coordinator.definitions(), coordinator.commands)
    for path in [*looks, "/api/route", "/api/path", "/api/simulate", "/api/statements"]:
        client.get(path.replace("{", "").replace("}", ""), params=wish)
    assert (coordinator.queries(), coordinator.definitions(), coordinator.commands) == before
    assert client.get("/api/route", params=wish).status_code == 405


def test_paths_between_nodes(trace_console: Any) -> None:
    address = f"{trace_console.address}/api/path"
    found = httpx.post(address, json={"from": "0", "to": "10"}, trust_env=False, timeout=60).json()
    assert [c["name"] for c in found["columns"]] == ["cost", "path"]
    refused = httpx.post(address, json={"from": "0", "to": "99"}, trust_env=False, timeout=60)
    assert (refused.status_code, "99" in refused.text) == (409, True)


def test_sitting_down_is_sent_to_the_gateway_of_the_room(
    client: httpx.Client, coordinator: Any, site: Any
) -> None:
    machine = next(iter(site.machines))
    answer = client.post("/api/simulate", json={"action": "sit", "target": machine})
    assert answer.status_code == 200
    assert machine in answer.json()["message"]
    sent = ("simulate", {"action": "sit", "mid": machine})
    assert coordinator.commands == [(site.machines[machine], *sent)]


def test_rooms_are_heated(client: httpx.Client, coordinator: Any) -> None:
    body = {"action": "heat", "target": "L101", "celsius": 12}
    assert client.post("/api/simulate", json=body).status_code == 200
    assert coordinator.commands[-1][2] == {"action": "heat", "rid": "L101", "celsius": 12.0}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"action": "explode", "target": "L101"}, "explode"),
        ({"action": "sit", "target": "L101"}, "machine"),
        ({"action": "lights_off", "target": "nowhere"}, "nowhere"),
        ({"action": "lights_off", "target": "LF01"}, "sensor"),
        ({"action": "heat", "target": "L101", "celsius": 1e9}, "degrees"),
    ],
)
def test_impossible_simulations_are_refused(
    client: httpx.Client, coordinator: Any, body: dict[str, Any], word: str
) -> None:
    answer = client.post("/api/simulate", json=body)
    assert answer.status_code == 409
    assert word in answer.text
    assert not coordinator.commands


def test_nothing_is_simulated_at_a_gateway_that_is_away(
    client: httpx.Client, coordinator: Any, site: Any
) -> None:
    coordinator.set_site(site.rooms["L101"], "stale")
    answer = client.post("/api/simulate", json={"action": "lights_off", "target": "L101"})
    assert answer.status_code == 409
    assert "online" in answer.json()["error"]["message"]


def test_a_console_without_a_map_says_so(coordinator: Any, tmp_path: Path, serve: Any) -> None:
    console = serve(coordinator, ConsoleSettings(broker="", data_dir=str(tmp_path)))
    for path in ("/map/plan.js", "/api/site.geojson"):
        answer = httpx.get(f"{console.address}{path}", trust_env=False, timeout=60)
        assert answer.is_client_error
        assert "no map" in answer.json()["error"]["message"]
    assert httpx.get(console.address, trust_env=False, timeout=60).is_success


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"features": 3, "pando": {}}'])
def test_a_broken_map_file_is_named(coordinator: Any, tmp_path: Path, content: str) -> None:
    path = tmp_path / "site.geojson"
    path.write_text(content)
    settings = ConsoleSettings(broker="", data_dir=str(tmp_path), site_file=str(path))
    with pytest.raises(DeploymentError, match=r"site\.geojson"):
        create_app(coordinator, settings)
