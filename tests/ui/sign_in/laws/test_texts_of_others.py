"""Two analysts with other grants share a node: no route tells what the other one wants of it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx

from federated_optimizer.coordinator.contract.principal import Role
from federated_optimizer.coordinator.explaining.seen_texts import NOT_SHOWN
from federated_optimizer.coordinator.people.passwords import Passwords, PasswordWork
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from federated_optimizer.sharing.strategy import Materialize
from tests.federated_optimizer.coordinator.conftest import Federation
from tests.federated_optimizer.coordinator.people.office import GOOD, QUICK, ROOT
from ui.app import create_app
from ui.console_settings import ConsoleSettings

SEATS = "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"
ANNS = f"{SEATS} WHERE s.weightLevel > 9.5 AND r.status = 'open'"
MORE = f"{SEATS} WHERE s.weightLevel > 11.5 AND r.status = 'open'"
BENS = (
    "SELECT s.mid, m.rid FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid "
    "JOIN Machines m ON m.mid = s.mid WHERE s.weightLevel > 7.25 AND r.status <> 'shut'"
)
TOLD = ("7.25", "shut")


def test_what_somebody_else_wants_of_a_node_is_not_told(tmp_path: Path) -> None:
    asyncio.run(_whole(tmp_path))


async def _whole(folder: Path) -> None:
    federation = Federation(folder)
    try:
        coordinator = await federation.standard(gateways=1, materialize=Materialize.EAGER)
        people = People(
            PeopleStore(f"sqlite:///{folder}/catalog.db"),
            lambda: time.time_ns() // 1_000,
            coordinator.audit,
            work=PasswordWork(Passwords(QUICK)),
        )
        await people.begin()
        try:
            await _story(coordinator, people, folder)
        finally:
            await people.close()
    finally:
        await federation.close()


async def _story(coordinator: Any, people: People, folder: Path) -> None:
    coordinator.follow_accounts(people.account)
    await people.add_account("ada", Role.ADMINISTRATOR, GOOD, None)
    tokens = {"ada": (await people.create_token("ada", "laptop", ROOT)).secret}
    for name in ("ann", "ben"):
        await people.add_account(name, Role.ANALYST, GOOD, ROOT)
        tokens[name] = (await people.create_token(name, "report", ROOT)).secret
    await people.add_account("ola", Role.OPERATOR, GOOD, ROOT)
    tokens["ola"] = (await people.create_token("ola", "all", ROOT)).secret
    some = ("SeatSensor", "RoomSensor")
    tokens["limited"] = (await people.create_token("ola", "some", ROOT, sources=some)).secret
    settings = ConsoleSettings(broker="mqtt://127.0.0.1:1", data_dir=str(folder), layers="trace")
    transport = httpx.ASGITransport(app=create_app(coordinator, settings, people))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def asked(who: str, path: str, **sent: Any) -> httpx.Response:
            headers = {"Authorization": f"Bearer {tokens[who]}"}
            method = "POST" if "json" in sent else "GET"
            return await client.request(method, path, headers=headers, **sent)

        async def run(who: str, text: str) -> httpx.Response:
            return await asked(who, "/api/statements", json={"text": text})

        for grant in (
            "SOURCE SeatSensor, RoomSensor TO ROLE analyst",
            "TABLE Machines TO USER ben",
        ):
            assert (await run("ada", f"GRANT SELECT ON {grant}")).status_code == 200
        await run("ben", BENS)
        query = (await run("ann", ANNS)).json()[0]["query"]["id"]

        async def told(who: str) -> dict[str, str]:
            paths = ["/api/network", "/api/network?format=dot", "/api/queries", "/api/definitions"]
            paths += [f"/api/queries/{query}{rest}" for rest in ("", "/explain")]
            paths += [f"/api/queries/{query}/explain?format={form}" for form in ("json", "dot")]
            found = {path: (await asked(who, path)).text for path in paths}
            explained = [f"EXPLAIN (TYPE FEDERATED, FORMAT {f}) {MORE}" for f in ("TEXT", "DOT")]
            for text in (*explained, f"EXPLAIN ANALYZE {ANNS}", "SHOW NETWORK", "SHOW QUERIES"):
                found[text] = (await run(who, text)).text
            return found

        def telling(found: dict[str, str]) -> set[str]:
            return {way for way, text in found.items() if any(each in text for each in TOLD)}

        for who in ("ann", "limited"):
            found = await told(who)
            assert telling(found) == set()
            for way in ("/api/network", f"/api/queries/{query}/explain", "SHOW NETWORK"):
                assert NOT_SHOWN in found[way]
        for who in ("ben", "ola", "ada"):
            ways = telling(await told(who))
            assert {"/api/network", f"/api/queries/{query}/explain", "SHOW NETWORK"} <= ways
        for who in ("ann", "limited"):
            assert (await run(who, "SELECT computes FROM sys_nodes")).status_code == 403
            assert (await asked(who, "/api/network/index")).status_code == 403
        assert (await run("ola", "SELECT computes FROM sys_nodes")).status_code == 200
        assert (await asked("ola", "/api/network/index")).status_code == 200
