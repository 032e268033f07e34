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

    def note(self, what: str, status: int, leaks: list[str], *, refused: bool) -> None:
        """Count an answer."""
        self.refused += refused
        self.answered += not refused
        if status >= 500 and status != 503:
            self.wrong.append(what)
        if leaks:
            self.wrong.append(f"{what} holds {leaks}")


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


def _variants(method: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield other spellings of a request: none of them gets more than the request itself."""
    for spelled in (
        path + "/",
        path.replace("/", "//"),
        "/static/.." + path,
        path.replace("/", "/%2e/", 1),
        path.upper(),
        path.replace("/", "/;x=1/", 1),
        path + "%0a",
    ):
        yield method, spelled
    for other in ("HEAD", "OPTIONS", "PUT", method.lower()):
        yield other, path


def _ask(desk: Desk, asked: Asked, who: tuple[str, Role], route: str) -> None:
    name, role = who
    method, path = address_of(route)
    allowed = may(role, route)
    status, text = _answer(desk, name, method, path)
    what = f"{name} asks {method} {path}: {status} {text[:200]}"
    refused = status == 401 or (status == 403 and _code(text) in ROLE_REFUSALS)
    if allowed == refused or (not allowed and (status == 401) != (role is NOBODY)):
        asked.wrong.append(what)
    asked.note(what, status, desk.leaks(text), refused=refused)
    if allowed or name not in SPELLERS:
        return
    for other, spelled in _variants(method, path):
        if other == "HEAD" and may(role, f"GET {route.partition(' ')[2]}"):
            continue
        status, text = _answer(desk, name, other, spelled)
        what = f"{name} asks {other} {spelled}: {status} {text[:200]}"
        if status < 400:
            asked.wrong.append(what)
        asked.note(what, status, desk.leaks(text), refused=True)


def _answer(desk: Desk, name: str, method: str, address: str) -> tuple[int, str]:
    """Return status and text of an answer; a stream is not read."""
    body: Any = {} if method in ("POST", "PATCH", "PUT") else None
    # A whole URL: httpx would take the host from what begins with two slashes.
    url = f"http://127.0.0.1:{desk.port}{address}"
    with desk.askers[name].stream(method, url, json=body) as answer:
        if "event-stream" in answer.headers.get("content-type", ""):
            return answer.status_code, ""
        answer.read()
        return answer.status_code, answer.text


def _code(text: str) -> str:
    try:
        return str(httpx.Response(200, text=text).json()["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return ""
