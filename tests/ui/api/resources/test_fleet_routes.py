"""REST: enrolment of gateways. Who may, what is answered, what is never shown."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from fastapi import HTTPException

from federated_optimizer.coordinator.contract.principal import Principal, Role
from ui.api.resources import fleet_routes
from ui.api.resources.fleet_routes import NewName, Provisioning


def test_a_gateway_is_provisioned_and_listed_without_its_token(
    client: Any, coordinator: Any
) -> None:
    made = client.post("/api/fleet", json={"name": "gw-4", "hours": 2}).json()
    assert made["token"] == "pando1.token-of-gw-4"
    (listed,) = client.get("/api/fleet").json()
    assert (listed["name"], listed["state"]) == ("gw-4", "provisioned")
    assert "token" not in listed
    assert "token_hash" not in listed
    assert coordinator.fleet.asked == [("provision", "gw-4", "2", "local")]


def test_changes_are_passed_on_and_answered(client: Any, coordinator: Any) -> None:
    client.post("/api/fleet", json={"name": "gw-4"})
    assert client.post("/api/fleet/gw-4/rotate").json()["rotated"]
    assert client.post("/api/fleet/gw-4/revoke").json()["state"] == "revoked"
    assert client.post("/api/fleet/gw-4/rename", json={"name": "north"}).json()["name"] == "north"
    assert client.delete("/api/fleet/north").json() == {"name": "north"}
    assert client.get("/api/fleet").json() == []
    asked = [verb for verb, *_ in coordinator.fleet.asked]
    assert asked == ["provision", "rotate", "revoke", "rename", "retire"]


CALLS = (
    ("POST", "/api/fleet/gw-4/revoke", None),
    ("POST", "/api/fleet/gw-4/rotate", None),
    ("POST", "/api/fleet/gw-4/rename", {"name": "north"}),
    ("DELETE", "/api/fleet/gw-4", None),
)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ANALYST, Role.OPERATOR])
def test_only_administrators_enrol(coordinator: Any, role: Role) -> None:
    oskar = Principal("oskar", role)
    calls: tuple[Callable[[], Coroutine[Any, Any, Any]], ...] = (
        lambda: fleet_routes.provision(Provisioning(name="gw-4", hours=1), coordinator, oskar),
        lambda: fleet_routes.revoke("gw-4", coordinator, oskar),
        lambda: fleet_routes.rotate("gw-4", coordinator, oskar),
        lambda: fleet_routes.rename("gw-4", NewName(name="north"), coordinator, oskar),
        lambda: fleet_routes.retire("gw-4", coordinator, oskar),
    )
    for call in calls:
        with pytest.raises(HTTPException, match="oskar") as refusal:
            asyncio.run(call())
        assert refusal.value.status_code == 403
    assert coordinator.fleet.asked == []


def test_operators_look_at_enrolments(coordinator: Any) -> None:
    assert asyncio.run(fleet_routes.enrolments(coordinator, Principal("ola", Role.OPERATOR))) == []
    with pytest.raises(HTTPException, match="needs the role operator"):
        asyncio.run(fleet_routes.enrolments(coordinator, Principal("ann", Role.ANALYST)))


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_a_gateway_that_nobody_provisioned_is_not_found(
    client: Any, method: str, path: str, body: Any
) -> None:
    answer = client.request(method, path, json=body)
    assert answer.status_code == 404
    assert "no gateway 'gw-4' was provisioned" in answer.text


def test_joining_needs_no_account_and_a_good_token(client: Any, coordinator: Any) -> None:
    answer = client.post("/api/fleet/join", json={"token": "pando1.good", "request": "csr"})
    assert answer.json()["password"] == "secret"
    refused = client.post("/api/fleet/join", json={"token": "pando1.bad", "request": "csr"})
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "join_refused"
    assert coordinator.fleet.asked[0] == ("join", "pando1.good", "127.0.0.1")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"[]", 422),
        (b"{" * 20_000, 422),
        (b'{"token": "' + b"x" * 500 + b'", "request": ""}', 422),
        (b'{"token": "x", "request": "' + b"y" * 29_000 + b'"}', 422),
        (b"x" * 30_001, 413),
    ],
)
def test_what_is_no_request_to_join_is_refused(
    client: Any, coordinator: Any, content: bytes, status: int
) -> None:
    assert client.post("/api/fleet/join", content=content).status_code == status
    assert coordinator.fleet.asked == []


def test_the_authority_is_shown_to_everybody(client: Any, coordinator: Any) -> None:
    assert client.get("/api/fleet/authority").status_code == 404
    coordinator.fleet.authority = "-----BEGIN CERTIFICATE-----\n"
    answer = client.get("/api/fleet/authority")
    assert answer.text == "-----BEGIN CERTIFICATE-----\n"
