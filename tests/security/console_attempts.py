"""Every route of the console, tried by everybody."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
from fastapi import FastAPI
from starlette.routing import Mount

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.people_model import PeopleApi
from federated_optimizer.coordinator.contract.principal import Role
from tests.security.console_rights import NOBODY, may
from tests.security.desk import NO_ONE, Desk
from ui.app import create_app
from ui.console_settings import ConsoleSettings

VALUES = {"{path:path}": "css/pando.css"}
"""Values of parameters of paths; others are `1`."""
SPELLERS = ("nobody", Role.VIEWER)
"""Askers that try other spellings of what they may not ask for."""
ROLE_REFUSALS = {"role_too_low"}


def application(folder: Path) -> FastAPI:
    """Return the application, to read its routes."""
    settings = ConsoleSettings(broker="", data_dir=str(folder))
    # Neither is asked anything before the application starts, which it does not here.
    nothing: Any = object()
    return create_app(cast(CoordinatorApi, nothing), settings, cast(PeopleApi, nothing))


def routes_of(app: FastAPI) -> list[str]:
    """Return method and path of every route, also of those behind routers."""
    found = []
    routes: list[Any] = list(app.routes)
    for route in routes:
        inner: Any = getattr(route, "effective_route_contexts", None)
        for each in inner() if inner is not None else [route]:
            if isinstance(each, Mount):
                found.append(f"GET {each.path}/{{path:path}}")
                continue
            found += [f"{m} {each.path}" for m in sorted(set(each.methods or ()) - {"HEAD"})]
    return found


def address_of(route: str) -> tuple[str, str]:
    """Return method and an address of a route."""
    method, _, path = route.partition(" ")
    for name, value in VALUES.items():
        path = path.replace(name, value)
    return method, re.sub(r"\{[^}]*\}", "1", path)


@dataclass
class Asked:
    """Counts of requests; `wrong` says in words which were answered otherwise than stated."""

    answered: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


def asked_by_all(desk: Desk, routes: list[str]) -> Asked:
    """Ask for every route as everybody, in several ways."""
    asked = Asked()
    for name in desk.askers:
        role: Any = NOBODY if name in NO_ONE else name
        role = Role.VIEWER if name == "a viewer's token" else role
        for route in routes:
            # Who signs out cannot ask for the rest.
            if route != "POST /api/sign-out" or role is NOBODY:
                _ask(desk, asked, (name, role), route)
    return asked


def _variants(path: str) -> Iterator[str]:
    """Yield other spellings of a path: none of them gets more than the path itself."""
    yield path
    yield path + "/"
    yield path.replace("/", "//")
    yield "/static/.." + path
    yield path.replace("/", "/%2e/", 1)
    yield path.upper()


def _ask(desk: Desk, asked: Asked, who: tuple[str, Role], route: str) -> None:
    name, role = who
    method, path = address_of(route)
    allowed = may(role, route)
    for address in _variants(path) if name in SPELLERS and not allowed else [path]:
        body: Any = {} if method in ("POST", "PATCH") else None
        # A whole URL: httpx would take the host from what begins with two slashes.
        url = f"http://127.0.0.1:{desk.port}{address}"
        with desk.askers[name].stream(method, url, json=body) as answer:
            status, text = answer.status_code, ""
            if "event-stream" not in answer.headers.get("content-type", ""):
                answer.read()
                text = answer.text
        what = f"{name} asks {method} {address}: {status} {text[:200]}"
        refused = status == 401 or (status == 403 and _code(text) in ROLE_REFUSALS)
        asked.refused += refused
        asked.answered += not refused
        if status >= 500 and status != 503:
            asked.wrong.append(what)
        if allowed == refused if address == path else status < 400:
            asked.wrong.append(what)
        if not allowed and address == path and (status == 401) != (role is NOBODY):
            asked.wrong.append(what)
        if leaks := desk.leaks(text):
            asked.wrong.append(f"{what} holds {leaks}")


def _code(text: str) -> str:
    try:
        return str(httpx.Response(200, text=text).json()["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return ""
