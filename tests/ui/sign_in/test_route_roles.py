"""Every route asks for a role, and gets it."""

import contextlib
import http.client
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.routing import Mount

from federated_optimizer.coordinator.contract.principal import Role
from tests.ui.conftest import Console
from tests.ui.sign_in.conftest import Ask, error_of
from ui.sign_in.route_roles import OPEN, ROUTES, Access, RouteRoles


def routes_of(app: Any) -> Iterator[str]:
    """Yield method and path of every route that the application has, also those behind routers."""
    for route in app.routes:
        inner = getattr(route, "effective_route_contexts", None)
        for found in inner() if inner is not None else [route]:
            if isinstance(found, Mount):
                yield f"GET {found.path}/{{path:path}}"
                continue
            for method in sorted(set(found.methods or ()) - {"HEAD"}):
                yield f"{method} {found.path}"


def test_every_route_is_in_the_table_and_no_other(console: Console) -> None:
    found = set(routes_of(console.app))
    assert len(found) > 80
    assert found - set(ROUTES) == set(), "say in ui/sign_in/route_roles.py who may use these"
    assert set(ROUTES) - found == set()


def paths(route: str) -> tuple[str, str]:
    """Return method and a path of a route."""
    method, _, path = route.partition(" ")
    return method, re.sub(r"\{[^}]*\}", "1", path.replace("{path:path}", "icon.svg"))


def status(client: httpx.Client, route: str) -> int:
    """Return the status of a request; a stream is not read."""
    method, path = paths(route)
    body: Any = {} if method in ("POST", "PATCH") else None
    with client.stream(method, path, json=body) as answer:
        return answer.status_code


HARMLESS = [route for route in ROUTES if route != "POST /api/sign-out"]


def test_nobody_gets_only_what_is_open(ask: Ask) -> None:
    client = ask("")
    for route in ROUTES:
        refused = status(client, route) == 401
        assert refused == (ROUTES[route] is not OPEN), route
    assert {route for route in ROUTES if ROUTES[route] is OPEN} == {
        "GET /api/health",
        "GET /static/{path:path}",
        "GET /sign-in",
        "GET /sign-in/provider",
        "GET /sign-in/return",
        "GET /api/me",
        "POST /api/sign-in",
        "GET /api/fleet/authority",
        "POST /api/fleet/join",
    }


@pytest.mark.parametrize("role", Role)
def test_each_role_gets_what_it_may(ask: Ask, role: Role) -> None:
    client = ask(role)
    for route in HARMLESS:
        least = ROUTES[route]
        may = isinstance(least, Access) or role.may_act_as(least)
        found = status(client, route)
        assert (found == 403) == (not may), (route, found)
        assert found < 500, (route, found)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nowhere"),
        ("GET", "/api/accounts/root"),
        ("DELETE", "/api/accounts"),
        ("GET", "/api/accounts/"),
        ("GET", "//api/accounts"),
        ("GET", "/api/accounts%0A"),
        ("GET", "/static/../api/accounts"),
        ("GET", "/static%2F..%2Fapi%2Faccounts"),
        ("OPTIONS", "/api/accounts"),
        ("TRACE", "/api/accounts"),
        ("PUT", "/api/statements"),
    ],
)
def test_what_is_not_in_the_table_is_closed(
    ask: Ask, staffed: Console, method: str, path: str
) -> None:
    for role in ("", *Role):
        cookies = "; ".join(f"{name}={value}" for name, value in ask(role).cookies.items())
        connection = http.client.HTTPConnection("127.0.0.1", staffed.port, timeout=20)
        with contextlib.closing(connection):  # sends the path as it is
            connection.request(method, path, headers={"Cookie": cookies})
            status = connection.getresponse().status
        assert status == (404 if role else 401) or path.startswith("/static"), role
        assert status in (401, 404), role


def test_refusals_say_what_is_missing(ask: Ask) -> None:
    refused = ask("viewer").post("/api/statements", json={"text": "SELECT 1"})
    told = error_of(refused)
    assert told["code"] == "role_too_low"
    assert told["message"] == "viewery is viewer; this needs the role analyst"
    unknown = ask("").get("/api/queries")
    assert error_of(unknown)["code"] == "not_signed_in"
    assert "pando login" in error_of(unknown)["hint"]
    assert unknown.headers["www-authenticate"].startswith("Bearer")


def test_of_several_entries_the_one_counts_that_asks_most() -> None:
    roles = RouteRoles({"GET /a/{x}": Role.VIEWER, "GET /a/b": Role.OPERATOR, "GET /{x}/c": OPEN})
    assert roles.least("GET", "/a/b") == Role.OPERATOR
    assert roles.least("HEAD", "/a/x") == Role.VIEWER
    assert roles.least("GET", "/a/c") == Role.VIEWER
    assert roles.least("GET", "/z/c") is OPEN
    assert roles.least("GET", "/a/b\n") is None
    assert roles.least("POST", "/a/b") is None
