"""The fleet against a broker that keeps accounts, in one process; real ones are end to end."""

import asyncio
import datetime as dt
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.access.rights import CONTROL_TOPIC, RESPONSE_TOPIC
from federated_optimizer.coordinator.contract.coordinator_settings import (
    CoordinatorSettings,
    FleetSettings,
)
from federated_optimizer.coordinator.contract.fleet_model import EnrolmentState, JoinRefusedError
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.fleet import broker_accounts
from federated_optimizer.coordinator.fleet.fleet import Fleet
from federated_optimizer.coordinator.fleet.gateway_dialogue import GatewayDialogue
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.shared_parts import open_shared_parts
from host.certificates.certificate_facts import facts_of
from host.certificates.certificate_files import open_or_make_authority
from host.certificates.certificate_request import make_request
from host.mqtt import Message
from host.mqtt.in_memory import InMemoryBroker
from streamsql.errors import DeploymentError
from streamsql.wire.enrolment import JoinRequest, decode_token

ANN = Principal("ann", Role.ADMINISTRATOR)
HOUR = 3_600_000_000


class Accounts:
    """A broker's accounts, in this test's own words; answers like Mosquitto's plug-in."""

    def __init__(self, broker: InMemoryBroker) -> None:
        self.passwords: dict[str, str] = {}
        self.disabled: set[str] = set()
        self.roles: set[str] = set()
        self.client = broker.client("accounts")

    async def start(self) -> None:
        await self.client.connect()
        self.client.on_messages(self._heard)
        await self.client.subscribe(CONTROL_TOPIC)

    def _heard(self, burst: Sequence[Message]) -> None:
        for message in burst:
            answers = [self._answer(each) for each in json.loads(message.payload)["commands"]]
            self.client.publish(RESPONSE_TOPIC, json.dumps({"responses": answers}).encode())

    def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        user, role, verb = command.get("username"), command.get("rolename"), command["command"]
        error = ""
        if verb == "createRole":
            error = "Role already exists" if role in self.roles else ""
            self.roles.add(str(role))
        elif verb == "createClient":
            error = "Client already exists" if user in self.passwords else ""
            self.passwords.setdefault(str(user), command["password"])
        elif verb in ("modifyRole", "deleteRole"):
            error = "" if role in self.roles else "Role not found"
            if verb == "deleteRole":
                self.roles.discard(str(role))
        elif user not in self.passwords:
            error = "Client not found"
        elif verb == "setClientPassword":
            self.passwords[str(user)] = command["password"]
        elif verb == "disableClient":
            self.disabled.add(str(user))
        elif verb == "enableClient":
            self.disabled.discard(str(user))
        elif verb == "deleteClient":
            del self.passwords[str(user)]
        answer = {"command": verb, "correlationData": command["correlationData"]}
        return {**answer, "error": error} if error else answer


class World:
    """A fleet, its broker, and a clock that tests set."""

    def __init__(self, folder: Path, *, with_authority: bool = True) -> None:
        self.folder = folder
        self.now = int(dt.datetime.now(dt.UTC).timestamp() * 1_000_000)
        self.broker = InMemoryBroker()
        self.accounts = Accounts(self.broker)
        self.authority = folder / "ca"
        if with_authority:
            open_or_make_authority(self.authority, "Pando authority", dt.datetime.now(dt.UTC))

    async def open(self) -> Fleet:
        settings = CoordinatorSettings(
            site="house",
            database=f"sqlite:///{self.folder / 'catalog.db'}",
            fleet=FleetSettings(str(self.authority), "mqtts://broker.example:8883"),
        )
        self.shared, found = await open_shared_parts(
            settings,
            lambda will: self.broker.client("coordinator", will=will),
            lambda: self.now,
            OnTheLoop(),
        )
        await self.shared.client.connect()
        return Fleet(self.shared, found.enrolments)

    async def close(self) -> None:
        await self.shared.client.close()
        self.shared.store.close()


def run(
    folder: Path,
    scenario: Callable[[World, Fleet], Any],
    *,
    with_authority: bool = True,
    with_accounts: bool = True,
) -> None:
    async def whole() -> None:
        world = World(folder, with_authority=with_authority)
        if with_accounts:
            await world.accounts.start()
        fleet = await world.open()
        try:
            await scenario(world, fleet)
        finally:
            await world.close()

    asyncio.run(whole())


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError


def asked(token: str, name: str) -> JoinRequest:
    return JoinRequest(token, make_request(name).request.decode())


def test_a_gateway_is_provisioned_and_joins(tmp_path: Path) -> None:
    async def scenario(world: World, fleet: Fleet) -> None:
        made = await fleet.provision("gw-4", ANN)
        assert world.accounts.roles == {"site-gw-4"}
        token = decode_token(made.token)
        assert token.authority == facts_of(fleet.authority.encode()).fingerprint
        catalog = (world.folder / "catalog.db").read_bytes()
        assert token.secret.encode() not in catalog
        answer = await fleet.join(asked(made.token, "gw-4"), "10.0.0.4")
        assert (answer.site, answer.gateway) == ("house", "gw-4")
        assert answer.broker == "mqtts://broker.example:8883"
        assert answer.broker_ca == fleet.authority
        assert world.accounts.passwords["gw-4"] == answer.password
        facts = facts_of(answer.certificate.encode())
        (enrolment,) = fleet.enrolments()
        assert enrolment.state is EnrolmentState.JOINED
        assert (enrolment.serial, facts.common_name) == (facts.serial, "gw-4")
        assert enrolment.address == "10.0.0.4"
        catalog = (world.folder / "catalog.db").read_bytes()
        assert answer.password.encode() not in catalog
        noted = [(e.action, e.target, str(e.outcome), e.who) for e in world.shared.audit.entries()]
        assert noted == [
            ("provision gateway", "gw-4", "done", "ann"),
            ("join gateway", "gw-4", "done", ""),
        ]

    run(tmp_path, scenario)


def test_enrolments_outlive_the_coordinator(tmp_path: Path) -> None:
    async def first(_world: World, fleet: Fleet) -> None:
        await fleet.provision("gw-4", ANN, hours=2)

    async def second(world: World, fleet: Fleet) -> None:
        (enrolment,) = fleet.enrolments()
        assert enrolment.state is EnrolmentState.PROVISIONED
        assert abs(enrolment.token_until - world.now - 2 * HOUR) < HOUR

    run(tmp_path, first)
    run(tmp_path, second)


@pytest.mark.parametrize("why", ["used", "expired", "withdrawn", "another", "revoked"])
def test_a_token_that_is_not_good_is_refused_alike(tmp_path: Path, why: str) -> None:
    async def scenario(world: World, fleet: Fleet) -> None:
        token = (await fleet.provision("gw-4", ANN)).token
        if why == "used":
            await fleet.join(asked(token, "gw-4"), "a")
        elif why == "expired":
            world.now += 25 * HOUR
        elif why == "withdrawn":
            await fleet.provision("gw-4", ANN)
        elif why == "revoked":
            await fleet.revoke("gw-4", ANN)
        else:
            await fleet.provision("gw-5", ANN)
            await fleet.retire("gw-4", ANN)
        before = dict(world.accounts.passwords)
        with pytest.raises(JoinRefusedError, match="this token is not good"):
            await fleet.join(asked(token, "gw-4"), "a")
        assert world.accounts.passwords == before
        last = world.shared.audit.entries()[-1]
        assert (last.action, str(last.outcome)) == ("join gateway", "refused")

    run(tmp_path, scenario)


def test_a_request_for_another_name_is_refused_and_the_token_stays_good(tmp_path: Path) -> None:
    async def scenario(_world: World, fleet: Fleet) -> None:
        token = (await fleet.provision("gw-4", ANN)).token
        with pytest.raises(JoinRefusedError, match="is for 'coordinator'"):
            await fleet.join(asked(token, "coordinator"), "a")
        with pytest.raises(JoinRefusedError, match="no certificate request"):
            await fleet.join(JoinRequest(token, "nothing"), "a")
        assert (await fleet.join(asked(token, "gw-4"), "a")).gateway == "gw-4"

    run(tmp_path, scenario)


def test_attempts_that_fail_are_bounded_per_network(tmp_path: Path) -> None:
    async def scenario(_world: World, fleet: Fleet) -> None:
        for number in range(10):
            with pytest.raises(JoinRefusedError, match="no enrolment token"):
                await fleet.join(JoinRequest("x", "y"), f"2001:db8::{number}")
        with pytest.raises(JoinRefusedError, match="too many attempts"):
            await fleet.join(JoinRequest("x", "y"), "2001:db8::99")
        with pytest.raises(JoinRefusedError, match="no enrolment token"):
            await fleet.join(JoinRequest("x", "y"), "2001:db8:0:1::1")

    run(tmp_path, scenario)


def test_a_good_token_is_taken_whoever_guesses_beside_it(tmp_path: Path) -> None:
    async def scenario(_world: World, fleet: Fleet) -> None:
        token = (await fleet.provision("gw-4", ANN)).token
        for _ in range(12):
            with pytest.raises(JoinRefusedError):
                await fleet.join(JoinRequest("x", "y"), "a")
        assert (await fleet.join(asked(token, "gw-4"), "a")).gateway == "gw-4"

    run(tmp_path, scenario)


@pytest.mark.parametrize("name", ["coordinator", "base", "static", "a/b", "+", ""])
def test_a_name_that_is_taken_or_no_id_is_refused(tmp_path: Path, name: str) -> None:
    async def scenario(world: World, fleet: Fleet) -> None:
        with pytest.raises(DeploymentError, match=r"is taken|is not an id"):
            await fleet.provision(name, ANN)
        assert not world.accounts.passwords

    run(tmp_path, scenario)


def test_an_account_that_somebody_else_made_is_left_alone(tmp_path: Path) -> None:
    async def scenario(world: World, fleet: Fleet) -> None:
        world.accounts.passwords["gw-1"] = "theirs"
        with pytest.raises(DeploymentError, match="Client already exists"):
            await fleet.provision("gw-1", ANN)
        assert world.accounts.passwords["gw-1"] == "theirs"
        assert fleet.enrolments() == ()

    run(tmp_path, scenario)


def test_a_revoked_gateway_may_be_provisioned_again(tmp_path: Path) -> None:
    async def scenario(world: World, fleet: Fleet) -> None:
        first = await fleet.join(asked((await fleet.provision("gw-4", ANN)).token, "gw-4"), "a")
        with pytest.raises(DeploymentError, match="has joined already"):
            await fleet.provision("gw-4", ANN)
        await fleet.revoke("gw-4", ANN)
        assert world.accounts.disabled == {"gw-4"}
        token = (await fleet.provision("gw-4", ANN)).token
        assert world.accounts.disabled == {"gw-4"}
        assert world.accounts.passwords["gw-4"] != first.password
        await fleet.join(asked(token, "gw-4"), "a")
        assert not world.accounts.disabled

    run(tmp_path, scenario)


def test_a_retired_gateway_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(world: World, fleet: Fleet) -> None:
        await fleet.provision("gw-4", ANN)
        await fleet.retire("gw-4", ANN)
        assert fleet.enrolments() == ()
        assert not world.accounts.passwords
        assert not world.accounts.roles
        with pytest.raises(KeyError):
            await fleet.revoke("gw-4", ANN)

    run(tmp_path, scenario)


def test_a_federation_without_an_authority_gives_passwords_only(tmp_path: Path) -> None:
    async def scenario(_world: World, fleet: Fleet) -> None:
        made = await fleet.provision("gw-4", ANN)
        assert decode_token(made.token).authority == ""
        answer = await fleet.join(asked(made.token, "gw-4"), "a")
        assert (answer.certificate, answer.broker_ca) == ("", "")
        assert answer.password

    run(tmp_path, scenario, with_authority=False)


def test_a_broker_without_accounts_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_accounts, "ANSWER_SECONDS", 0.2)

    async def scenario(_world: World, fleet: Fleet) -> None:
        with pytest.raises(DeploymentError, match="it keeps no accounts") as refusal:
            await fleet.provision("gw-4", ANN)
        assert "--dynamic-security" in refusal.value.hint
        assert fleet.enrolments() == ()

    run(tmp_path, scenario, with_accounts=False)


def test_a_gateway_that_is_away_keeps_its_name_and_the_new_one_stays_free(tmp_path: Path) -> None:
    async def scenario(world: World, fleet: Fleet) -> None:
        await fleet.join(asked((await fleet.provision("gw-4", ANN)).token, "gw-4"), "a")
        for _ in range(2):
            with pytest.raises(DeploymentError, match="gw-4"):
                await fleet.rename("gw-4", "north", ANN)
            assert set(world.accounts.passwords) == {"gw-4"}
            assert world.accounts.roles == {"site-gw-4"}
        await fleet.provision("north", ANN)

    run(tmp_path, scenario)


def test_a_new_name_can_be_revoked_when_nobody_knows_whether_it_was_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(_self: object, gateway: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["step"] == "request":
            return {"request": make_request(arguments["gateway"]).request.decode()}
        raise DeploymentError(f"gateway {gateway} did not answer")

    monkeypatch.setattr(GatewayDialogue, "ask", ask)

    async def scenario(world: World, fleet: Fleet) -> None:
        await fleet.join(asked((await fleet.provision("gw-4", ANN)).token, "gw-4"), "a")
        with pytest.raises(DeploymentError, match="did not answer"):
            await fleet.rename("gw-4", "north", ANN)
        # The gateway may have the new password: both names can be refused.
        assert set(world.accounts.passwords) == {"gw-4", "north"}
        await fleet.revoke("north", ANN)
        await fleet.revoke("gw-4", ANN)
        assert world.accounts.disabled == {"gw-4", "north"}

    run(tmp_path, scenario)


def test_a_gateway_is_revoked_at_once_while_its_answer_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = asyncio.Event()

    async def ask(_self: object, _gateway: str, _arguments: dict[str, Any]) -> dict[str, Any]:
        asking.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(GatewayDialogue, "ask", ask)

    async def scenario(world: World, fleet: Fleet) -> None:
        await fleet.join(asked((await fleet.provision("gw-4", ANN)).token, "gw-4"), "a")
        rotating = asyncio.create_task(fleet.rotate("gw-4", ANN))
        await asking.wait()
        revoking = asyncio.create_task(fleet.revoke("gw-4", ANN))
        try:
            await eventually(lambda: world.accounts.disabled == {"gw-4"})
        finally:
            rotating.cancel()
        assert (await revoking).state is EnrolmentState.REVOKED

    run(tmp_path, scenario)
