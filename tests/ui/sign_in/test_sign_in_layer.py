"""Requests and streams end with the session, token or account that they rest on."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import request_response

from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from host.clocks import wall_clock
from tests.federated_optimizer.coordinator.people.office import GOOD, Office
from tests.ui.conftest import Console, FakeCoordinator
from tests.ui.sign_in.conftest import Ask, error_of
from ui.console_settings import ConsoleSettings

STREAMS = ["/api/map/events", "/api/alarms/events", "/api/notices/events", "/api/displays/events"]
PAGE = {"accept": "text/html,*/*;q=0.8"}


def ends(client: httpx.Client, path: str, end: Callable[[], object]) -> bool:
    """Open a stream, do something, and return whether the stream then ends as it should."""
    with client.stream("GET", path, timeout=5) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        next(lines)
        end()
        for _ in lines:  # until the last chunk, or a time-out
            pass
    return True


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_ends_when_its_session_does(ask: Ask, path: str) -> None:
    client = ask("operator")
    assert ends(client, path, lambda: client.post("/api/sign-out"))
    assert client.get(path).status_code == 401


@pytest.mark.parametrize("kind", ["session", "token"])
@pytest.mark.parametrize(
    "change", [{"disabled": True}, {"role": "viewer"}, {"password": GOOD + "!"}]
)
def test_a_stream_ends_when_its_account_changes(
    ask: Ask, kind: str, change: dict[str, Any]
) -> None:
    client, root = ask("operator"), ask("administrator")
    if kind == "token":
        made = client.post("/api/me/tokens", json={"label": "script"}).json()
        client = ask("")
        client.headers["authorization"] = f"Bearer {made['secret']}"
        if "password" in change:  # ends sessions, not tokens
            root.patch("/api/accounts/operatory", json=change)
            assert client.get("/api/sites").status_code == 200
            return
    query = client.post("/api/statements", json={"text": "SELECT mid FROM SeatSensor"}).json()
    path = f"/api/queries/{query[0]['query']['id']}/changes"
    assert ends(client, path, lambda: root.patch("/api/accounts/operatory", json=change))


def test_a_stream_ends_when_its_token_is_revoked(ask: Ask) -> None:
    owner, client = ask("viewer"), ask("")
    made = owner.post("/api/me/tokens", json={"label": "wall"}).json()
    client.headers["authorization"] = f"Bearer {made['secret']}"
    assert ends(
        client, STREAMS[0], lambda: owner.delete(f"/api/me/tokens/{made['id']}").raise_for_status()
    )
    assert client.get("/api/alarms").status_code == 401


def test_without_accounts_everybody_here_may_everything_until_there_is_one(
    nobody_yet: Console,
) -> None:
    with httpx.Client(base_url=nobody_yet.address, trust_env=False, timeout=10) as client:
        assert client.get("/api/me").json() == {"accounts": False, "signed_in": False}
        assert "People" in client.get("/", headers=PAGE).text
        assert client.post("/api/sign-out").status_code == 200
        assert client.get("/api/me/tokens").json() == []
        mine = client.post("/api/me/tokens", json={"label": "x"})
        assert (mine.status_code, error_of(mine)["code"]) == (404, "unknown_account")
        changed = client.post("/api/me/password", json={"old": "x", "new": GOOD})
        assert changed.status_code == 401
        first = {"name": "ann", "role": "analyst", "password": GOOD}
        refused = client.post("/api/accounts", json=first)
        assert refused.status_code == 400
        assert "administrator" in error_of(refused)["message"]

        def add() -> None:
            first["role"] = "administrator"
            client.post("/api/accounts", json=first).raise_for_status()

        assert ends(client, STREAMS[0], add)
        assert client.get("/api/sites").status_code == 401


@pytest.mark.parametrize("change", [{"host": "::"}, {"trusted_proxy": "127.0.0.1"}])
def test_a_console_that_others_reach_is_closed_without_accounts(
    coordinator: FakeCoordinator, settings: ConsoleSettings, office: Office, change: dict[str, str]
) -> None:
    people = People(PeopleStore(office.url), wall_clock, office)
    console = Console(coordinator, replace(settings, **change), people)
    console.start()
    try:
        answer = httpx.get(f"{console.address}/api/sites", trust_env=False)
        assert answer.status_code == 401
    finally:
        console.stop()


def test_a_page_leads_to_the_sign_in_and_back(ask: Ask) -> None:
    answer = ask("").get("/queries?text=SELECT%201&x=%3Cb%3E", headers=PAGE)
    assert answer.status_code == 303
    assert (
        answer.headers["location"]
        == "/sign-in?next=%2Fqueries%3Ftext%3DSELECT%25201%26x%3D%253Cb%253E"
    )
    assert ask("").get("/api/queries", headers=PAGE).status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "bearer nonsense",
        "Basic cm9vdDpyb290",
        "Bearer " + "x" * 10_000,
        "Bearer \xff",
    ],
)
def test_other_authorizations_admit_nobody(ask: Ask, header: str) -> None:
    headers = {b"authorization": header.encode("latin-1")}
    answer = ask("").get("/api/sites", headers=headers)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "cookie", ["pando_8420=", "pando_8420=x; pando_8420=y", "=;=;", 'a="', "\xff=1"]
)
def test_other_cookies_admit_nobody(ask: Ask, cookie: str) -> None:
    answer = ask("").get("/api/sites", headers={b"cookie": cookie.encode("latin-1")})
    assert answer.status_code == 401


def test_who_asks_is_told_to_the_application(staffed: Console, ask: Ask) -> None:
    seen: list[Principal] = []

    async def note(request: Request) -> Response:
        seen.append(request.state.principal)
        return Response()

    (schema,) = (r for r in staffed.app.routes if getattr(r, "path", "") == "/openapi.json")
    schema.app = request_response(note)  # type: ignore[attr-defined]
    ask("analyst").get("/openapi.json")
    assert seen == [Principal("analysty", Role.ANALYST, address="127.0.0.1")]
