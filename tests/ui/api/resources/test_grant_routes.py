"""REST as different people, over a real coordinator: what is refused, and what is listed."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from tests.federated_optimizer.coordinator.conftest import Federation, until_status
from ui.app import create_app
from ui.console_settings import ConsoleSettings

PEOPLE = {
    "vera": Role.VIEWER,
    "ann": Role.ANALYST,
    "ola": Role.OPERATOR,
    "ada": Role.ADMINISTRATOR,
}
READ = "SELECT rid FROM temperature"


class Console:
    """The application; whoever asks is named by a header."""

    def __init__(self, app: Any) -> None:
        async def signed_in(scope: Any, receive: Any, send: Any) -> None:
            name = dict(scope["headers"])[b"x-name"].decode()
            scope.setdefault("state", {})["principal"] = Principal(name, PEOPLE[name])
            await app(scope, receive, send)

        self._transport = httpx.ASGITransport(app=signed_in)

    async def ask(self, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
        base = "http://127.0.0.1"
        async with httpx.AsyncClient(transport=self._transport, base_url=base) as client:
            return await client.request(method, path, json=body, headers={"x-name": who})

    async def run(self, who: str, text: str, **more: Any) -> httpx.Response:
        return await self.ask(who, "POST", "/api/statements", {"text": text, **more})


@pytest.fixture
def living(tmp_path: Path) -> Callable[..., None]:
    """Runs a scenario over a console."""

    def run(scenario: Callable[[Console, Any], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            federation = Federation(tmp_path)
            try:
                coordinator = await federation.standard(gateways=1)
                coordinator.follow_accounts(
                    lambda name: Account(name, PEOPLE[name]) if name in PEOPLE else None
                )
                settings = ConsoleSettings(
                    broker="mqtt://127.0.0.1:1", data_dir=str(tmp_path), layers="trace"
                )
                await scenario(Console(create_app(coordinator, settings)), coordinator)
            finally:
                await federation.close()

        asyncio.run(whole())

    return run


def test_what_may_not_be_read_is_403_by_name(living: Callable[..., None]) -> None:
    async def scenario(console: Console, coordinator: Any) -> None:
        refused = await console.run("ann", READ)
        assert refused.status_code == 403
        error = refused.json()["error"]
        assert error["code"] == "not_allowed"
        assert error["message"] == "analyst ann may not read source temperature"
        assert (await console.run("ola", READ, name="degrees")).status_code == 200
        await until_status(coordinator, "degrees", coordinator.query("degrees").status)
        for path in ("", "/rows", "/explain", "/changes"):
            answer = await console.ask("ann", "GET", f"/api/queries/degrees{path}")
            assert answer.status_code == 403, path
        for path in ("why", "confidence"):
            body: dict[str, Any] = {"row": {"rid": "r1"}, "column": "temperature.celsius"}
            answer = await console.ask("ann", "POST", f"/api/queries/degrees/{path}", body)
            assert answer.status_code == 403, path
        assert (await console.ask("ann", "DELETE", "/api/queries/degrees")).status_code == 403
        body = {"delete": [{"source": "temperature", "values": ["r1"]}]}
        assert (await console.ask("ann", "POST", "/api/what-if", body)).status_code == 403
        assert (await console.ask("ann", "GET", "/api/queries")).json() == []
        assert (await console.ask("ann", "GET", "/api/links")).json() == []
        names = {d["name"] for d in (await console.ask("ann", "GET", "/api/definitions")).json()}
        assert "temperature" not in names
        body = {"text": "SELECT * FROM temp", "offset": 18}
        offered = (await console.ask("ann", "POST", "/api/complete", body)).json()
        assert not [c for c in offered if c["label"] == "temperature"]
        checked = (await console.ask("ann", "POST", "/api/validate", {"text": READ})).json()
        assert [d["code"] for d in checked["diagnoses"]] == ["not_allowed"]
        for who, path in (("ann", "/api/sites/gw-1/settings"), ("ola", "/api/quotas/ann")):
            method = "GET" if who == "ola" else "PATCH"
            assert (await console.ask(who, method, path, {})).status_code == 403
        assert (await console.ask("ann", "DELETE", "/api/sites/gw-1")).status_code == 403

    living(scenario)


def test_grants_are_listed_and_quotas_shown(living: Callable[..., None]) -> None:
    async def scenario(console: Console, _coordinator: Any) -> None:
        text = "GRANT SELECT ON SOURCE temperature TO USER ann, ROLE viewer"
        assert (await console.run("ola", text)).status_code == 403
        assert (await console.run("ada", text)).status_code == 200
        view = f"CREATE VIEW warm AS {READ}"
        assert (await console.run("ann", view)).status_code == 200
        every = (await console.ask("ada", "GET", "/api/grants")).json()
        assert [
            (g["kind"], g["relation"], g["to"], g["name"], g["by"]) for g in every["grants"]
        ] == [
            ("source", "temperature", "role", "viewer", "ada"),
            ("source", "temperature", "user", "ann", "ada"),
        ]
        assert every["makers"] == {"warm": "ann"}
        mine = (await console.ask("vera", "GET", "/api/grants")).json()
        assert [g["to"] for g in mine["grants"]] == ["role"]
        assert mine["makers"] == {}
        assert (await console.run("ann", READ)).status_code == 200
        assert (await console.run("vera", READ, origin="session")).status_code == 200
        shown = (await console.ask("ann", "GET", "/api/quotas/ann")).json()
        assert (shown["usage"]["queries"], shown["quotas"]["max_queries"]) == (1, 50)
        await console.run("ada", "ALTER USER ann SET (max_queries = 1)")
        over = await console.run("ann", READ)
        assert (over.status_code, over.json()["error"]["code"]) == (429, "quota_exceeded")
        assert (await console.ask("ada", "GET", "/api/quotas/nobody")).status_code == 404

    living(scenario)
