"""An analyst with a token: accounts, grants and results together, over a real coordinator."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.contract.principal import Role
from federated_optimizer.coordinator.people.passwords import Passwords, PasswordWork
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from tests.federated_optimizer.coordinator.conftest import Federation, until
from tests.federated_optimizer.coordinator.people.office import GOOD, QUICK, ROOT
from ui.app import create_app
from ui.console_settings import ConsoleSettings


def test_two_of_three_sources_may_be_read_and_the_third_is_refused_by_name(tmp_path: Path) -> None:
    asyncio.run(_whole(tmp_path))


async def _whole(folder: Path) -> None:
    federation = Federation(folder)
    try:
        coordinator = await federation.standard(gateways=1)
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
    await people.add_account("ann", Role.ANALYST, GOOD, ROOT)
    tokens = {
        "ada": (await people.create_token("ada", "laptop", ROOT)).secret,
        "ann": (await people.create_token("ann", "report", ROOT)).secret,
        "narrow": (
            await people.create_token("ann", "narrow", ROOT, sources=("RoomSensor",))
        ).secret,
    }
    settings = ConsoleSettings(broker="mqtt://127.0.0.1:1", data_dir=str(folder), layers="trace")
    transport = httpx.ASGITransport(app=create_app(coordinator, settings, people))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def run(who: str, text: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {tokens[who]}"}
            return await client.post("/api/statements", json={"text": text}, headers=headers)

        grant = "GRANT SELECT ON SOURCE temperature, roomsensor TO USER ann"
        assert (await run("ann", grant)).status_code == 403
        assert (await run("ada", grant)).status_code == 200
        for source in ("temperature", "roomsensor"):
            assert (await run("ann", f"SELECT rid FROM {source}")).status_code == 200
        third = await run("ann", "SELECT rid FROM seatsensor")
        assert third.status_code == 403
        assert third.json()["error"]["message"] == "analyst ann may not read source seatsensor"
        assert (await run("narrow", "SELECT rid FROM roomsensor")).status_code == 200
        beyond = await run("narrow", "SELECT rid FROM temperature")
        assert "API token narrow of ann may not read source temperature" in beyond.text

        refused = [e for e in coordinator.audit.entries() if e.outcome == "refused"]
        assert ("ann", "report", "SELECT") in {(e.who, e.token, e.action) for e in refused}
        await people.remove_account("ann", ROOT)
        await until(
            lambda: all(q.status == QueryStatus.FAILED for q in coordinator.queries()),
            "the queries of an account that is removed end",
        )
        assert (await run("ann", "SHOW SOURCES")).status_code == 401
